package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// syntax ends the scan with one error. It discards earlier Shape errors, because
// they are unreliable in a document that is not well-formed. The first depth
// frames of the stack make up its pointer.
func (s *scanner) syntax(at, depth int, message string) bool {
	s.errs = Errors{s.newError(Syntax, at, depth, message)}
	return false
}

// abort ends the scan with a Shape error, for documents that exceed a limit.
func (s *scanner) abort(at, depth int, format string, args ...any) bool {
	s.errs = append(s.errs, s.newError(Shape, at, depth, fmt.Sprintf(format, args...)))
	return false
}

// shape adds an error about the current value and reports whether there is
// room for more.
func (s *scanner) shape(at int, format string, args ...any) bool {
	s.errs = append(s.errs, s.newError(Shape, at, len(s.stack), fmt.Sprintf(format, args...)))
	return len(s.errs) < maxErrors
}

// unexpected reports the byte at the current position, where want should be.
func (s *scanner) unexpected(depth int, want string) bool {
	if s.pos >= len(s.data) {
		return s.syntax(len(s.data), depth, "unexpected end of input")
	}
	if s.pos == s.badUTF8 {
		return s.syntax(s.pos, depth, "invalid UTF-8")
	}
	switch s.data[s.pos] {
	case '/':
		return s.syntax(s.pos, depth, "comments are not allowed")
	case '\'':
		return s.syntax(s.pos, depth, "strings must be in double quotes")
	}
	if word := s.word(); len(word) > 1 {
		return s.syntax(s.pos, depth, fmt.Sprintf("unexpected %s, expected %s", word, want))
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return s.syntax(s.pos, depth, fmt.Sprintf("unexpected character %q, expected %s", r, want))
}

// word returns the letters at the current position, such as NaN, truncated for
// display.
func (s *scanner) word() string {
	i := s.pos
	for i < len(s.data) && i < s.pos+20 && (s.data[i]|0x20 >= 'a' && s.data[i]|0x20 <= 'z') {
		i++
	}
	return string(s.data[s.pos:i])
}

func (s *scanner) newError(kind Kind, at, depth int, message string) *Error {
	line, column := s.position(at)
	return &Error{Kind: kind, Pointer: s.pointer(depth), Message: message, Line: line, Column: column}
}

func (s *scanner) position(at int) (line, column int) {
	before := s.data[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}

// pointer returns the JSON Pointer to the current value of the first depth
// frames.
func (s *scanner) pointer(depth int) string {
	members := make([]string, depth)
	for i, f := range s.stack[:depth] {
		members[i] = string(f.key)
		if f.closer == ']' {
			members[i] = strconv.Itoa(f.count - 1)
		}
	}
	return jsonpointer.Of(members...)
}

// tryDecode decodes the complete value that started at start, to find out whether
// the decoding method of its type accepts it.
func (s *scanner) tryDecode(p *typeInfo, start int) bool {
	err := json.Unmarshal(s.data[start:s.pos], reflect.New(p.typ).Interface())
	if err == nil {
		return true
	}
	if p.hint != "" {
		return s.shape(start, "%s", p.hint)
	}
	var inner Errors
	if !errors.As(err, &inner) {
		return s.shape(start, "%s", plainMessage(err))
	}
	for _, e := range inner {
		if !s.addNested(e, start) {
			return false
		}
	}
	return true
}

// addNested adds an error of a nested decoder, whose input starts at start.
func (s *scanner) addNested(e *Error, start int) bool {
	moved := s.newError(Shape, start, len(s.stack), e.Message)
	moved.Pointer += e.Pointer
	moved.Key = e.Key
	if e.Line > 1 {
		moved.Line += e.Line - 1
		moved.Column = e.Column
	} else {
		moved.Column += e.Column - 1
	}
	s.errs = append(s.errs, moved)
	return len(s.errs) < maxErrors
}
