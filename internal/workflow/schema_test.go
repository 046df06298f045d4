package workflow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/approval"
	"github.com/stepmill/stepmill/internal/action/branch"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/action/dataset"
	"github.com/stepmill/stepmill/internal/action/httprequest"
	"github.com/stepmill/stepmill/internal/action/keys"
	"github.com/stepmill/stepmill/internal/action/logwrite"
	"github.com/stepmill/stepmill/internal/action/rows"
	"github.com/stepmill/stepmill/internal/action/stop"
	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/action/wait"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

var shipped = sync.OnceValues(func() (*action.Catalog, error) { return catalog.New(catalog.Deps{}) })

func actions(t testing.TB) *action.Catalog {
	t.Helper()
	c, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var shippedTypes = sync.OnceValues(func() (*trigger.Types, error) { return triggers.New(nil) })

func types(t interface {
	Helper()
	Fatal(args ...any)
}) *workflow.TriggerTypes {
	t.Helper()
	found, err := shippedTypes()
	if err != nil {
		t.Fatal(err)
	}
	return found.Format()
}

// format returns the compiled schema of the format.
func format(t testing.TB, actions *action.Catalog) *jsonschema.Schema {
	t.Helper()
	text, err := workflow.Schema(actions, types(t), true)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("http://localhost/v1/schemas/workflow.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("http://localhost/v1/schemas/workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// places returns the pointers at which a schema rejects a document.
func places(t fataler, schema *jsonschema.Schema, document string) []string {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		t.Fatal(err)
	}
	found := leaves(invalid)
	slices.Sort(found)
	return slices.Compact(found)
}

func leaves(e *jsonschema.ValidationError) []string {
	at := jsonpointer.Of(e.InstanceLocation...)
	var below, out []string
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return []string{at}
	case *kind.Required:
		below = k.Missing
	case *kind.AdditionalProperties:
		below = k.Properties
	default:
		for _, cause := range e.Causes {
			out = append(out, leaves(cause)...)
		}
		if len(e.Causes) == 0 {
			return []string{at}
		}
	}
	for _, member := range below {
		out = append(out, at+jsonpointer.Of(member))
	}
	return out
}

// accepts fails the test unless the schema accepts the document.
func accepts(t fataler, schema *jsonschema.Schema, document string) {
	t.Helper()
	if found := places(t, schema, document); found != nil {
		t.Errorf("the schema objects at %v: %s", found, document)
	}
}

func TestSchemaHasEveryField(t *testing.T) {
	t.Parallel()
	text, err := workflow.Schema(actions(t), types(t), true)
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]json.RawMessage
	}
	var schema struct {
		object
		ID   string            `json:"$id"`
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.ID != workflow.SchemaID {
		t.Errorf("its id is %q", schema.ID)
	}
	for def, typ := range map[string]reflect.Type{
		"trigger":     reflect.TypeFor[workflow.Trigger](),
		"step":        reflect.TypeFor[workflow.Step](),
		"repeat":      reflect.TypeFor[workflow.Repeat](),
		"retry":       reflect.TypeFor[workflow.Retry](),
		"settings":    reflect.TypeFor[workflow.Settings](),
		"concurrency": reflect.TypeFor[workflow.Concurrency](),
	} {
		want := members(typ)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(schema.Defs[def].Properties))); diff != "" {
			t.Errorf("%s and its schema differ (-Go +schema):\n%s", typ, diff)
		}
	}
	for _, name := range members(reflect.TypeFor[workflow.Definition]()) {
		if _, known := schema.Properties[name]; !known {
			t.Errorf("the definition has %s, the schema does not", name)
		}
	}
}

// members returns the sorted JSON names of a struct.
func members(typ reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Editors show titles and descriptions: every member of every object has them.
func TestSchemaIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := workflow.Schema(actions(t), types(t), true)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	defs, _ := schema["$defs"].(map[string]any)
	for def, schema := range defs {
		members, _ := schema.(map[string]any)
		if members["title"] == nil || members["description"] == nil {
			t.Errorf("%s has no title or no description", def)
		}
		properties, _ := members["properties"].(map[string]any)
		for name, property := range properties {
			p, isObject := property.(map[string]any)
			if isObject && def != "block" && p["description"] == nil && p["$ref"] == nil {
				t.Errorf("%s of %s has no description", name, def)
			}
		}
	}
}

// withEffect returns a catalog with the actions that the engine's histories use.
func withEffect(t testing.TB) *action.Catalog {
	t.Helper()
	entries := []action.Entry{
		approval.Entry(nil), branch.Entry(), dataset.Entry(), httprequest.Entry(nil), logwrite.Entry(), stop.Entry(), subrun.Entry(nil), wait.Entry(),
		{Spec: action.Spec{Name: "test.effect", Input: `{"type": "object"}`, Output: `{}`}},
		{Spec: action.Spec{Name: "test.pages", Input: `{"type": "object"}`, Output: `{}`}},
	}
	c, err := action.NewCatalog(slices.Concat(entries, rows.Entries(nil), keys.Entries(nil))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSchemaAcceptsEngineHistories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../engine/testdata/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	schema := format(t, withEffect(t))
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name == "steps.json" {
				accepts(t, schema, `{"steps": `+string(file.Data)+`}`)
			}
		}
	}
}

var (
	sampleBlock = regexp.MustCompile("(?s)<!-- workflow -->\n```json\n(.*?\n)```\n")
	yamlBlock   = regexp.MustCompile("(?s)```yaml\n(# yaml-language-server.*?\n)```\n")
)

