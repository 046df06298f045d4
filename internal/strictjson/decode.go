// Package strictjson decodes untrusted JSON: request bodies and stored documents.
// It owns the rules for acceptable JSON, and error messages that tell users what
// to fix and where.
//
// encoding/json is lenient in ways that hide mistakes: it drops unknown
// fields, matches names in any letter case, lets the last of two equal keys
// win, repairs invalid UTF-8 and rounds 64-bit numbers. This package first scans
// the input and rejects all of that, and every value that does not fit the Go
// type. Then it decodes the input with encoding/json.
//
// The package does not limit the size of the input, check required fields or
// validate the meaning of values: callers do.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Limits on well-formed documents. They bound the time and memory that one document costs, here and
// in code that processes it later, because one node reads the documents of all workspaces. Without
// maxDepth, code that follows the nesting could run out of stack.
const (
	maxDepth       = 64
	maxKeys        = 10_000
	maxElements    = 100_000
	maxKeyBytes    = 1024
	maxNumberBytes = 100
	maxErrors      = 20
)

// Decode decodes exactly one JSON value into dst, a non-nil pointer.
//
// If data is not acceptable, Decode returns [Errors]. Any other error means that
// dst is not a pointer to a type that this package supports, which is a bug in
// the program. After an error the content of dst is unspecified.
//
// Absent fields keep their value, so dst can have defaults. Values of type any
// should be nil; they are decoded as described at [DecodeAny].
//
// For a type with its own UnmarshalJSON, only the structure is checked, and the
// type itself must handle null. If it uses this package, the pointers and
// positions of its Errors are made relative to the whole document.
func Decode(data []byte, dst any) error { return decode(data, dst, false) }

// DecodeBody is like Decode for a pointer to a struct, but rejects null for
// members whose fields are pointers: the pointer would be nil, as if the member
// were absent. If null has its own meaning, use an Optional field. If null means
// the same as absent, tag the field null:"ok".
func DecodeBody(data []byte, dst any) error { return decode(data, dst, true) }

func decode(data []byte, dst any, body bool) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("strictjson: cannot decode into %T, need a non-nil pointer", dst)
	}
	p, err := typeInfoFor(v.Type().Elem())
	if err != nil {
		return err
	}
	errs, exact := scan(data, p, scanOptions{body: body})
	if errs != nil && errs.Kind() == Syntax {
		return errs
	}
	if errs == nil {
		err = unmarshal(data, v, p, exact)
		if err == nil {
			return nil
		}
	}
	// Values with their own UnmarshalJSON are decoded one by one only now, to find
	// the invalid ones: doing it earlier would decode every valid document twice.
	if errs, _ = scan(data, p, scanOptions{body: body, probe: true}); errs != nil {
		return errs
	}
	return Errors{{Kind: Shape, Message: plainMessage(err), Line: 1, Column: 1}}
}

// DecodeAny decodes exactly one JSON value into nil, bool, string, int,
// float64, []any or map[string]any.
//
// A number with an integral value that fits 64 bits becomes an int, regardless of
// its notation (1, 1.0 and 1e0 are equal), so that large identifiers keep all
// digits and a value keeps its type across encoding and decoding. Every other
// number becomes a float64.
func DecodeAny(data []byte) (any, error) {
	var v any
	if err := Decode(data, &v); err != nil {
		return nil, err
	}
	return v, nil
}

// Check reports whether data is a document that DecodeAny would accept,
// without decoding it.
func Check(data []byte) error {
	if errs, _ := scan(data, nil, scanOptions{}); errs != nil {
		return errs
	}
	return nil
}

// unmarshal decodes data that passed the scan into the pointer v. It uses
// json.Number only if exact is set, because that is slower.
func unmarshal(data []byte, v reflect.Value, p *typeInfo, exact bool) error {
	if !p.hasAny {
		return json.Unmarshal(data, v.Interface())
	}
	var err error
	if exact {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = d.Decode(v.Interface())
	} else {
		err = json.Unmarshal(data, v.Interface())
	}
	if err == nil {
		convertNumbers(v.Elem(), p)
	}
	return err
}
