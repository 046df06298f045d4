package strictjson

import (
	"bytes"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/suggest"
)

// member reads a key with its colon and returns the type info of its value.
func (s *scanner) member(f *frame) (*typeInfo, bool) {
	parent := len(s.stack) - 1
	start := s.pos
	if f.count > maxKeys {
		return nil, s.abort(start, parent, "object has more than %d keys", maxKeys)
	}
	if !s.at('"') {
		return nil, s.unexpected(parent, "a key in double quotes")
	}
	form, ok := s.quotedText(parent)
	if !ok {
		return nil, false
	}
	f.key = s.data[start+1 : s.pos-1]
	if form.escaped {
		f.key = unescape(s.data[start:s.pos])
	}
	if len(f.key) > maxKeyBytes {
		return nil, s.abort(start, parent, "a key is longer than %d bytes", maxKeyBytes)
	}
	if form.nul {
		return nil, s.abort(start, parent, "a key contains a NUL character")
	}
	p, ok := s.field(f, start)
	if !ok {
		return nil, false
	}
	s.skipSpace()
	if !s.at(':') {
		return nil, s.unexpected(len(s.stack), "a colon after the key")
	}
	s.pos++
	s.skipSpace()
	return p, true
}

// field checks the key that started at start and returns the type info of its
// value.
func (s *scanner) field(f *frame, start int) (*typeInfo, bool) {
	if f.object != nil {
		if i, ok := f.object.byName[string(f.key)]; ok {
			if i >= 64 {
				return f.object.fields[i].info, s.addKey(f, start)
			}
			if f.seen&(1<<i) != 0 {
				return nil, s.duplicate(f, start)
			}
			f.seen |= 1 << i
			return f.object.fields[i].info, true
		}
	}
	if !s.addKey(f, start) {
		return nil, false
	}
	if f.object != nil {
		more := s.shape(start, "unknown field %s%s", quote(f.key), f.object.didYouMean(string(f.key)))
		s.errs[len(s.errs)-1].Key = true
		return nil, more
	}
	return f.elem, true
}

// addKey records the current key and rejects a duplicate.
func (s *scanner) addKey(f *frame, start int) bool {
	s.keys = append(s.keys, f.key)
	mine := s.keys[f.firstKey:]
	if len(mine) > linearKeys {
		if f.keySet == nil {
			f.keySet = newKeySet(mine[:linearKeys])
		}
		return f.keySet.add(mine) || s.duplicate(f, start)
	}
	for _, k := range mine[:len(mine)-1] {
		if bytes.Equal(k, f.key) {
			return s.duplicate(f, start)
		}
	}
	return true
}

func (s *scanner) duplicate(f *frame, start int) bool {
	return s.syntax(start, len(s.stack), "duplicate key "+quote(f.key))
}

// unescape decodes a quoted string that has been checked.
func unescape(quoted []byte) []byte {
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		panic("strictjson: a checked string does not decode: " + err.Error())
	}
	return []byte(text)
}

// didYouMean returns a suggestion for the message about an unknown field, or "".
func (p *typeInfo) didYouMean(key string) string {
	names := make([]string, len(p.fields))
	for i, f := range p.fields {
		names[i] = f.name
	}
	return suggest.Hint(key, names)
}
