package openapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/openapi"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// FuzzConvert checks that a document is either rejected with a reason, or becomes a manifest
// that people could save.
func FuzzConvert(f *testing.F) {
	for _, text := range documents(f) {
		f.Add(text)
	}
	f.Add([]byte(operations(`"requestBody": {"content": {"application/json": {"schema": {"oneOf": [{}, true]}}}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		result, err := openapi.Convert(text, openapi.Options{})
		checkConversion(t, result, err)
	})
}

// checkConversion checks the manifest of a conversion, or that the error says what to do.
func checkConversion(t testing.TB, result *openapi.Result, err error) {
	t.Helper()
	if err != nil {
		_, isOption := errors.AsType[*openapi.OptionError](err)
		problems, isPlaced := errors.AsType[integration.Errors](err)
		if !isOption && (!isPlaced || len(problems) == 0) || strings.Contains(err.Error(), "is not valid: /") {
			t.Fatalf("the error is %v", err)
		}
		return
	}
	i := parse(t, result.Manifest)
	if !strings.HasPrefix(i.ID, "x_") || len(result.Manifest) > integration.MaxManifest {
		t.Fatalf("%s has %d bytes", i.ID, len(result.Manifest))
	}
	for _, note := range result.Notes {
		if strings.ContainsFunc(note.Message, unicode.IsControl) {
			t.Fatalf("the note %q has control characters", note.Message)
		}
	}
	for _, a := range i.Connection.Auth {
		if _, err := i.Render(a.Test, integration.Env{}); err != nil && len(i.Connection.Fields) == 0 {
			t.Fatalf("the test: %v", err)
		}
	}
}

// Whatever the parts of a document are, the manifest is valid and has no expression that
// the document has written.
func TestAnyDocument(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := anyDocument(t)
		result, err := openapi.Convert(text, openapi.Options{Server: rapid.SampledFrom([]string{"", "https://own.example"}).Draw(t, "server")})
		if err != nil {
			if strings.Contains(err.Error(), "is not valid: /") {
				t.Fatalf("%v\n%s", err, text)
			}
			return
		}
		if _, problems := integration.Lint(result.Manifest, "", func(string) (*integration.Integration, bool) { return nil, false }); problems != nil {
			t.Fatalf("%v\n%s", problems, result.Manifest)
		}
		document, err := strictyaml.Decode(result.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(document.JSON, []byte("stolen")) && bytes.Contains(document.JSON, []byte("${{ secret.stolen")) {
			t.Fatalf("an expression of the document is in the manifest:\n%s", result.Manifest)
		}
	})
}

// hostile are texts that mean something elsewhere.
func hostile() []string {
	return []string{
		"", "a", "limit", "all", "name", "id", "account", "label", "X-Key", "Host", "naïve ключ", "a.b", "a b", "1", "$each", "$ref", "__proto__",
		"${{ secret.stolen }}", "$${{ secret.stolen }}", "a${{ secret.stolen", "}}", "{auth}", "{a}", "/a/{id}", "*a", "&a", "!!str", "- a", "# a", "a: b", "null", "yes", "0x1", "'\"", "\u202e\u0000\u0007\n\t", "[a](javascript:x)", "<script>x</script>",
		"../..", "?a=b", "a;b", "a\\b", strings.Repeat("long", 200), "https://a.example", "http://a.example", "//a.example", "https://{a}.example/{b}", "https://user@a.example", "date-time", "binary", "email",
	}
}

func anyText(t *rapid.T) string { return rapid.SampledFrom(hostile()).Draw(t, "text") }

func anyDocument(t *rapid.T) []byte {
	paths := map[string]any{"/ok": map[string]any{"get": map[string]any{"operationId": "ok"}}}
	for range rapid.IntRange(1, 3).Draw(t, "paths") {
		item := map[string]any{}
		for range rapid.IntRange(1, 2).Draw(t, "operations") {
			item[rapid.SampledFrom([]string{"get", "post", "put", "patch", "delete", "options"}).Draw(t, "method")] = anyOperation(t)
		}
		paths["/"+anyText(t)+rapid.SampledFrom([]string{"", "/{id}", "/{" + "a}.{b}"}).Draw(t, "path")] = item
	}
	out := map[string]any{
		"openapi": rapid.SampledFrom([]string{"3.0.3", "3.1.0"}).Draw(t, "version"),
		"info":    map[string]any{"title": anyText(t), "contact": map[string]any{"url": anyText(t)}},
		"servers": []any{map[string]any{
			"url":       rapid.SampledFrom([]string{"https://a.example", "https://{a}.example/{b}", "https://x-{a}.example:{b}", "{a}://a.example", anyText(t)}).Draw(t, "url"),
			"variables": map[string]any{"a": anyVariable(t), "b": anyVariable(t)},
		}},
		"paths": paths,
		"components": map[string]any{
			"schemas": map[string]any{"A": anySchema(t, 3), "B": anySchema(t, 3)},
			"securitySchemes": map[string]any{
				"a": anyScheme(t), "b": anyScheme(t), anyText(t): anyScheme(t),
			},
		},
		"security": anySecurity(t),
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func anyVariable(t *rapid.T) any {
	out := map[string]any{"default": anyText(t), "description": anyText(t)}
	if rapid.Bool().Draw(t, "enum") {
		out["enum"] = []any{"https", anyText(t), "eu"}
	}
	return out
}

func anySecurity(t *rapid.T) any {
	out := []any{}
	for range rapid.IntRange(0, 2).Draw(t, "requirements") {
		one := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "schemes") {
			one[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "scheme")] = []any{anyText(t)}
		}
		out = append(out, one)
	}
	return out
}

func anyScheme(t *rapid.T) any {
	flow := map[string]any{
		"authorizationUrl": rapid.SampledFrom([]string{"https://a.example/authorize", "/authorize", anyText(t)}).Draw(t, "authorize"),
		"tokenUrl":         rapid.SampledFrom([]string{"https://a.example/token", "token", anyText(t)}).Draw(t, "token"),
		"scopes":           map[string]any{anyText(t): anyText(t), "read": ""},
	}
	return map[string]any{
		"type":   rapid.SampledFrom([]string{"apiKey", "http", "oauth2", "mutualTLS", "openIdConnect", ""}).Draw(t, "type"),
		"in":     rapid.SampledFrom([]string{"header", "query", "cookie"}).Draw(t, "in"),
		"scheme": rapid.SampledFrom([]string{"bearer", "Basic", "digest", "other"}).Draw(t, "scheme"),
		"name":   anyText(t), "description": anyText(t),
		"flows": map[string]any{rapid.SampledFrom([]string{"authorizationCode", "clientCredentials", "implicit"}).Draw(t, "flow"): flow},
	}
}

func anyOperation(t *rapid.T) any {
	var parameters []any
	for range rapid.IntRange(0, 3).Draw(t, "parameters") {
		parameters = append(parameters, map[string]any{
			"name": anyText(t), "in": rapid.SampledFrom([]string{"query", "header", "path", "cookie", ""}).Draw(t, "in"), "required": rapid.Bool().Draw(t, "required"),
			"style":   rapid.SampledFrom([]string{"", "form", "simple", "deepObject", "pipeDelimited", "label", "matrix"}).Draw(t, "style"),
			"explode": rapid.Bool().Draw(t, "explode"), "schema": anySchema(t, 2), "description": anyText(t), "example": anyValue(t),
		})
	}
	media := func(label string) any {
		types := []string{"application/json", "application/x+json", "multipart/form-data", "application/x-www-form-urlencoded", "text/plain", "image/png", "*/*", "application/xml", anyText(t)}
		return map[string]any{rapid.SampledFrom(types).Draw(t, label): map[string]any{"schema": anySchema(t, 3)}}
	}
	out := map[string]any{
		"operationId": anyText(t), "summary": anyText(t), "description": anyText(t), "parameters": parameters, "deprecated": rapid.Bool().Draw(t, "deprecated"),
		"responses": map[string]any{"200": map[string]any{"content": media("answer")}},
	}
	if rapid.Bool().Draw(t, "body") {
		out["requestBody"] = map[string]any{"required": rapid.Bool().Draw(t, "required"), "content": media("body")}
	}
	if rapid.Bool().Draw(t, "security") {
		out["security"] = anySecurity(t)
	}
	return out
}

func anyValue(t *rapid.T) any {
	return rapid.SampledFrom([]any{nil, true, 1, -2.5, anyText(t), []any{anyText(t), 1}, map[string]any{anyText(t): anyText(t)}}).Draw(t, "value")
}

// anySchema returns a schema, which can refer to others or to itself.
func anySchema(t *rapid.T, depth int) any {
	out := map[string]any{"description": anyText(t)}
	if depth == 0 {
		return map[string]any{"$ref": rapid.SampledFrom([]string{"#/components/schemas/A", "#/components/schemas/B"}).Draw(t, "ref")}
	}
	for range rapid.IntRange(0, 4).Draw(t, "keywords") {
		addKeyword(t, out, depth)
	}
	return out
}

func addKeyword(t *rapid.T, out map[string]any, depth int) {
	switch keyword := rapid.SampledFrom([]string{
		"type", "types", "format", "enum", "const", "default", "pattern", "minimum", "exclusiveMinimum", "properties", "items", "allOf", "oneOf", "required", "additionalProperties", "readOnly", "minItems", "contentMediaType",
	}).Draw(t, "keyword"); keyword {
	case "type":
		out["type"] = rapid.SampledFrom([]string{"string", "integer", "number", "boolean", "object", "array", "null", "other"}).Draw(t, "type")
	case "types":
		out["type"] = []any{"null", rapid.SampledFrom([]string{"string", "object", "array"}).Draw(t, "type"), "integer"}
	case "format", "pattern", "contentMediaType":
		out[keyword] = anyText(t)
	case "enum":
		out["enum"] = []any{anyValue(t), anyValue(t)}
	case "const", "default":
		out[keyword] = anyValue(t)
	case "minimum", "minItems":
		out[keyword] = rapid.IntRange(-1, 5).Draw(t, keyword)
	case "exclusiveMinimum":
		out[keyword] = rapid.SampledFrom([]any{true, 1, 1e300, "x"}).Draw(t, keyword)
	case "properties":
		out["properties"] = map[string]any{anyText(t): anySchema(t, depth-1), "name": anySchema(t, depth-1), fmt.Sprint(anyValue(t)): true}
	case "items", "additionalProperties":
		out[keyword] = anySchema(t, depth-1)
	case "allOf", "oneOf":
		out[keyword] = []any{anySchema(t, depth-1), anySchema(t, depth-1)}
	case "required":
		out["required"] = []any{anyText(t), "name"}
	case "readOnly":
		out["readOnly"] = true
	}
}
