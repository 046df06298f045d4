package openapi_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/openapi"
)

// document returns a document with paths and components.
func document(paths, components string) string {
	return `{"openapi": "3.1.0", "info": {"title": "Shop"}, "servers": [{"url": "https://shop.example/api"}],
"paths": ` + paths + `, "components": ` + components + "}"
}

// operations returns a document with an operation whose members are given.
func operations(members string) string {
	return document(`{"/things": {"post": {"operationId": "add", `+members+`, "responses": {}}}}`, "{}")
}

// A document that cannot be read is rejected with the place of the problem.
func TestReadRejects(t *testing.T) {
	t.Parallel()
	ref := func(to string) string {
		return operations(`"requestBody": {"$ref": "` + to + `"}`)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":               {"", "the document is empty"},
		"text":                  {"hello", "is not an OpenAPI document"},
		"another object":        {"{}", "it has no member openapi"},
		"OpenAPI 2":             {"swagger: '2.0'\npaths: {}", `line 1:10: /swagger: is an OpenAPI 2 (Swagger) document: convert it to OpenAPI 3 first`},
		"another version":       {`{"openapi": "4.0.0"}`, "line 1:13: /openapi: the version must be 3.0 or 3.1"},
		"a number":              {"openapi: 3.1", "line 1:10: /openapi: the version must be 3.0 or 3.1"},
		"no operations":         {`{"openapi": "3.0.0", "paths": {"/a": {}}}`, "/paths: the document has no operations"},
		"a syntax error":        {"openapi: 3.1.0\npaths: [", "line 2:8: /paths: the bracket is not closed"},
		"JSON that is cut":      {`{"openapi": "3.1.0", `, "line 1:"},
		"a repeated member":     {`{"openapi": "3.1.0", "openapi": "3.0.0"}`, "line 1:22: /openapi"},
		"an anchor":             {"openapi: 3.1.0\npaths: &a {}", "line 2:8: /paths: anchors"},
		"an alias":              {"openapi: 3.1.0\npaths: *a", "line 2:8: /paths: aliases"},
		"a merge key":           {"openapi: 3.1.0\npaths:\n  <<: {}", "line 3:"},
		"a file":                {ref("other.yaml#/a"), `line 2:`},
		"a URL":                 {ref("https://shop.example/a.json"), `/paths/~1things/post/requestBody/$ref: refers to something outside of the document`},
		"an anchor of 3.1":      {ref("#body"), `"#body" is no JSON pointer`},
		"nothing there":         {ref("#/components/schemas/No~1thing"), `there is nothing at "#/components/schemas/No~1thing"`},
		"itself":                {ref("#/paths/~1things/post/requestBody"), "refers to itself"},
		"too much":              {strings.Repeat(" ", 5<<20+1), "larger than 5 MiB"},
		"too deep":              {operations(`"x": ` + strings.Repeat("[", 70) + strings.Repeat("]", 70)), "64"},
		"too many paths":        {document("{"+manyPaths(10_001)+"}", "{}"), "more than 10000"},
		"too many values":       {operations(`"x": [` + strings.Repeat("[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],", 30_000) + "0]"), "more than 500000 values"},
		"invalid UTF-8":         {"{\"openapi\": \"\xff\"}", "UTF-8"},
		"many broken $refs":     {document(`{"/a": {"get": {"parameters": [`+strings.Repeat(`{"$ref": "#/x"},`, 100)+`{"$ref": "#/x"}]}}}`, "{}"), "there is nothing at"},
		"a ref that is no $ref": {operations(`"requestBody": {"$ref": 1}, "x": 1`), ""},
	} {
		_, err := openapi.Read([]byte(tc.text))
		switch problems, isPlaced := errors.AsType[integration.Errors](err); {
		case tc.want == "":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !isPlaced || !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		case len(problems) > 20:
			t.Errorf("%s: there are %d problems", name, len(problems))
		}
	}
}

