package typeschema_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/typeschema"
)

type tree struct {
	Name     string            `json:"name"`
	Size     int               `json:"size"`
	Weight   *float64          `json:"weight"`
	Green    bool              `json:"green"`
	Tags     []string          `json:"tags"`
	Labels   map[string]string `json:"labels"`
	Branches []tree            `json:"branches"`
	Roots    roots             `json:"roots"`
	Age      age               `json:"age"`
	Data     any               `json:"data"`
	Raw      json.RawMessage   `json:"raw"`
	Ignored  string            `json:"-"`
}

// roots stands for a type that decodes itself from an object.
type roots []tree

// age stands for a type that decodes itself from a number or a text.
type age struct{}

func TestDocument(t *testing.T) {
	t.Parallel()
	types := typeschema.Types{
		reflect.TypeFor[tree](): {
			Name: "tree", Title: "Tree", Description: "A tree.", Required: []string{"name"},
			Members:  map[string]any{"name": "Its name.", "size": typeschema.Node{"minimum": 1, "description": "Its size."}},
			Keywords: typeschema.Node{"minProperties": 1},
			Short:    typeschema.Node{"type": "string"},
		},
		reflect.TypeFor[age]():   {Schema: typeschema.Node{"type": []string{"integer", "string"}}},
		reflect.TypeFor[roots](): {Values: reflect.TypeFor[tree](), Keywords: typeschema.Node{"propertyNames": typeschema.Node{"pattern": "^[a-z]+$"}}},
	}
	got, err := types.Document("urn:tree", reflect.TypeFor[tree]())
	if err != nil {
		t.Fatal(err)
	}
	const object = `"title": "Tree", "description": "A tree.", "type": "object", "additionalProperties": false, "minProperties": 1, "required": ["name"],
		"properties": {
			"name": {"type": "string", "description": "Its name."}, "size": {"type": "integer", "minimum": 1, "description": "Its size."},
			"weight": {"type": "number"}, "green": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
			"labels": {"type": "object", "additionalProperties": {"type": "string"}}, "branches": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
			"roots": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}, "propertyNames": {"pattern": "^[a-z]+$"}},
			"age": {"type": ["integer", "string"]}, "data": {}, "raw": {}
		}`
	want := `{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:tree", ` + object + `,
		"$defs": {"tree": {"anyOf": [{"type": "string"}, {` + object + `}]}}}`
	if diff := cmp.Diff(decode(t, []byte(want)), decode(t, got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func decode(t *testing.T, text []byte) (out any) {
	t.Helper()
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}
