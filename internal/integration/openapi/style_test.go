package openapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration/openapi"
)

// Values are sent as the examples of styles in the OpenAPI specification show. Members of
// objects are in alphabetical order.
func TestStyles(t *testing.T) {
	t.Parallel()
	const (
		text   = `{"type": "string", "example": "blue"}`
		list   = `{"type": "array", "items": {"type": "string"}, "example": ["blue", "black", "brown"]}`
		rgb    = `{"type": "object", "properties": {"B": {"type": "integer", "example": 150}, "G": {"type": "integer", "example": 200}, "R": {"type": "integer", "example": 100}}}`
		query  = "query"
		path   = "path"
		header = "header"
	)
	for _, tc := range []struct{ in, style, schema, want string }{
		{query, `"style": "form"`, text, "color=blue"},
		{query, `"style": "form", "explode": true`, list, "color=blue&color=black&color=brown"},
		{query, `"style": "form", "explode": false`, list, "color=blue,black,brown"},
		{query, `"style": "form", "explode": true`, rgb, "B=150&G=200&R=100"},
		{query, `"style": "form", "explode": false`, rgb, "color=B,150,G,200,R,100"},
		{query, `"style": "spaceDelimited", "explode": false`, list, "color=blue black brown"},
		{query, `"style": "pipeDelimited", "explode": false`, list, "color=blue|black|brown"},
		{query, `"style": "deepObject", "explode": true`, rgb, "color[B]=150&color[G]=200&color[R]=100"},
		{query, `"style": "deepObject", "explode": true`, list, "color[0]=blue&color[1]=black&color[2]=brown"},
		{path, `"style": "simple"`, text, "blue"},
		{path, `"style": "simple"`, list, "blue,black,brown"},
		{path, `"style": "simple"`, rgb, "B,150,G,200,R,100"},
		{path, `"style": "simple", "explode": true`, rgb, "B=150,G=200,R=100"},
		{path, `"style": "label"`, text, ".blue"},
		{path, `"style": "matrix"`, text, ";color=blue"},
		{header, `"style": "simple"`, text, "blue"},
		{header, `"style": "simple"`, list, "blue,black,brown"},
		{header, `"style": "simple", "explode": true`, rgb, "B=150,G=200,R=100"},
	} {
		at := map[string]string{path: "/things/{color}"}[tc.in]
		if at == "" {
			at = "/things"
		}
		name := "color"
		if tc.in == header {
			name = "X-Color"
		}
		parameter := fmt.Sprintf(`{"name": %q, "in": %q, "required": true, %s, "schema": %s}`, name, tc.in, tc.style, tc.schema)
		r := only(t, document(`{"`+at+`": {"get": {"operationId": "one", "parameters": [`+parameter+`]}}}`, "{}"))
		got := map[string]string{
			query: decoded(r), path: strings.TrimPrefix(r.URL.Path, "/api/things/"), header: r.Header.Get("X-Color"),
		}[tc.in]
		if got != tc.want {
			t.Errorf("%s, %s, %s: got %s, want %s", tc.in, tc.style, tc.schema, got, tc.want)
		}
	}
}

// only returns the request of the only operation of a document, with all its inputs.
func only(t *testing.T, document string) *http.Request {
	t.Helper()
	result, err := openapi.Convert([]byte(document), openapi.Options{ID: "x_oracle"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&oracle{}).compose(t, result.Manifest, result.Operations[0], true)
	if err != nil {
		t.Fatalf("%v\n%s", err, result.Manifest)
	}
	return r
}

func decoded(r *http.Request) string {
	return strings.NewReplacer("%2C", ",", "%7C", "|", "+", " ", "%5B", "[", "%5D", "]").Replace(r.URL.RawQuery)
}

// The fields of a form are encoded as the document says, and files and objects are parts of
// a form with files.
func TestBodies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, kind, want string }{
		"a form": {
			`"application/x-www-form-urlencoded": {"schema": {"properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}, "c": {"type": "array", "items": {"type": "integer"}}}}, "encoding": {"c": {"style": "deepObject", "explode": true}}}`,
			"application/x-www-form-urlencoded", "a%5Bb%5D=text&c%5B0%5D=3",
		},
		"a form with a list in one field": {
			`"application/x-www-form-urlencoded": {"schema": {"properties": {"c": {"type": "array", "items": {"type": "integer"}}}}, "encoding": {"c": {"explode": false}}}`,
			"application/x-www-form-urlencoded", "c=3",
		},
		"a constant": {
			`"application/json": {"schema": {"required": ["type", "on", "no"], "properties": {"type": {"type": "string", "const": "card"}, "no": {"const": ""}, "on": {"const": false, "type": "boolean"}, "id": {"type": "integer", "readOnly": true}}}}`,
			"application/json", `{"no":"","on":false,"type":"card"}`,
		},
		"JSON of another type": {`"application/merge-patch+json": {"schema": {"properties": {"a": {"type": ["string", "null"]}}}}`, "application/merge-patch+json", `{"a":"text"}`},
		"a list":               {`"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}`, "application/json", `["text"]`},
		"text":                 {`"text/plain": {"schema": {"type": "string"}}`, "text/plain", "text"},
		"bytes":                {`"image/png": {"schema": {"type": "string", "format": "binary"}}`, "image/png", fileContent},
		"an object in a form with files": {
			`"multipart/form-data": {"schema": {"properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}}`,
			"multipart/form-data", `Content-Type: application/json` + "\r\n\r\n" + `{"b":"text"}`,
		},
	} {
		r := only(t, operations(`"requestBody": {"required": true, "content": {`+tc.body+`}}`))
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != tc.kind || !strings.Contains(string(body), tc.want) || tc.kind != "multipart/form-data" && string(body) != tc.want {
			t.Errorf("%s: got %s: %s, want %s: %s", name, kind, body, tc.kind, tc.want)
		}
	}
}
