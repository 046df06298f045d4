package integration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration"
)

// lists is a manifest with dropdowns and a form that depend on other inputs.
const lists = shop + `
operations:
  list_shelves:
    title: List shelves
    input: {text: {type: string, search: true}}
    request: {path: /shelves, query: {q: "${{ input.text }}"}, items: body, page: {next: body.next}}
    option: {value: item.id, label: item.name}
  list_fields:
    title: List fields
    hidden: true
    input: {shelf: {type: string, required: true}, language: {type: string}}
    request: {method: POST, path: "/shelves/${{ input.shelf }}/fields", idempotency: safe, items: body}
    field: {name: item.name, type: "'string'"}
    option: {value: item.name, label: item.name}
  add:
    title: Add
    input:
      shelf: {type: string, required: true, options: list_shelves}
      items: {type: list, items: {type: object, fields: list_fields}}
      sort: {type: object, properties: {by: {type: string, options: list_fields}}}
    request: {method: POST, path: /items, json: "${{ input.items }}"}
`

// The schema of an input says which operation lists its values, what that depends on, and
// whether it can be searched.
func TestSchemaOfListedInputs(t *testing.T) {
	t.Parallel()
	i := parse(t, lists)
	add, _ := i.FindOperation("add")
	const want = `{"type":"object","required":["shelf"],"additionalProperties":false,"properties":{` +
		`"shelf":{"type":"string","title":"Shelf","x-options":"list_shelves","x-searchable":true,"minLength":1},` +
		`"items":{"type":"array","title":"Items","items":{"type":"object","x-fields":"list_fields","x-depends-on":["shelf"],"x-needs":["shelf"]}},` +
		`"sort":{"type":"object","title":"Sort","additionalProperties":false,"properties":{"by":{"type":"string","title":"By","x-options":"list_fields","x-depends-on":["shelf"],"x-needs":["shelf"]}}}}}`
	if diff := cmp.Diff(want, add.InputSchema()); diff != "" {
		t.Error(diff)
	}
}

func TestListedInputsOfManifests(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ old, changed, message string }{
		{"options: list_shelves", "options: list_shelvs", `/operations/add/input/shelf/options: there is no operation "list_shelvs" (did you mean "list_shelves"?)`},
		{"options: list_shelves", "options: add", "/operations/add/input/shelf/options: the operation add has no option"},
		{"by: {type: string, options: list_fields}", "by: {type: object, fields: list_shelves}", "/operations/add/input/sort/properties/by/fields: the operation list_shelves has no field"},
		{"idempotency: safe, ", "", "/operations/add/input/items/items/fields: the operation list_fields may have effects"},
		{"      shelf: {type: string, required: true, options: list_shelves}\n", "", "/operations/add/input/items/items/fields: the operation list_fields needs the input shelf, which add does not have"},
		{"shelf: {type: string, required: true, options: list_shelves}", "shelf: {type: string, required: true, options: list_fields}", "/operations/add/input/shelf/options: the operation list_fields needs the input shelf"},
		{"shelf: {type: string, required: true, options: list_shelves}", "shelf: {type: list, items: {type: string}, options: list_shelves}", "/operations/add/input/shelf/options: belongs to a type of string, integer, number, time, any; for a list, to its items"},
		{"text: {type: string, search: true}", "text: {type: string, search: true, required: true}", "/operations/list_shelves/input/text/search: belongs to an input of the type string that is not required"},
	} {
		if !strings.Contains(lists, tc.old) {
			t.Fatalf("the manifest has no %s", tc.old)
		}
		_, err := integration.Parse([]byte(strings.Replace(lists, tc.old, tc.changed, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%s instead of %s: the error is %v, want %q", tc.changed, tc.old, err, tc.message)
		}
	}
}
