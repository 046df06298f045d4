package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The codes of an [Error].
const (
	// CodeInvalid: the expression is not valid.
	CodeInvalid = "expression_invalid"
	// CodeFailed: the evaluation failed because of a value.
	CodeFailed = "expression_failed"
	// CodeCost: the evaluation exceeded its budget of steps, memory or result size.
	CodeCost = "expression_cost_exceeded"
)

// Error is a problem of an expression with its position. Messages name types but
// never contain data, so that they cannot leak a secret or a payload.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Source is the expression itself, without ${{ and }}.
	Source string `json:"source,omitempty"`
	// Line and Column count from 1, in characters, and Offset counts bytes
	// from 0, all within the whole string that was compiled.
	Line   int `json:"line"`
	Column int `json:"column"`
	Offset int `json:"offset"`
	// Pointer is the JSON pointer of the string inside the value given to
	// CompileValue, empty for its root and for the other compile functions.
	Pointer string `json:"pointer,omitempty"`
}

func (e *Error) Error() string {
	where := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.Pointer != "" {
		where = e.Pointer + ", " + where
	}
	return fmt.Sprintf("%s (%s)", e.Message, where)
}

// Errors has all problems that CompileValue found, in the order of the tree.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// failure is an Error whose position is not known yet. Nodes set the position, so
// that functions need not know where they were called. It is the only error type
// inside this package and is never wrapped.
type failure struct {
	code    string
	message string
	at      int // characters from the start of the expression, -1 if unknown
}

func (f *failure) Error() string { return f.message }

func failf(format string, args ...any) error {
	return &failure{code: CodeFailed, message: fmt.Sprintf(format, args...), at: -1}
}

func invalidf(at int, format string, args ...any) error {
	return &failure{code: CodeInvalid, message: fmt.Sprintf(format, args...), at: at}
}

func costf(format string, args ...any) error {
	return &failure{code: CodeCost, message: fmt.Sprintf(format, args...), at: -1}
}

// locate sets the position of err unless an inner node has set it.
func locate(err error, at int) error {
	if f, ok := errors.AsType[*failure](err); ok && f.at < 0 {
		f.at = at
	}
	return err
}

// position is a position in a compiled string.
type position struct {
	offset, line, column int
}

func start() position { return position{line: 1, column: 1} }

func (p position) advance(text string) position {
	p.offset += len(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		p.line += strings.Count(text, "\n")
		p.column = 1
		text = text[i+1:]
	}
	p.column += utf8.RuneCountInString(text)
	return p
}

// located turns any error of parsing or evaluating source, an expression that
// begins at origin, into an *Error.
func located(err error, source string, origin position) *Error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{code: CodeFailed, message: "internal error", at: -1}
	}
	at := origin
	if f.at > 0 {
		at = origin.advance(source[:byteOffset(source, f.at)])
	}
	return &Error{
		Code: f.code, Message: f.message, Source: source,
		Line: at.line, Column: at.column, Offset: at.offset,
	}
}

// byteOffset converts a count of characters into a count of bytes.
func byteOffset(s string, chars int) int {
	for i := range s {
		if chars == 0 {
			return i
		}
		chars--
	}
	return len(s)
}
