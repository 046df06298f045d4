package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// scanner makes a single pass over a document. It has an explicit stack, so that
// hostile nesting does not grow the goroutine stack, and the pointer of an error
// can be built from it.
type scanner struct {
	data    []byte
	pos     int
	badUTF8 int // offset of the first byte that is not UTF-8, past the end if none
	stack   []frame
	keys    [][]byte // keys of the open objects, see frame.firstKey
	errs    Errors
	scanOptions
	exact bool // a float64 cannot represent some number exactly
}

type scanOptions struct {
	probe bool // decode values whose types have their own decoding method
	body  bool // reject null for members whose fields are pointers
}

type frame struct {
	object       *typeInfo // of the struct, nil for maps, arrays and free-form values
	elem         *typeInfo // of the elements or map values, nil if free-form
	selfDecoding *typeInfo // type to decode the complete value with, nil if none
	start        int
	count        int
	closer       byte

	key      []byte  // the current key, decoded
	seen     uint64  // the struct fields seen so far
	firstKey int     // where this object's keys start in scanner.keys
	keySet   *keySet // of these keys, nil while they are few
}

// scan checks data against p, or only its structure if p is nil. exact reports
// whether numbers decoded into any must be read from their digits.
func scan(data []byte, p *typeInfo, options scanOptions) (errs Errors, exact bool) {
	s := scanner{
		data:        data,
		badUTF8:     firstInvalid(data),
		stack:       make([]frame, 0, 8),
		keys:        make([][]byte, 0, linearKeys),
		scanOptions: options,
	}
	s.run(p)
	return s.errs, s.exact
}

func firstInvalid(data []byte) int {
	if utf8.Valid(data) {
		return len(data) + 1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

func (s *scanner) run(p *typeInfo) {
	if bytes.HasPrefix(s.data, []byte("\uFEFF")) {
		s.syntax(0, 0, "the input starts with a byte order mark")
		return
	}
	s.skipSpace()
	if s.pos == len(s.data) {
		s.syntax(s.pos, 0, "the body is empty")
		return
	}
	if !s.value(p) {
		return
	}
	for len(s.stack) > 0 {
		if !s.step() {
			return
		}
	}
	s.skipSpace()
	if s.pos < len(s.data) {
		s.syntax(s.pos, 0, "unexpected data after the value")
	}
}

// step reads the next element or member of the innermost open value, or closes
// it. Like the other methods of the scanner it reports whether to continue.
func (s *scanner) step() bool {
	f := &s.stack[len(s.stack)-1]
	s.skipSpace()
	if s.at(f.closer) {
		return s.close()
	}
	if f.count > 0 && !s.comma(f) {
		return false
	}
	f.count++
	if f.closer == '}' {
		p, ok := s.member(f)
		return ok && s.value(p)
	}
	if f.count > maxElements {
		return s.abort(s.pos, len(s.stack)-1, "array has more than %d elements", maxElements)
	}
	return s.value(f.elem)
}

func (s *scanner) comma(f *frame) bool {
	if !s.at(',') {
		return s.unexpected(len(s.stack)-1, "a comma or "+string(f.closer))
	}
	comma := s.pos
	s.pos++
	s.skipSpace()
	if s.at(f.closer) {
		return s.syntax(comma, len(s.stack)-1, "trailing comma before "+string(f.closer))
	}
	return true
}

// value reads a scalar, or opens an object or array.
func (s *scanner) value(p *typeInfo) bool {
	if s.pos == len(s.data) {
		return s.unexpected(len(s.stack), "a value")
	}
	start := s.pos
	got := typeOfFirstByte(s.data[start])
	if p != nil && got != 0 {
		var ok bool
		if p, ok = s.accept(p, got); !ok {
			return false
		}
	}
	var ok bool
	switch got {
	case typeObject:
		return s.open(p, '}')
	case typeArray:
		return s.open(p, ']')
	case typeString:
		ok = s.stringValue()
	case typeNumber:
		ok = s.numberValue(p)
	case typeBool, typeNull:
		ok = s.literal()
	default:
		return s.unexpected(len(s.stack), "a value")
	}
	if ok && s.probe && p != nil && p.selfDecoding {
		return s.tryDecode(p, start)
	}
	return ok
}

// accept follows p through pointers to the info for a value of type got. After a
// mismatch the value is scanned without type info.
func (s *scanner) accept(p *typeInfo, got jsonType) (*typeInfo, bool) {
	for p.kind == kindPointer || p.kind == kindOptional {
		if got == typeNull {
			return nil, p.kind == kindOptional || s.null()
		}
		p = p.elem
	}
	if p.accepts&got == 0 {
		return nil, s.shape(s.pos, "must be %s, not %s", p.noun, got)
	}
	return p, true
}

// null checks a null for a field that is a pointer.
func (s *scanner) null() bool {
	if !s.body || len(s.stack) != 1 || s.stack[0].object == nil {
		return true
	}
	of := s.stack[0].object
	if of.fields[of.byName[string(s.stack[0].key)]].nullOK {
		return true
	}
	return s.shape(s.pos, "must not be null")
}

func (s *scanner) open(p *typeInfo, closer byte) bool {
	if len(s.stack) == maxDepth {
		return s.abort(s.pos, len(s.stack), "nesting is deeper than %d levels", maxDepth)
	}
	f := frame{start: s.pos, closer: closer, firstKey: len(s.keys)}
	if p != nil {
		switch {
		case p.kind == kindStruct:
			f.object = p
		case p.selfDecoding:
			f.selfDecoding = p
		default:
			f.elem = p.elem
		}
	}
	s.stack = append(s.stack, f)
	s.pos++
	return true
}

func (s *scanner) close() bool {
	s.pos++
	last := len(s.stack) - 1
	f := s.stack[last]
	s.stack = s.stack[:last]
	s.keys = s.keys[:f.firstKey]
	if s.probe && f.selfDecoding != nil {
		return s.tryDecode(f.selfDecoding, f.start)
	}
	return true
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) at(c byte) bool {
	return s.pos < len(s.data) && s.data[s.pos] == c
}
