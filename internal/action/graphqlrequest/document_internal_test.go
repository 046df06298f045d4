package graphqlrequest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/graphql-go/graphql/language/ast"
	reference "github.com/graphql-go/graphql/language/parser"
)

// documents are valid, with the operations in them.
var documents = map[string][]operation{
	"{ me { id } }":                  {{kind: query}},
	"query { me }":                   {{kind: query}},
	"query Me { me }":                {{kind: query, name: "Me"}},
	"mutation { pay(id: 1) { id } }": {{kind: mutation}},
	"subscription S { paid { id } }": {{kind: subscription, name: "S"}},
	"query Q($a: Int = 1, $b: [In!]! = [{x: 1}]) @x(y: {z: 1}) @w { f(in: {a: $a, b: [$b]}) }": {{kind: query, name: "Q", variables: []string{"a", "b"}}},
	"# mutation { a }\nquery { a # }\n}":                                           {{kind: query}},
	"{ a(s: \"} mutation { # \\\" \\\\\") }":                                       {{kind: query}},
	"{ a(s: \"\"\"} \"quoted\" \\\"\"\" { mutation\n# no comment\n\"\"\") { b } }": {{kind: query}},
	"{ a(s: \"\", t: \"\"\"\"\"\") }":                                              {{kind: query}},
	"fragment F on T { a } query A { ...F } mutation B { b { ... on T { c } } }":   {{kind: query, name: "A"}, {kind: mutation, name: "B"}},
	"query query { query: mutation }":                                              {{kind: query, name: "query"}},
	"query subscription { fragment }":                                              {{kind: query, name: "subscription"}},
	"fragment mutation on query @a { b }\n{ ...mutation }":                         {{kind: query}},
	"{ a(n: -1.5e+3, f: 0.1, l: [1, 2], e: E, t: true, o: {}) }":                   {{kind: query}},
	",,{,a,b,},":          {{kind: query}},
	"\ufeff{ a }":         {{kind: query}},
	"{\r\n  a\r\n}\r\n":   {{kind: query}},
	"fragment F on T {a}": nil,
}