// An option that does not fit the document is an error that names it.
func TestOptions(t *testing.T) {
	t.Parallel()
	pets := documents(t)["pets"]
	relative := []byte(`{"openapi": "3.0.0", "info": {}, "servers": [{"url": "/v3"}], "paths": {"/a": {"get": {}}}}`)
	for name, tc := range map[string]struct {
		document []byte
		options  openapi.Options
		option   string
		want     string
	}{
		"an id without x_":         {pets, openapi.Options{ID: "pets"}, "id", "must begin with x_"},
		"a category":               {pets, openapi.Options{Category: "pets"}, "category", "must be one of ai, commerce"},
		"an operation":             {pets, openapi.Options{Operations: []string{"list_pet"}}, "operations", `no operation "list_pet" (did you mean "list_pets"?)`},
		"a pattern":                {pets, openapi.Options{Operations: []string{"[a"}}, "operations", "is not a pattern"},
		"a long pattern":           {pets, openapi.Options{Operations: []string{strings.Repeat("a", 301)}}, "operations", "is longer than 300 characters"},
		"many patterns":            {pets, openapi.Options{Operations: make([]string, 1_000_000)}, "operations", "has too many names"},
		"deprecated operations":    {pets, openapi.Options{Operations: []string{"delete_*"}}, "operations", "fits deprecated operations only"},
		"a test":                   {pets, openapi.Options{Test: "list_cats"}, "test", `no operation "list_cats"`},
		"a test with input":        {pets, openapi.Options{Test: "get_pet"}, "test", "must be a GET that returns JSON and needs no input"},
		"a server without https":   {pets, openapi.Options{Server: "http://pets.example"}, "server", "must be an https URL"},
		"a server with a query":    {pets, openapi.Options{Server: "https://pets.example/?a"}, "server", "must be an https URL"},
		"a server with a variable": {pets, openapi.Options{Server: "https://{a}.pets.example"}, "server", "must be an https URL"},
		"a relative server":        {relative, openapi.Options{}, "server", `(the first is "/v3"): give its https URL`},
	} {
		_, err := openapi.Convert(tc.document, tc.options)
		problem, ok := errors.AsType[*openapi.OptionError](err)
		if !ok || problem.Option != tc.option || !strings.Contains(problem.Message, tc.want) {
			t.Errorf("%s: the error is %v, want %s: %s", name, err, tc.option, tc.want)
		}
	}
	result, err := openapi.Convert(relative, openapi.Options{ID: "x_own", Name: "Own", Category: "files", Server: "https://own.example/v3/"})
	if err != nil {
		t.Fatal(err)
	}
	i := parse(t, result.Manifest)
	if i.ID != "x_own" || i.Name != "Own" || i.Category != "files" || i.BaseURL.Source() != "https://own.example/v3" {
		t.Errorf("the integration is %s", result.Manifest)
	}
}

func parse(t testing.TB, manifest []byte) *integration.Integration {
	t.Helper()
	i, problems := integration.Lint(manifest, "", func(string) (*integration.Integration, bool) { return nil, false })
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, manifest)
	}
	return i
}

// Operations are chosen by name, operationId or pattern. Deprecated ones must be named.
func TestChosenOperations(t *testing.T) {
	t.Parallel()
	pets := documents(t)["pets"]
	for _, tc := range []struct{ chosen, want string }{
		{"delete_pet", "delete_pet"},
		{"*_pet", "add_pet get_pet replace_pet"},
		{"deletePet list_pets", "list_pets delete_pet"},
		{"upload-photo", "upload_photo"},
	} {
		result, err := openapi.Convert(pets, openapi.Options{Operations: strings.Fields(tc.chosen)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(result.Operations, " "); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.chosen, got, tc.want)
		}
		if got := parse(t, result.Manifest).OperationNames(); !slices.Equal(got, result.Operations) {
			t.Errorf("%s: the manifest has %v", tc.chosen, got)
		}
	}
}

