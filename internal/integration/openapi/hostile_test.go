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
	var wide, enum, paths, same, schemes []string
	for n := range 9000 {
		wide = append(wide, fmt.Sprintf(`"p%d": {"type": "object", "properties": {"x": %s}}`, n, ref("W")))
		paths = append(paths, fmt.Sprintf(`"/p%d": %s`, n, body(ref("W"))))
	}
	for n := range 5000 {
		same = append(same, fmt.Sprintf(`"/s%d": {"$ref": "#/paths/~1s0"}`, n+1))
		schemes = append(schemes, fmt.Sprintf(`"k%d": {"type": "apiKey", "in": "query", "name": "k%d"}`, n, n))
	}
	shared := func(operation string) string {
		return `{"/s0": {"post": ` + operation + `}, ` + strings.Join(same, ",") + "}"
	}
	for n := range 90_000 {
		enum = append(enum, fmt.Sprintf(`"value %d"`, n))
	}
	wideSchema := `{"schemas": {"W": {"properties": {` + strings.Join(wide, ",") + `}}}}`
	for name, tc := range map[string]struct{ text, want string }{
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
	} {
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
