package strictjson

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// jsonType is a set of types of JSON values.
type jsonType uint8

const (
	typeObject jsonType = 1 << iota
	typeArray
	typeString
	typeNumber
	typeBool
	typeNull
	typeAny = typeObject | typeArray | typeString | typeNumber | typeBool | typeNull
)

const (
	nounObject  = "an object"
	nounArray   = "an array"
	nounString  = "a string"
	nounNumber  = "a number"
	nounInteger = "an integer"
	nounBool    = "a boolean"
)

// String returns the name of a single type, for messages.
func (t jsonType) String() string {
	switch t {
	case typeObject:
		return nounObject
	case typeArray:
		return nounArray
	case typeString:
		return nounString
	case typeNumber:
		return nounNumber
	case typeBool:
		return nounBool
	}
	return "null"
}

func typeOfFirstByte(c byte) jsonType {
	switch c {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return typeNumber
	case 't', 'f':
		return typeBool
	case 'n':
		return typeNull
	}
	return 0
}

func (s *scanner) literal() bool {
	want := "null"
	switch s.data[s.pos] {
	case 't':
		want = "true"
	case 'f':
		want = "false"
	}
	end := min(s.pos+len(want), len(s.data))
	switch got := string(s.data[s.pos:end]); {
	case got == want:
		s.pos = end
		return true
	case strings.HasPrefix(want, got):
		s.pos = end
	}
	return s.unexpected(len(s.stack), "a value")
}

func (s *scanner) numberValue(p *typeInfo) bool {
	start := s.pos
	form, problem := s.number()
	if problem != "" {
		return s.syntax(s.pos, len(s.stack), problem)
	}
	if s.pos-start > maxNumberBytes {
		return s.shape(start, "number is too long (more than %d characters)", maxNumberBytes)
	}
	if form.exponent || form.digits > exactDigits {
		s.exact = true
	}
	text := s.data[start:s.pos]
	if p != nil {
		switch p.kind {
		case kindInt, kindUint:
			return s.integer(p, start, form)
		case kindFloat:
			if _, err := strconv.ParseFloat(string(text), p.bits); err != nil {
				return s.shape(start, "number is out of range")
			}
			return true
		}
	}
	// Without an exponent the length limit keeps a number in range.
	if form.exponent {
		if _, err := strconv.ParseFloat(string(text), 64); err != nil {
			return s.shape(start, "number is out of range")
		}
	}
	return true
}

// integer checks that the number that started at start fits the integer type of
// p. encoding/json accepts no fraction or exponent here, not even 1.0.
func (s *scanner) integer(p *typeInfo, start int, form numberForm) bool {
	if form.fraction || form.exponent {
		return s.shape(start, "must be an integer, without a fraction or exponent")
	}
	text := s.data[start:s.pos]
	if p.kind == kindUint {
		if _, err := strconv.ParseUint(string(text), 10, p.bits); err != nil {
			return s.shape(start, "must be between 0 and %d", uint64(math.MaxUint64)>>(64-p.bits))
		}
		return true
	}
	if _, err := strconv.ParseInt(string(text), 10, p.bits); err != nil {
		most := int64(math.MaxInt64) >> (64 - p.bits)
		return s.shape(start, "must be between %d and %d", -most-1, most)
	}
	return true
}

type numberForm struct {
	digits   int // before the decimal point
	fraction bool
	exponent bool
}

// number reads a number. If it is not valid, problem is the reason and the
// position is at the offending byte.
func (s *scanner) number() (form numberForm, problem string) {
	if s.at('-') {
		s.pos++
	}
	zero := s.at('0')
	form.digits = s.digits()
	if form.digits == 0 {
		return form, s.orEnd("number needs a digit after the minus sign")
	}
	if zero && form.digits > 1 {
		s.pos -= form.digits
		return form, "number has a leading zero"
	}
	if s.at('.') {
		s.pos++
		form.fraction = true
		if s.digits() == 0 {
			return form, s.orEnd("number needs a digit after the decimal point")
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		form.exponent = true
		if s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return form, s.orEnd("number needs a digit in the exponent")
		}
	}
	return form, ""
}

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

func (s *scanner) orEnd(problem string) string {
	if s.pos == len(s.data) {
		return "unexpected end of input"
	}
	return problem
}

// quote quotes text of the input for a message, truncated to a readable length.
func quote(text []byte) string {
	const most = 64
	runes := []rune(string(text[:min(len(text), 4*most)]))
	if len(runes) <= most {
		return strconv.Quote(string(runes))
	}
	return fmt.Sprintf("%q…", string(runes[:most]))
}
