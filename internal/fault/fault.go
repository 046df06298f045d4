// Package fault owns the one error type that crosses package borders on its
// way to a client: a machine-readable code, a sentence for people and, where
// known, the places in the input that caused it. It does not own HTTP: the API
// turns a fault into a response, and everything that is not a fault becomes
// internal_error there.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Error is a failure that a client may see. Its Message never holds inner
// text; the cause is for logs only.
type Error struct {
	Code       Code
	Message    string
	Details    []Detail
	RetryAfter time.Duration
	cause      error
}

// Detail points at one place in the input. Line and Column are known when the
// input is a text that people look at, such as YAML.
type Detail struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// New makes an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Field makes an invalid_request error about one field of the input.
func Field(pointer, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{
		Code:    InvalidRequest,
		Message: fmt.Sprintf("%s: %s", pointer, message),
		Details: []Detail{{Pointer: pointer, Message: message}},
	}
}

// Because keeps the cause for the logs.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// After says when trying again makes sense.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// With adds details.
func (e *Error) With(details ...Detail) *Error {
	e.Details = append(e.Details, details...)
	return e
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.cause }

// As finds the fault in a chain of errors.
func As(err error) (*Error, bool) {
	var f *Error
	ok := errors.As(err, &f)
	return f, ok
}

// Is tells whether err is a fault of the given code.
func Is(err error, code Code) bool {
	f, ok := As(err)
	return ok && f.Code == code
}

// Found unwraps what a store returned: nothing, without an error, means that
// there is no such thing.
func Found[T any](value *T, err error, missing func(id string) error, id string) (T, error) {
	if err == nil && value == nil {
		err = missing(id)
	}
	if err != nil {
		var none T
		return none, err
	}
	return *value, nil
}
