package fuzzapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A value is JSON that can also be malformed: nil, bool, string, json.Number, []any,
// object or literal.

// object is an object whose members have an order and may repeat.
type object []member

type member struct {
	name  string
	value any
}

// literal is written as it is.
type literal string

func number(text string) json.Number { return json.Number(text) }

// valueOf converts decoded JSON to a value with sorted members.
func valueOf(decoded any) any {
	switch v := decoded.(type) {
	case map[string]any:
		out := object{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, member{name, valueOf(v[name])})
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = valueOf(element)
		}
		return out
	}
	return decoded
}

// encode writes a value as JSON.
func encode(value any) []byte {
	var out bytes.Buffer
	write(&out, value)
	return out.Bytes()
}

func write(out *bytes.Buffer, value any) {
	switch v := value.(type) {
	case literal:
		out.WriteString(string(v))
	case object:
		out.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			write(out, m.name)
			out.WriteByte(':')
			write(out, m.value)
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			write(out, element)
		}
		out.WriteByte(']')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("encode %T: %v", v, err)) // no other type is generated
		}
		out.Write(text)
	}
}

// walk calls visit with every place in a value, which can replace it.
func walk(value any, visit func(at any, replace func(any))) any {
	root := value
	var descend func(at any, replace func(any))
	descend = func(at any, replace func(any)) {
		visit(at, replace)
		switch v := at.(type) {
		case object:
			for i := range v {
				descend(v[i].value, func(with any) { v[i].value = with })
			}
		case []any:
			for i := range v {
				descend(v[i], func(with any) { v[i] = with })
			}
		}
	}
	descend(value, func(with any) { root = with })
	return root
}

// clone copies a value.
func clone(value any) any {
	switch v := value.(type) {
	case object:
		out := make(object, len(v))
		for i, m := range v {
			out[i] = member{m.name, clone(m.value)}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = clone(element)
		}
		return out
	}
	return value
}
