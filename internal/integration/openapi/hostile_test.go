package openapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration/openapi"
)

// Documents that are made to cost much end quickly, with an error or a manifest. The test
// would not end if the cost of one of them were not bounded.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	body := func(schema string) string {
		return `{"post": {"requestBody": {"content": {"application/json": {"schema": ` + schema + `}}}}}`
	}
	ref := func(name string) string { return fmt.Sprintf(`{"$ref": "#/components/schemas/%s"}`, name) }
	// Each schema combines the one before twice, in one of several ways.
	doubling := func(combine string) string {
		schemas := []string{`"S0": {"type": "object", "properties": {"a": {"type": "string"}}}`}
		for n := 1; n < 60; n++ {
			before := ref(fmt.Sprintf("S%d", n-1))
			schemas = append(schemas, fmt.Sprintf(`"S%d": %s`, n, strings.ReplaceAll(combine, "S", before)))
		}
		return document(`{"/a": `+body(ref("S59"))+`, "/ok": {"get": {}}}`, `{"schemas": {`+strings.Join(schemas, ",")+"}}")
	}
	var wide, enum, paths, schemes []string
	for n := range 9000 {
		wide = append(wide, fmt.Sprintf(`"p%d": {"type": "object", "properties": {"x": %s}}`, n, ref("W")))
		paths = append(paths, fmt.Sprintf(`"/p%d": %s`, n, body(ref("W"))))
	}
	for n := range 5000 {
		schemes = append(schemes, fmt.Sprintf(`"k%d": {"type": "apiKey", "in": "query", "name": "k%d"}`, n, n))
	}
	for n := range 90_000 {
		enum = append(enum, fmt.Sprintf(`"value %d"`, n))
	}
	wideSchema := `{"schemas": {"W": {"properties": {` + strings.Join(wide, ",") + `}}}}`
	checkHostile(t, map[string]hostileDocument{
		"doubled by allOf":      {doubling(`{"allOf": [S, S]}`), "a schema of it is too complex"},
		"doubled by oneOf":      {doubling(`{"oneOf": [S, S]}`), "a schema of it is too complex"},
		"doubled by both":       {doubling(`{"allOf": [S, {"anyOf": [S, S]}]}`), "a schema of it is too complex"},
		"doubled by properties": {doubling(`{"properties": {"a": S, "b": S}}`), "its input takes any object"},
		"doubled by items":      {doubling(`{"type": "array", "items": S}`), ""},
		"a wide schema":         {document(`{"/a": `+body(ref("W"))+"}", wideSchema), ""},
		"many wide schemas":     {document("{"+strings.Join(paths, ",")+"}", wideSchema), "too complex: choose fewer operations"},
		"many values":           {document(`{"/a": `+body(`{"properties": {"e": {"enum": [`+strings.Join(enum, ",")+`]}}}`)+"}", "{}"), "the 90000 values to choose from are left out"},
		"a long default":        {document(shared(`{"operationId": "one", "parameters": [{"name": "a", "in": "query", "schema": {"default": "`+strings.Repeat("a", 3_000_000)+`"}}]}`), "{}"), "would be larger"},
		"a long name":           {document(shared(`{"operationId": "one", "parameters": [{"name": "`+strings.Repeat("a", 3_000_000)+`", "in": "query"}]}`), "{}"), "would be larger"},
		"many media types":      {document(shared(`{"requestBody": {"content": {`+strings.ReplaceAll(strings.Join(schemes, ","), `"k`, `"text/k`)+`}}}`), "{}"), "would be larger"},
		"many schemes":          {document(shared(`{"parameters": [{"name": "a", "in": "query"}]}`), `{"securitySchemes": {`+strings.Join(schemes, ",")+"}}"), "would be larger"},
		"many broken $refs":     {document(`{"/a": {"get": {"parameters": [`+strings.Repeat(`{"$ref": "#/x"},`, 90_000)+"{}]}}}", "{}"), "there is nothing at"},
		"a long text":           {operations(`"description": "` + strings.Repeat("[a](", 1_000_000) + `"`), ""},
		"a long path":           {document(`{"/`+strings.Repeat("{a}", 300)+`": {"get": {}}}`, "{}"), ""},
		"a very long path":      {document(`{"/`+strings.Repeat("a", 1000)+`": {"get": {}}}`, "{}"), "its path is not valid"},
	})
}

// hostileDocument is a document, and what its error or its notes say.
type hostileDocument struct{ text, want string }

func checkHostile(t *testing.T, documents map[string]hostileDocument) {
	t.Helper()
	for name, tc := range documents {
		result, err := openapi.Convert([]byte(tc.text), openapi.Options{})
		said := fmt.Sprint(err)
		if err == nil {
			checkConversion(t, result, nil)
			said = fmt.Sprint(result.Notes)
		}
		if !strings.Contains(said, tc.want) {
			t.Errorf("%s: got %.300s, want %s", name, said, tc.want)
		}
	}
}

// shared returns paths that share an operation.
func shared(operation string) string {
	var same []string
	for n := range 5000 {
		same = append(same, fmt.Sprintf(`"/s%d": {"$ref": "#/paths/~1s0"}`, n+1))
	}
	return `{"/s0": {"post": ` + operation + `}, ` + strings.Join(same, ",") + "}"
}

