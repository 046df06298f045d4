package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Optional is a struct field that distinguishes absent, null and a value, as JSON
// Merge Patch (RFC 7396) requires. Its zero value is absent.
type Optional[T any] struct {
	Set   bool // the field was present
	Null  bool // and was null
	Value T    // otherwise
}

// UnmarshalJSON is called for present fields only.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{Set: true}
	if bytes.Equal(data, []byte("null")) {
		o.Null = true
		return nil
	}
	p, err := typeInfoFor(reflect.TypeFor[T]())
	if err != nil {
		return err
	}
	return unmarshal(data, reflect.ValueOf(&o.Value), p, true)
}

// MarshalJSON encodes the value, or null if there is none. The tag option
// omitzero omits an absent field.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// optionalElem returns the T of an Optional[T], nil for other types.
func optionalElem(t reflect.Type) reflect.Type {
	if t.PkgPath() != reflect.TypeFor[typeInfo]().PkgPath() || !strings.HasPrefix(t.Name(), "Optional[") {
		return nil
	}
	value, _ := t.FieldByName("Value")
	return value.Type
}
