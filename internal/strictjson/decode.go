// Package strictjson decodes JSON that strangers wrote: request bodies and
// stored documents. It owns the rules for what is acceptable JSON, and the
// messages that tell a person what to repair and where.
//
// encoding/json is lenient in ways that hide mistakes: it drops unknown
// fields, matches names in any letter case, lets the last of two equal keys
// win, repairs invalid UTF-8 and rounds 64-bit numbers. Here one scan over the
// input refuses all of that and every value that does not fit the Go type;
// only what passes is handed to encoding/json.
//
// The package does not own the size of the input, required fields or any rule
// about what a value means: callers limit what they read and validate what
// they got.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Limits on well-formed documents. They bound the work and the memory that
// one document can cause here and in everything that walks it later.
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
// What is wrong with data is returned as [Errors]. Any other error means that
// dst is not a pointer to a type this package supports: a mistake in the
// program. After an error the content of dst is unspecified.
//
// Fields that are absent keep their value, so defaults can be set in dst
// beforehand; values of type any in dst should be nil. They come out as
// described at [DecodeAny].
//
// A type with its own UnmarshalJSON is checked for structure only, and is
// itself responsible for null. When it uses this package, the pointers and
// positions of its Errors are made relative to the whole document.
func Decode(data []byte, dst any) error { return decode(data, dst, false) }

// DecodeBody decodes like Decode, into a pointer to a struct, and refuses null
// for the members whose fields are pointers: they would be left nil, as if the
// member were absent. Where null has a meaning of its own the field is an
// Optional, and where it means the same it is tagged null:"ok".
func DecodeBody(data []byte, dst any) error { return decode(data, dst, true) }

func decode(data []byte, dst any, body bool) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("strictjson: cannot decode into %T, need a non-nil pointer", dst)
	}
	p, err := planFor(v.Type().Elem())
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
	// Only now are the values tried whose rules live in their own methods:
	// trying each one beforehand would decode every valid document twice.
	if errs, _ = scan(data, p, scanOptions{body: body, probe: true}); errs != nil {
		return errs
	}
	return Errors{{Kind: Shape, Message: plainMessage(err), Line: 1, Column: 1}}
}

// DecodeAny decodes exactly one JSON value into nil, bool, string, int,
// float64, []any or map[string]any.
//
// A number with an integral value that fits 64 bits is an int, however it was
// written (1, 1.0 and 1e0 are equal), so that large identifiers keep all their
// digits and a value keeps its type when it is encoded and decoded again. Every
// other number is a float64.
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

// unmarshal fills the pointer v from data that passed the scan. Numbers go
// through json.Number only when exact is set, because that is slower.
func unmarshal(data []byte, v reflect.Value, p *plan, exact bool) error {
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
		settle(v.Elem(), p)
	}
	return err
}
