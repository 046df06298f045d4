// Package typeschema builds the JSON Schema of a file format from the Go types that
// strictjson decodes it into, so that the structure of the format is declared once. Callers
// add what a Go type cannot say: descriptions, required members and allowed values.
package typeschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Node is a JSON Schema, or a part of one.
type Node map[string]any

// Type says what a Go type does not say about the values that are decoded into it.
type Type struct {
	// Name is the name of the definition of a struct.
	Name        string
	Title       string
	Description string
	// Members has further keywords of the members of a struct, by their JSON name. A
	// value is a Node or a string, which stands for a description.
	Members  map[string]any
	Required []string
	// Keywords are further keywords of the schema itself.
	Keywords Node
	// Short is the schema of the short form of a struct that can also be written without
	// an object, such as text alone.
	Short Node
	// Values is the type of all members of an object whose Go type is no map.
	Values reflect.Type
	// Schema is the whole schema of a type that decodes itself, without a definition.
	Schema Node
}

// Types describes Go types.
type Types map[reflect.Type]Type

// Document returns the schema, with an id, of values that are decoded into the root type,
// which is a struct.
func (t Types) Document(id string, root reflect.Type) ([]byte, error) {
	b := builder{types: t, defs: Node{}}
	out := b.structure(root)
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["$id"] = id
	out["$defs"] = b.defs
	text, err := strictjson.Encode(out)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", root, err)
	}
	return append(text, '\n'), nil
}

type builder struct {
	types Types
	defs  Node
}

func (b *builder) schema(t reflect.Type) Node {
	described, known := b.types[t]
	switch {
	case known && described.Schema != nil:
		return maps.Clone(described.Schema)
	case known && described.Values != nil:
		out := Node{"type": "object", "additionalProperties": b.schema(described.Values)}
		maps.Copy(out, described.Keywords)
		return out
	case t == reflect.TypeFor[json.RawMessage]():
		return Node{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schema(t.Elem())
	case reflect.Bool:
		return Node{"type": "boolean"}
	case reflect.Int:
		return Node{"type": "integer"}
	case reflect.Float64:
		return Node{"type": "number"}
	case reflect.String:
		return Node{"type": "string"}
	case reflect.Slice:
		return Node{"type": "array", "items": b.schema(t.Elem())}
	case reflect.Map:
		return Node{"type": "object", "additionalProperties": b.schema(t.Elem())}
	case reflect.Struct:
		return b.ref(t)
	}
	return Node{} // any
}

// ref returns a reference to the definition of a struct, and adds it.
func (b *builder) ref(t reflect.Type) Node {
	described := b.types[t]
	if _, done := b.defs[described.Name]; !done {
		b.defs[described.Name] = nil // a type can contain itself
		def := b.structure(t)
		if described.Short != nil {
			def = Node{"anyOf": []Node{described.Short, def}}
		}
		b.defs[described.Name] = def
	}
	return Node{"$ref": "#/$defs/" + described.Name}
}

// structure returns the schema of a struct: an object with no other members than its
// fields.
func (b *builder) structure(t reflect.Type) Node {
	described := b.types[t]
	properties := Node{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		member := b.schema(field.Type)
		switch more := described.Members[name].(type) {
		case string:
			member["description"] = more
		case Node:
			maps.Copy(member, more)
		}
		properties[name] = member
	}
	out := Node{"type": "object", "additionalProperties": false, "properties": properties}
	if described.Title != "" {
		out["title"] = described.Title
	}
	if described.Description != "" {
		out["description"] = described.Description
	}
	if described.Required != nil {
		out["required"] = described.Required
	}
	maps.Copy(out, described.Keywords)
	return out
}
