// Package fault owns the error type that clients see: a machine-readable code, a
// message for people and, where known, the places in the input that caused it.
// It does not own HTTP: the API turns a fault into a response, and any other
// error into internal_error.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Error is an error that a client may see. Its Message never contains internal
// details; the cause is for logs only.
type Error struct {
	Code       Code
	Message    string
	Details    []Detail
	RetryAfter time.Duration
	cause      error
}

// Detail points at one place in the input. Line and Column are set if the input
// is text that people edit, such as YAML.
type Detail struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Shorten returns the beginning of a text for an error, without splitting a character or
// an escape in a JSON pointer.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], "~") + "…"
}

// New returns an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Field returns an invalid_request error about one field of the input.
func Field(pointer, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{
		Code:    InvalidRequest,
		Message: fmt.Sprintf("%s: %s", pointer, message),
		Details: []Detail{{Pointer: pointer, Message: message}},
	}
}

// Fields joins the errors about several fields into one, so that a client sees
// all of them at once. It ignores nil errors. If an error is not about a field,
// Fields returns that error alone.
func Fields(errs ...error) error {
	var all *Error
	for _, err := range errs {
		if err == nil {
			continue
		}
		f, ok := As(err)
		switch {
		case !ok || f.Code != InvalidRequest || len(f.Details) == 0:
			return err
		case all == nil:
			all = f
		default:
			all = &Error{Code: InvalidRequest, Message: all.Message + "; " + f.Message, Details: slices.Concat(all.Details, f.Details)}
		}
	}
	if all == nil {
		return nil
	}
	return all
}

// Because sets the cause, which appears in logs only, and returns e.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// After sets the delay after which the client may retry, and returns e.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// With adds details and returns e.
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

// As returns the first *Error in err's chain.
func As(err error) (*Error, bool) {
	var f *Error
	ok := errors.As(err, &f)
	return f, ok
}

// Is reports whether err is an *Error with the given code.
func Is(err error, code Code) bool {
	f, ok := As(err)
	return ok && f.Code == code
}

// Found unwraps the result of a store lookup. A nil value without an error means
// that nothing was found: then Found returns the error from missing.
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
