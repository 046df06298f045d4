package integration_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
)

// operation returns the manifest of the shop with an operation that has the input and the
// request.
func operation(input, request string) string {
	return shop + `
operations:
  list_things:
    title: List things
    request: {path: /things, items: body.things}
    option: {value: item.id, label: item.name}
  add:
    title: Add
    input:
      ` + input + `
    request:
      ` + request + "\n"
}

const request = "{path: /things, query: {n: '${{ input.x }}'}}"

// The default, the example and the enum of an input fit it.
func TestParseChecksSamples(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"{type: string, default: a}":                                                                   "",
		"{type: string, default: 1}":                                                                   "/default: does not fit its own input: it must be text",
		"{type: string, example: [a]}":                                                                 "/example: does not fit its own input: it must be text",
		"{type: string, enum: [a, b], default: c}":                                                     "/default: does not fit its own input: it must be one of a, b",
		"{type: string, enum: [a, 1]}":                                                                 "/enum/1: does not fit its own input: it must be text",
		"{type: string, pattern: '^[a-z]+$', example: A1}":                                             "/example: does not fit its own input: it must match ^[a-z]+$",
		"{type: integer, default: 3, min: 1, max: 5}":                                                  "",
		"{type: integer, default: 3.5}":                                                                "/default: does not fit its own input: it must be a whole number",
		"{type: integer, default: 0, min: 1}":                                                          "/default: does not fit its own input: it must be at least 1",
		"{type: number, example: 5.5, max: 5}":                                                         "/example: does not fit its own input: it must be at most 5",
		"{type: number, example: '5'}":                                                                 "/example: does not fit its own input: it must be a number",
		"{type: boolean, default: 'yes'}":                                                              "/default: does not fit its own input: it must be true or false",
		"{type: time, example: '2026-01-31T09:00:00+02:00'}":                                           "",
		"{type: time, example: tomorrow}":                                                              "/example: does not fit its own input: it must be a time such as",
		"{type: file, example: a.txt}":                                                                 "/example: does not fit its own input: it must be left out",
		"{type: list, items: {type: string}, example: [a, b]}":                                         "",
		"{type: list, items: {type: string}, example: a}":                                              "/example: does not fit its own input: it must be a list",
		"{type: list, items: {type: string}, example: [a, 1]}":                                         "/example: does not fit its own input: it has an element 2 that must be text",
		"{type: list, items: {type: string, example: 1}}":                                              "/items/example: does not fit its own input: it must be text",
		"{type: object, example: {a: 1}}":                                                              "",
		"{type: object, example: []}":                                                                  "/example: does not fit its own input: it must be an object",
		"{type: object, properties: {a: {type: string}}, example: {b: x}}":                             "it has the member b, which the input does not have",
		"{type: object, properties: {a: {type: string}}, example: {a: 1}}":                             "it has a member a that must be text",
		"{type: object, properties: {a: {type: string, required: true}, b: {type: any}}, default: {}}": "it lacks a",
		"{type: any, default: {a: [1]}}":                                                               "",
		"{type: any, enum: [a, 1], default: 2}":                                                        "it must be one of a, 1",
	} {
		_, err := integration.Parse([]byte(operation("x: "+input, request)), nil)
		checkError(t, input, err, want)
	}
}

// The members of an object have the names of the service, which need not be those of
// inputs.
func TestParseNamesOfMembers(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"x: {type: object, properties: {shipTo: {type: string}, _id: {type: string}, all: {type: boolean}, x-y2: {type: any}}}": "",
		"xY: {type: string}": "/input/xY: the name of an input has lower-case letters",
		"x: {type: object, properties: {'a.b': {type: string}}}":                                 "/x/properties/a.b: the name of a member has letters",
		"x: {type: list, items: {type: object, properties: {'': {type: string}}}}":               "the name of a member has letters",
		"x: {type: object, properties: {" + strings.Repeat("a", 65) + ": {type: string}}}":       "the name of a member has letters",
		"x: {type: object, properties: {Y: {type: object, properties: {'2': {type: integer}}}}}": "/x/properties/Y/properties/2: the name of a member",
	} {
		_, err := integration.Parse([]byte(operation(input, request)), nil)
		checkError(t, input, err, want)
	}
}

// An expression that YAML has cut off at a comment is reported as that. A comment after a
// whole expression is no mistake.
func TestParseFindsComments(t *testing.T) {
	t.Parallel()
	const hint = `YAML takes "#`
	for request, want := range map[string]string{
		"path: /a\n      items: body.list # all of them":                     "",
		"path: /a\n      items: filter(body.list, # > 1)":                    `/operations/add/request/items: unexpected end of the expression: "(" is not closed. YAML takes "# > 1)" as a comment: put the whole expression in quotes`,
		"path: /a\n      items: \"filter(body.list, # > 1)\" # a comment":    "",
		"path: /a\n      items: body.list ==\n        any(body.list, # > 1)": hint,
		"path: /a\n      items: \"filter(\" # a comment":                     `"(" is not closed`,
		"path: /a\n      items: filter(\n      # a comment":                  `"(" is not closed`,
		"path: /${{ any(input.x, # > 1) }}":                                  "/operations/add/request/path: an expression lacks the }} at its end. " + hint,
		"path: /a\n      json: {a: 1}\n      errors:\n        - when: status == 409 # it exists\n          message: ${{ join(map(body.list, # + 1)) }}": "/errors/0/message: this ${{ has no closing }}, or a quote inside it is not closed. " + hint,
	} {
		_, err := integration.Parse([]byte(operation("x: {type: any}", request)), nil)
		checkError(t, request, err, want)
		if err != nil && !strings.Contains(want, hint) && strings.Contains(err.Error(), hint) {
			t.Errorf("%s: the error is about a comment: %v", request, err)
		}
	}
}

// checkError checks that an error contains a text, or that there is none.
func checkError(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: the error is %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: the error is %v, want %q", what, err, want)
	}
}
