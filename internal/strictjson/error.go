package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Kind is the kind of an Error.
type Kind int

const (
	// Syntax means that the input is not well-formed JSON.
	Syntax Kind = iota + 1
	// Shape means that the input is well-formed, but not acceptable.
	Shape
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Syntax:
		return "syntax"
	case Shape:
		return "shape"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Error is one problem with a document. Message is meant for its author.
type Error struct {
	Kind    Kind
	Pointer string // JSON Pointer (RFC 6901) to the value, "" for the whole document
	Key     bool   // the problem is the key, not the value
	Message string
	Line    int // from 1
	Column  int // in characters, from 1
}

// Error returns the message with its position or pointer.
func (e *Error) Error() string {
	if e.Kind == Syntax {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// Errors has the problems of a document: either the one Syntax error at which
// reading stopped, or up to 20 Shape errors. It is never empty when returned as
// an error.
type Errors []*Error

// Error returns all errors on one line.
func (e Errors) Error() string {
	text := make([]string, len(e))
	for i, one := range e {
		text[i] = one.Error()
	}
	return strings.Join(text, "; ")
}

// Kind returns the kind of the errors, which all have the same.
func (e Errors) Kind() Kind { return e[0].Kind }

// Unwrap lets errors.As find the first *Error.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

// plainMessage returns the text of a decoding error, without the Go type names
// that encoding/json includes.
func plainMessage(err error) string {
	var te *json.UnmarshalTypeError
	if !errors.As(err, &te) {
		return err.Error()
	}
	value, _, _ := strings.Cut(te.Value, " ")
	text := fmt.Sprintf("must be %s, not %s", noun(te.Type), withArticle(value))
	if te.Field != "" {
		text = te.Field + " " + text
	}
	return text
}

func noun(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return nounBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nounInteger
	case reflect.Float32, reflect.Float64:
		return nounNumber
	case reflect.String:
		return nounString
	case reflect.Slice, reflect.Array:
		return nounArray
	case reflect.Struct, reflect.Map:
		return nounObject
	}
	return "another type"
}

func withArticle(value string) string {
	switch value {
	case "bool":
		return nounBool
	case "object", "array":
		return "an " + value
	}
	return "a " + value
}