// What a manifest cannot have is left out with a note that says why.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	const good = `"/ok": {"get": {"operationId": "ok", "responses": {}}}, `
	for name, tc := range map[string]struct{ paths, want string }{
		"a method":             {`"/a": {"options": {"operationId": "a"}}`, "/paths/~1a/options: a is left out: operations do not have the method OPTIONS"},
		"a cookie":             {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "c", "in": "cookie", "required": true}]}}`, "a is left out: it needs a cookie"},
		"a body of GET":        {`"/a": {"get": {"operationId": "a", "requestBody": {"required": true, "content": {"application/json": {}}}}}`, "it needs a body, which GET does not have"},
		"a query in the path":  {`"/a?b=c": {"get": {"operationId": "a"}}`, "its path has a query or a fragment"},
		"an expression":        {`"/a/${{ input.x }}": {"get": {"operationId": "a"}}`, "its path is not valid"},
		"an escape":            {`"/a/${b}": {"get": {"operationId": "a"}}`, "its path is not valid"},
		"dots":                 {`"/a/../b": {"get": {"operationId": "a"}}`, "its path is not valid"},
		"a brace":              {`"/a/{b": {"get": {"operationId": "a"}}`, "its path has a brace"},
		"another server":       {`"/a": {"get": {"operationId": "a", "servers": [{"url": "https://other.example"}]}}`, "it is at another server"},
		"an unknown scheme":    {`"/a": {"get": {"operationId": "a", "security": [{"none": []}]}}`, `a is left out: there is no security scheme "none"`},
		"a header of the host": {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "Host", "in": "header", "required": true}]}}`, "requests cannot set this header"},
		"multipart/mixed":      {`"/a": {"post": {"operationId": "a", "requestBody": {"content": {"multipart/mixed": {}}}}}`, "a body cannot have the type multipart/mixed"},
		"circular allOf":       {`"/a": {"post": {"operationId": "a", "requestBody": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/paths/~1a/post/requestBody/content/application~1json/schema"}]}}}}}}`, "a is left out: a schema of it is too complex"},
		"exploded members":     {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "c", "in": "query", "schema": {"type": "object"}}]}}`, "/parameters/0: the parameter is left out: its members, which are parameters of their own, are not known"},
		"a pattern":            {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "c", "in": "query", "schema": {"type": "string", "pattern": "(?=a)"}}]}}`, "the pattern is left out"},
		"an enum":              {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "c", "in": "query", "schema": {"type": "string", "enum": ["${{ secret.key }}"]}}]}}`, "the values to choose from are left out"},
		"a default":            {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "c", "in": "query", "schema": {"type": "string", "default": "${{ secret.key }}"}}]}}`, "the default is left out"},
		"a member's name":      {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "f", "in": "query", "schema": {"properties": {"b": {"type": "string"}}}}, {"name": "b", "in": "query"}]}}`, "/parameters/1: the parameter is left out: a member of another parameter has this name"},
		"a parameter's name":   {`"/a": {"get": {"operationId": "a", "parameters": [{"name": "b", "in": "query"}, {"name": "f", "in": "query", "schema": {"properties": {"b": {"type": "string"}}}}]}}`, `/parameters/1: the member "b" is not sent: a parameter of the query has this name`},
		"a path parameter":     {`"/a/{b}": {"get": {"operationId": "a"}}`, `does not describe the parameter "b" of the path`},
	} {
		result, err := openapi.Convert([]byte(document("{"+good+tc.paths+"}", "{}")), openapi.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(fmt.Sprint(result.Notes), tc.want) {
			t.Errorf("%s: the notes are %v, want %q", name, result.Notes, tc.want)
		}
		parse(t, result.Manifest)
	}
}

// A manifest that would be too large is an error that says how to choose operations.
func TestTooManyOperations(t *testing.T) {
	t.Parallel()
	var paths []string
	for n := range 2000 {
		paths = append(paths, fmt.Sprintf(`"/a%d": {"get": {"operationId": "a%d", "description": %q}}`, n, n, strings.Repeat("long ", 50)))
	}
	text := []byte(document("{"+strings.Join(paths, ",")+"}", "{}"))
	_, err := openapi.Convert(text, openapi.Options{})
	if problem, ok := errors.AsType[*openapi.OptionError](err); !ok || problem.Option != "operations" || !strings.Contains(problem.Message, "2000 operations would be larger: choose") {
		t.Errorf("the error is %v", err)
	}
	result, err := openapi.Convert(text, openapi.Options{Operations: []string{"a?", "a10"}})
	if err != nil || len(result.Operations) != 11 {
		t.Errorf("%v, %v", result, err)
	}
}

// manyPaths returns the members of an object with paths.
func manyPaths(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"/%d": {}`, i))
	}
	return strings.Join(out, ",")
}

