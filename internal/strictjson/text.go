package strictjson

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
)

// textForm describes the special content of a string.
type textForm struct {
	escaped bool
	nul     bool
}

func (s *scanner) stringValue() bool {
	start := s.pos
	form, ok := s.quotedText(len(s.stack))
	if ok && form.nul {
		// Databases and C libraries truncate or reject text with a NUL.
		return s.shape(start, "contains a NUL character")
	}
	return ok
}

// quotedText reads a quoted string. The first depth frames make up the pointer of
// an error in it.
func (s *scanner) quotedText(depth int) (form textForm, ok bool) {
	s.pos++
	data, i := s.data, s.pos
	for {
		i = skipPlain(data, i)
		if i == len(data) {
			return form, s.syntax(i, depth, "unexpected end of input")
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			if s.pos > s.badUTF8 {
				return form, s.syntax(s.badUTF8, depth, "invalid UTF-8")
			}
			return form, true
		case c == '\\':
			form.escaped = true
			s.pos = i
			if problem := s.escape(&form); problem != "" {
				return form, s.syntax(s.pos, depth, problem)
			}
			i = s.pos
		case c < ' ':
			return form, s.syntax(i, depth, fmt.Sprintf("control character U+%04X in a string must be escaped", c))
		default:
			i++
		}
	}
}

// skipPlain returns the index of the first quote, backslash or control character
// at or after i. It may stop early, within the last bytes of data.
func skipPlain(data []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(data) {
		x := binary.LittleEndian.Uint64(data[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// In each term the lowest top bit that is set marks the first byte
		// that is below the subtrahend.
		found := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	return i
}

func (s *scanner) escape(form *textForm) (problem string) {
	if s.pos+1 >= len(s.data) {
		s.pos = len(s.data)
		return "unexpected end of input"
	}
	switch c := s.data[s.pos+1]; c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return ""
	case 'u':
		return s.unicodeEscape(form)
	default:
		return "invalid escape in a string: a backslash must be followed by one of \"\\/bfnrtu"
	}
}

func (s *scanner) unicodeEscape(form *textForm) (problem string) {
	code, ok := hex4(s.data, s.pos)
	if !ok {
		return "invalid escape in a string: \\u must be followed by four hexadecimal digits"
	}
	switch {
	case code == 0:
		form.nul = true
	case code >= 0xDC00 && code <= 0xDFFF:
		return fmt.Sprintf("\\u%04x is half of a surrogate pair", code)
	case code >= 0xD800 && code <= 0xDBFF:
		low, ok := hex4(s.data, s.pos+6)
		if !ok || low < 0xDC00 || low > 0xDFFF {
			return fmt.Sprintf("\\u%04x is half of a surrogate pair", code)
		}
		s.pos += 6
	}
	s.pos += 6
	return ""
}

// hex4 returns the code unit of the \uXXXX at i.
func hex4(data []byte, i int) (code uint64, ok bool) {
	if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return 0, false
	}
	code, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
	return code, err == nil
}