func TestDocument(t *testing.T) {
	t.Parallel()
	for document, want := range documents {
		got, err := parseDocument(document)
		if err != nil {
			t.Errorf("%s: %v", document, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(operation{})); diff != "" {
			t.Errorf("%s:\n%s", document, diff)
		}
		if diff := cmp.Diff(want, referenceOperations(t, document), cmp.AllowUnexported(operation{})); diff != "" {
			t.Errorf("the reference differs for %s:\n%s", document, diff)
		}
	}
}

// Descriptions and null are newer than the reference implementation.
func TestNewerSyntax(t *testing.T) {
	t.Parallel()
	got, err := parseDocument("\"\"\"Reads {\"\"\"\nquery A { a }\n\"of B\" mutation B { b(v: null) }")
	if diff := cmp.Diff([]operation{{kind: query, name: "A"}, {kind: mutation, name: "B"}}, got, cmp.AllowUnexported(operation{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestInvalidDocuments(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"{ a":                       `line 1: "{" is not closed`,
		"query {\n a(b: [1)\n}":     `line 2: unexpected ")"`,
		"query }":                   `line 1: unexpected "}"`,
		"query A B { a }":           `line 1: unexpected "B"`,
		"query A":                   "line 1: unexpected the end",
		"{ a }\n\nselect":           `line 3: expected an operation or a fragment, found "select"`,
		"type T { a: Int }":         `line 1: expected an operation or a fragment, found "type"`,
		"{}":                        "line 1: nothing is selected",
		"{ a(s: \"x\n\") }":         "line 1: a string is not closed",
		"{ a(s: \"\"\"x\\\"\"\") }": "line 1: a string is not closed",
		"# a\r\n# b\r# c\n{ a; }":   `line 4: unexpected character ';'`,
		"{ a(s: 'x') }":             `line 1: unexpected character '\''`,
		"{ é }":                     `line 1: unexpected character 'é'`,
		"fragment on on T { a }":    "line 1: a fragment needs a name",
		"fragment F T { a }":        `line 1: unexpected "T"`,
		"mutation @ { a }":          `line 1: unexpected "{"`,
		"\"\"\"only\"\"\"":          "line 1: unexpected the end",
		"{ a } 1":                   "line 1: unexpected a number",
		"query Q($a: Int { a }":     `line 1: "(" is not closed`,
	} {
		_, err := parseDocument(document)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
		if _, err := reference.Parse(reference.ParseParams{Source: document}); err == nil && !strings.HasPrefix(document, "type ") {
			t.Errorf("the reference accepts %s", document)
		}
	}
}

func TestFindOperation(t *testing.T) {
	t.Parallel()
	a, b, unnamed := operation{kind: query, name: "A"}, operation{kind: mutation, name: "B"}, operation{kind: query}
	for _, test := range []struct {
		all             []operation
		name            string
		want            operation
		member, problem string
	}{
		{[]operation{a}, "", a, "", ""},
		{[]operation{a, b}, "B", b, "", ""},
		{[]operation{unnamed}, "", unnamed, "", ""},
		{nil, "", operation{}, "query", "has no operation, only fragments"},
		{[]operation{a, b}, "", operation{}, "operation_name", "is required, because the query has several operations: A, B"},
		{[]operation{a, b}, "C", operation{}, "operation_name", `the query has no operation "C", only A, B`},
		{[]operation{unnamed}, "A", operation{}, "operation_name", "the operation of the query has no name"},
		{[]operation{unnamed, a}, "A", operation{}, "query", "an operation without a name must be the only one"},
		{[]operation{a, a}, "A", operation{}, "query", `has two operations named "A"`},
	} {
		got, member, problem := findOperation(test.all, test.name)
		if !cmp.Equal(got, test.want, cmp.AllowUnexported(operation{})) || member != test.member || problem != test.problem {
			t.Errorf("%v %q: got %v, %s: %s", test.all, test.name, got, member, problem)
		}
	}
}

// FuzzDocument compares with the parser of another implementation: whatever that accepts
// has the same operations, unless it defines a schema.
func FuzzDocument(f *testing.F) {
	for document := range documents {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		got, err := parseDocument(document)
		if syntax := (*syntaxError)(nil); err != nil && !errors.As(err, &syntax) {
			t.Fatalf("%T %v", err, err)
		}
		parsed, failed := parseReference(document)
		if failed != nil || definesSchema(parsed) {
			return
		}
		if err != nil {
			t.Fatalf("rejected: %v", err)
		}
		if diff := cmp.Diff(operationsOf(parsed), got, cmp.AllowUnexported(operation{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func parseReference(document string) (*ast.Document, error) {
	return reference.Parse(reference.ParseParams{Source: document, Options: reference.ParseOptions{NoLocation: true}})
}

func referenceOperations(t *testing.T, document string) []operation {
	t.Helper()
	parsed, err := parseReference(document)
	if err != nil {
		t.Errorf("%s: %v", document, err)
		return nil
	}
	return operationsOf(parsed)
}

func definesSchema(document *ast.Document) bool {
	for _, definition := range document.Definitions {
		switch definition.(type) {
		case *ast.OperationDefinition, *ast.FragmentDefinition:
		default:
			return true
		}
	}
	return false
}

func operationsOf(document *ast.Document) []operation {
	var out []operation
	for _, definition := range document.Definitions {
		found, ok := definition.(*ast.OperationDefinition)
		if !ok {
			continue
		}
		o := operation{kind: kind(found.Operation)}
		if found.Name != nil {
			o.name = found.Name.Value
		}
		for _, variable := range found.VariableDefinitions {
			o.variables = append(o.variables, variable.Variable.Name.Value)
		}
		out = append(out, o)
	}
	return out
}