// The base URL is that of the first server that can be one. What people enter for its
// variables cannot complete a host to another one, and no default becomes an expression.
func TestServerURLs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, variables, want string }{
		{"https://API.Shop.example:8443/V1/", `{}`, "https://api.shop.example:8443/V1"},
		{"https://{a}.Shop.example/{b}", `{"a": {"default": "eu"}, "b": {"default": "v1"}}`, "https://${{ connection.a }}.shop.example/${{ connection.b }}"},
		{"https://{a}", `{"a": {"default": "shop.example"}}`, "https://${{ connection.a }}"},
		{"{a}://shop.example", `{"a": {"default": "http", "enum": ["http", "https"]}}`, "https://shop.example"},
		{"https://shop.example{a}", `{"a": {"default": "/v1"}}`, "https://shop.example/v1"},
		{"https://shop.example/{a}/b", `{"a": {"default": "/v1/a/"}}`, "https://shop.example/v1/a/b"},
		{"{a}/b", `{"a": {"default": "https://shop.example/"}}`, "https://shop.example/b"},
		{"https://shop{a}", `{"a": {"default": ".example"}}`, "https://shop.example"},
		{"https://api.{a}", `{"a": {"default": "shop.example"}}`, "https://api.shop.example"},
		{"https://api.{a}", `{"a": {"default": "a.example", "enum": ["a.example", "b.example"]}}`, "https://api.${{ connection.a }}"},
		{"https://{a}.shop.example/{b}", `{"a": {"default": "eu"}, "b": {"default": "v1/${{ connection.a }}"}}`, ""},
		{"https://{a}.shop.example/${b}", `{"a": {"default": "eu"}, "b": {"default": "v1"}}`, ""},
		{"https://shop.example/{a}", `{"a": {"default": "a/b?c=d"}}`, ""},
	} {
		text := `{"openapi": "3.1.0", "info": {}, "servers": [{"url": "` + tc.url + `", "variables": ` + tc.variables + `}],
"paths": {"/a": {"get": {"servers": [{"url": "` + tc.url + `"}]}}}}`
		result, err := openapi.Convert([]byte(text), openapi.Options{})
		if err != nil {
			if problem, ok := errors.AsType[*openapi.OptionError](err); tc.want != "" || !ok || problem.Option != "server" {
				t.Errorf("%s: %v", tc.url, err)
			}
			continue
		}
		if got := parse(t, result.Manifest).BaseURL.Source(); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.url, got, tc.want)
		}
	}
}

// What a document requires to authenticate is a way to authenticate once, and no input.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const (
		schemes = `{"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "token"}, "b": {"type": "http", "scheme": "bearer"},
"o": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://Auth.Shop.example/token?v=1", "scopes": {}}}}}}`
		token = `"parameters": [{"name": "token", "in": "query", "required": true}]`
	)
	for name, tc := range map[string]struct{ paths, auth, inputs, note string }{
		"in any order": {`"/a": {"get": {"security": [{"b": [], "k": []}], ` + token + `}}, "/b": {"get": {"security": [{"k": [], "b": []}]}}`, "api_key", "", ""},
		"not required": {`"/a": {"get": {"security": [{"b": []}], ` + token + `}}`, "bearer", "token", ""},
		"OAuth":        {`"/a": {"get": {"security": [{"o": []}]}}`, "oauth2", "", ""},
		"a header":     {`"/a": {"get": {"parameters": [{"name": "authorization", "in": "header"}], "security": []}}, "/b": {"get": {"security": [{"b": []}]}}`, "bearer", "", "/parameters/0: the header is left out, because connections set it"},
		"no answer":    {`"/a": {"get": {"security": [{"b": []}]}}`, "bearer", "", "/paths/~1a/get: the document does not describe the answer"},
	} {
		result, err := openapi.Convert([]byte(document("{"+tc.paths+"}", schemes)), openapi.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		i := parse(t, result.Manifest)
		var kinds, inputs []string
		for _, a := range i.Connection.Auth {
			kinds = append(kinds, a.Kind)
		}
		for _, in := range i.Operations()[0].Input {
			inputs = append(inputs, in.Name)
		}
		if got := strings.Join(kinds, " "); got != tc.auth || strings.Join(inputs, " ") != tc.inputs || !strings.Contains(fmt.Sprint(result.Notes), tc.note) {
			t.Errorf("%s: got %s with the inputs %s, want %s with %s\n%v", name, got, inputs, tc.auth, tc.inputs, result.Notes)
		}
	}
}