// What many operations share is not read again for each of them, or counts again.
func TestHostileSharing(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 3_000_000)
	body := func(schema string) string {
		return document(shared(`{"requestBody": {"content": {"application/json": {"schema": `+schema+`}}}}`), "{}")
	}
	many := func(keyword, item string) string {
		return body(`{"properties": {"a": {"` + keyword + `": [` + strings.Repeat(item+",", 90_000) + item + "]}}}")
	}
	var patterns []string
	for n := range 190 {
		patterns = append(patterns, fmt.Sprintf(`"p%d": {"type": "string", "pattern": "(a{10}){99}", "default": "a", "example": "a"}`, n))
	}
	const tooComplex = "too complex: choose fewer operations"
	checkHostile(t, map[string]hostileDocument{
		"names that begin alike": {alike(), "would be larger"},
		"a long operationId":     {document(shared(`{"operationId": "`+long+`", "parameters": [{"name": "c", "in": "cookie", "required": true}]}`), "{}"), "it needs a cookie"},
		"a long place":           {document(shared(`{"parameters": [{"name": "a", "in": "`+long+`", "required": true}]}`), "{}"), "there are no parameters in"},
		"a long required name":   {body(`{"properties": {"a": {}}, "required": ["` + long + `"]}`), "would be larger"},
		"many servers":           {document(shared(`{"servers": [`+strings.Repeat(`{"url": "https://other.example"},`, 90_000)+"{}]}"), "{}"), "it is at another server"},
		"many scopes":            {scopes(), "use the same header"},
		"many types":             {many("type", `"string"`), tooComplex},
		"many nulls":             {many("oneOf", `{"type": "null"}`), tooComplex},
		"many that are true":     {many("allOf", "true"), tooComplex},
		"many patterns":          {body(`{"properties": {` + strings.Join(patterns, ",") + "}}"), tooComplex},
		"long pointers":          {pointers(), ""},
	})
}

// A note has a short pointer, however long that of its place is.
func TestLongPlaces(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("k", 1000)
	result, err := openapi.Convert([]byte(document(
		`{"/a": {"get": {"parameters": [{"name": "a", "in": "query", "style": "deepObject", "schema": {"$ref": "#/components`+strings.Repeat("/"+name, 50)+`"}}]}}}`,
		strings.Repeat(`{"`+name+`": `, 50)+`{"properties": {"p": {"type": "string", "pattern": "(?=a)"}}}`+strings.Repeat("}", 50))), openapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	isNoted := false
	for _, note := range result.Notes {
		isNoted = isNoted || strings.Contains(note.Message, "the pattern is left out") && note.Line == 2
		if len(note.Pointer) > 1100 {
			t.Errorf("the pointer has %d bytes", len(note.Pointer))
		}
	}
	if !isNoted {
		t.Errorf("the notes are %v", result.Notes)
	}
}

// alike returns a document whose operations have names that begin alike, each name twice.
func alike() string {
	var paths []string
	for n := range 9000 {
		var methods []string
		for m, method := range strings.Fields("get post put patch delete head options trace") {
			methods = append(methods, fmt.Sprintf(`%q: {"operationId": %q}`, method, fmt.Sprintf("%s%08d", strings.Repeat("a", 32), (8*n+m)/2)))
		}
		paths = append(paths, fmt.Sprintf(`"/%d": {%s}`, n, strings.Join(methods, ",")))
	}
	return document("{"+strings.Join(paths, ",")+"}", "{}")
}

// scopes returns a document whose operations require many schemes with many scopes.
func scopes() string {
	var required, schemes []string
	for n := range 50 {
		var scopes []string
		for m := range 50 {
			scopes = append(scopes, fmt.Sprintf(`"%06d"`, 50*n+m))
		}
		required = append(required, fmt.Sprintf(`"k%d": [%s]`, n, strings.Join(scopes, ",")))
		schemes = append(schemes, fmt.Sprintf(`"k%d": {"type": "http", "scheme": "bearer"}`, n))
	}
	one := "{" + strings.Join(required, ",") + "}"
	return document(shared(`{"security": [`+one+strings.Repeat(","+one, 49)+"]}"), `{"securitySchemes": {`+strings.Join(schemes, ",")+"}}")
}

// pointers returns a document in which many references lead to others with a long pointer.
func pointers() string {
	name := strings.Repeat("k", 1000)
	deep, links := strings.Repeat("/"+name, 50), `"v30": {}`
	for n := range 30 {
		links += fmt.Sprintf(`, "v%d": {"$ref": "#/components%s/v%d"}`, n, deep, n+1)
	}
	nested := strings.Repeat(`{"`+name+`": `, 50) + "{" + links + strings.Repeat("}", 51)
	return document(`{"/a": {"get": {"x": [`+strings.Repeat(`{"$ref": "#/components/l"},`, 90_000)+`1]}}}`,
		`{"l": {"$ref": "#/components`+deep+`/v0"}, `+strings.TrimPrefix(nested, "{"))
}
