package integration

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is a problem of a manifest, with its place and what to do about it.
type Error struct {
	File    string // as given to the catalog, "" for text alone
	Line    int    // from 1, 0 if unknown
	Column  int
	Pointer string // JSON pointer
	Message string
}

func (e *Error) Error() string {
	var place strings.Builder
	place.WriteString(e.File)
	if e.Line > 0 {
		if e.File == "" {
			place.WriteString("line ")
		} else {
			place.WriteByte(':')
		}
		fmt.Fprintf(&place, "%d:%d", e.Line, e.Column)
	}
	if place.Len() > 0 {
		place.WriteString(": ")
	}
	if e.Pointer != "" {
		place.WriteString(e.Pointer + ": ")
	}
	return place.String() + e.Message
}

// Errors has all problems of a manifest. It is never empty when returned as an
// error.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// AsErrors returns an error as Errors. Nil is nil.
func AsErrors(err error) Errors {
	if err == nil {
		return nil
	}
	if errs, ok := errors.AsType[Errors](err); ok {
		return errs
	}
	return decodeErrors(err, nil)
}

// In says in which file the problems are.
func (e Errors) In(file string) Errors {
	for _, one := range e {
		one.File = file
	}
	return e
}

// Sort orders the problems by file and place.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Pointer, b.Pointer))
	})
}
