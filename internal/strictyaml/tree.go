package strictyaml

import (
	"fmt"
	"slices"
)

// linearKeys is the number of keys of a mapping up to which they are compared one
// by one. Larger mappings use a map.
const linearKeys = 16

// value starts the entry of the value at an offset. For a member, the entry
// exists already and has its key.
func (p *parser) value(at int) (index int, ok bool) {
	if len(p.stack) == 0 {
		p.entries = append(p.entries, entry{})
	} else if f := &p.stack[len(p.stack)-1]; f.closer == ']' {
		f.count++
		f.inside = true
		if f.count > maxElements {
			return 0, p.abort(at, fmt.Sprintf("the list has more than %d entries", maxElements))
		}
		if f.count > 1 {
			p.out = append(p.out, ',')
		}
		p.entries = append(p.entries, entry{})
	}
	if len(p.entries) > p.maxValues {
		return 0, p.abort(at, fmt.Sprintf("the document has more than %d values", p.maxValues))
	}
	index = len(p.entries) - 1
	p.entries[index].at = p.placeOf(at)
	p.entries[index].end = int32(len(p.entries))
	return index, true
}

func (p *parser) open(at int, opener, closer byte) bool {
	index, ok := p.value(at)
	if !ok {
		return false
	}
	if len(p.stack) == maxDepth {
		return p.abort(at, fmt.Sprintf("nesting is deeper than %d levels", maxDepth))
	}
	p.stack = append(p.stack, frame{entry: index, closer: closer, flow: p.src[at] == opener})
	p.out = append(p.out, opener)
	return true
}

func (p *parser) close() bool {
	f := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	p.entries[f.entry].end = int32(len(p.entries))
	p.out = append(p.out, f.closer)
	return true
}

func (p *parser) member(at int, key string) bool {
	f := &p.stack[len(p.stack)-1]
	switch {
	case f.count == maxKeys:
		return p.abort(at, fmt.Sprintf("the mapping has more than %d keys", maxKeys))
	case len(key) > maxKeyBytes:
		return p.abort(at, fmt.Sprintf("a key is longer than %d bytes", maxKeyBytes))
	}
	f.key, f.inside = key, true
	if !f.add(key) {
		return p.syntax(at, fmt.Sprintf("duplicate key %.64q", key))
	}
	if f.count > 0 {
		p.out = append(p.out, ',')
	}
	f.count++
	p.out = append(appendText(p.out, key), ':')
	p.entries = append(p.entries, entry{key: key, keyAt: p.placeOf(at)})
	return true
}

// add records a key and reports whether it is new.
func (f *frame) add(key string) bool {
	if f.seen == nil {
		if slices.Contains(f.keys, key) {
			return false
		}
		f.keys = append(f.keys, key)
		if len(f.keys) > linearKeys {
			f.seen = make(map[string]struct{}, 2*len(f.keys))
			for _, k := range f.keys {
				f.seen[k] = struct{}{}
			}
		}
		return true
	}
	if _, again := f.seen[key]; again {
		return false
	}
	f.seen[key] = struct{}{}
	return true
}

// endValue marks the current value of the innermost mapping or sequence complete.
func (p *parser) endValue() { p.stack[len(p.stack)-1].inside = false }

func (p *parser) text(at int, text []byte) bool {
	if _, ok := p.value(at); !ok {
		return false
	}
	if p.replace != nil {
		if done, ok := p.substitute(at, text); done || !ok {
			return ok
		}
	}
	p.out = appendText(p.out, text)
	return true
}

// null writes null for an omitted value.
func (p *parser) null(at int) bool {
	if _, ok := p.value(at); !ok {
		return false
	}
	p.out = append(p.out, "null"...)
	return true
}

func appendText[T string | []byte](out []byte, text T) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