func TestSchemaAcceptsDocSamples(t *testing.T) {
	t.Parallel()
	schema, samples := format(t, actions(t)), 0
	for _, name := range []string{"../../README.md", "../../docs/workflows.md", "../../docs/expressions.md", "../../docs/api.md", "../../docs/tables.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range sampleBlock.FindAllSubmatch(text, -1) {
			accepts(t, schema, string(sample[1]))
			samples++
		}
		for _, sample := range yamlBlock.FindAllSubmatch(text, -1) {
			accepts(t, schema, fromYAML(t, sample[1]))
			samples++
		}
	}
	if samples < 6 {
		t.Errorf("only %d samples found", samples)
	}
}

const bigOrder = `
name: Big order
description: null
state: active
triggers:
  - {id: by_hand, type: manual}
settings:
  timeout: 1h
  concurrency: {key: "${{ trigger.payload.customer }}", limit: 1, on_limit: queue}
steps:
  - id: get
    name: Get the order
    uses: http.request
    with: {url: "https://shop.example/orders/${{ trigger.payload.id }}", method: "${{ trigger.payload.method ?? 'GET' }}", follow_redirects: "${{ true }}"}
    retry: {max_attempts: 3, initial: 500ms, factor: 1.5, max_delay: 1m}
    timeout: 1m30s
  - id: rest
    needs: [get]
    if: steps.get.output.body.total > 100
    uses: flow.wait
    with: {for: 2d}
  - id: lines
    needs: [get]
    foreach: ${{ steps.get.output.body.lines }}
    parallel: 5
    on_error: continue
    steps:
      - {id: reserve, uses: http.request, with: {method: POST, url: "https://stock.example/${{ item.sku }}", query: "${{ item }}"}}
      - id: poll
        repeat: {until: steps.look.output.ready, every: 1.5s, max: 20}
        steps:
          - {id: look, uses: data.set, with: {values: {ready: "${{ index == 2 }}"}}}
  - id: notify
    needs: [rest, lines]
    join: always
    if: true
    uses: data.set
    with: {values: "${{ trigger.payload }}"}
layout: {get: [0, 0], rest: [240, -80.5], "@by_hand": [-200, 0]}
`

func TestSchemaAcceptsYAML(t *testing.T) {
	t.Parallel()
	text := fromYAML(t, []byte(bigOrder))
	accepts(t, format(t, actions(t)), text)
	if found := compilePlaces(t, text); found != nil {
		t.Errorf("Compile objects at %v", found)
	}
}

func fromYAML(t *testing.T, text []byte) string {
	t.Helper()
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestSchemaAcceptsExpressionsForAnyValue(t *testing.T) {
	t.Parallel()
	const input = `{
		"type": "object", "required": ["count"], "additionalProperties": false,
		"$defs": {"person": {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer", "maximum": 200}}}},
		"properties": {
			"count": {"type": "integer", "minimum": 1},
			"level": {"enum": ["low", "high"]},
			"tags": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
			"owner": {"$ref": "#/$defs/person"},
			"mode": {"type": "string"},
			"pair": {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "number"}]},
			"more": {"type": "object", "additionalProperties": {"type": "boolean"}}
		},
		"oneOf": [
			{"properties": {"mode": {"const": "a"}}},
			{"properties": {"mode": {"const": "b"}}, "required": ["level"]}
		]
	}`
	c, err := action.NewCatalog(action.Entry{Spec: action.Spec{Name: "test.any", Title: "Any", Summary: "Any.", Input: input}})
	if err != nil {
		t.Fatal(err)
	}
	schema := format(t, c)
	step := func(with string) string { return `{"steps": [{"id": "a", "uses": "test.any", "with": ` + with + `}]}` }
	const e = `"${{ trigger.payload.x }}"`
	for _, with := range []string{
		`{"count": 1}`, `{"count": ` + e + `, "mode": "a"}`, `{"count": 1, "level": ` + e + `, "mode": ` + e + `}`,
		`{"count": 1, "tags": ` + e + `}`, `{"count": 1, "tags": [1, ` + e + `]}`,
		`{"count": 1, "owner": ` + e + `}`, `{"count": 1, "owner": {"age": ` + e + `}}`, `{"count": 1, "owner": {"age": 7}}`,
		`{"count": 1, "pair": [true, ` + e + `], "more": {"x": true, "y": ` + e + `}}`,
	} {
		accepts(t, schema, step(with))
	}
	for with, want := range map[string]string{
		`{"count": 0, "mode": "a"}`:                        "/steps/0/with/count",
		`{"count": "one", "mode": "a"}`:                    "/steps/0/with/count",
		`{"mode": "a"}`:                                    "/steps/0/with/count",
		`{"count": 1, "mode": "a", "x": ` + e + `}`:        "/steps/0/with/x",
		`{"count": 1, "mode": "a", "level": "none"}`:       "/steps/0/with/level",
		`{"count": 1, "mode": "a", "tags": [1, 2, 3]}`:     "/steps/0/with/tags",
		`{"count": 1, "mode": "a", "tags": ["x"]}`:         "/steps/0/with/tags/0",
		`{"count": 1, "mode": "a", "owner": {}}`:           "/steps/0/with/owner/age",
		`{"count": 1, "mode": "a", "owner": {"age": 300}}`: "/steps/0/with/owner/age",
		`{"count": 1, "mode": "a", "pair": [1]}`:           "/steps/0/with/pair/0",
		`{"count": 1, "mode": "a", "more": {"x": 1}}`:      "/steps/0/with/more/x",
		`{"count": 1, "mode": "c"}`:                        "/steps/0/with",
	} {
		if diff := cmp.Diff([]string{want}, places(t, schema, step(with))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", with, diff)
		}
	}
}
