package integration_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/test/lane"
)

// manifestSchema returns the compiled schema of manifests.
func manifestSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := integration.Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(integration.SchemaID, document); err != nil {
		t.Fatal(err)
	}
	out, err := compiler.Compile(integration.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shipped returns the manifests that are part of the product, as JSON, by their file.
func shipped(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := fs.Glob(integrations.Files, "*/integration.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		text, err := fs.ReadFile(integrations.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		document, err := strictyaml.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		out[file] = document.JSON
	}
	return out
}

func decodeJSON(t rapid.TB, text []byte) any {
	t.Helper()
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func TestSchemaAcceptsManifests(t *testing.T) {
	t.Parallel()
	schema := manifestSchema(t)
	for file, text := range shipped(t) {
		if err := schema.Validate(decodeJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	document, err := strictyaml.Decode([]byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(decodeJSON(t, document.JSON)); err != nil {
		t.Error(err)
	}
}

// Every definition and every member is described: editors show it.
func TestSchemaDescribesMembers(t *testing.T) {
	t.Parallel()
	text, err := integration.Schema()
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]struct{ Description string }
		AnyOf      []struct {
			Properties map[string]struct{ Description string }
		}
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	schema.Defs["manifest"] = schema.object
	for name, def := range schema.Defs {
		members := def.Properties
		if def.AnyOf != nil {
			members = def.AnyOf[1].Properties
		}
		if name == "" || len(members) == 0 {
			t.Errorf("the definition %q has no name or no members: describe its type in schema.go", name)
		}
		for member, described := range members {
			if described.Description == "" {
				t.Errorf("%s has no description of %s: add one in schema.go", name, member)
			}
		}
	}
}

// mistake is a change of a manifest that makes it invalid, or may do so.
type mistake struct {
	pointer string
	value   any
}

// mistakes returns changes of every value below one: a member that is not known, a value
// of another type, and text that is none of the values of an enum.
func mistakes(pointer string, value any) []mistake {
	var out []mistake
	switch value := value.(type) {
	case map[string]any:
		out = append(out, mistake{pointer, 7}, mistake{pointer, []any{true}}, mistake{pointer + "/x_unknown", 7}, mistake{pointer + "/x_unknown", "text"})
		for _, name := range slices.Sorted(maps.Keys(value)) {
			out = append(out, mistakes(pointer+jsonpointer.Of(name), value[name])...)
		}
	case []any:
		out = append(out, mistake{pointer, "text"}, mistake{pointer, map[string]any{"x_unknown": true}})
		for i, item := range value {
			out = append(out, mistakes(pointer+"/"+strconv.Itoa(i), item)...)
		}
	case string:
		out = append(out, mistake{pointer, 7}, mistake{pointer, true}, mistake{pointer, []any{value}}, mistake{pointer, "None of Them"})
	default:
		out = append(out, mistake{pointer, "text"}, mistake{pointer, []any{}})
	}
	return out
}

// make returns the manifest with the mistake.
func (m mistake) make(t *rapid.T, manifest []byte) []byte {
	var document any
	if err := json.Unmarshal(manifest, &document); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(replaced(document, strings.Split(m.pointer, "/")[1:], m.value))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// replaced replaces the value on a path.
func replaced(document any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch document := document.(type) {
	case map[string]any:
		name := unescape.Replace(path[0])
		document[name] = replaced(document[name], path[1:], value)
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil {
			document[i] = replaced(document[i], path[1:], value)
		}
	}
	return document
}

// structural matches the errors of Parse about the structure of a manifest.
var structural = regexp.MustCompile(`unknown field "|must be (text|an? [a-z]+), not |is unknown( \(did you mean ".*"\?\))?: use one of|must be an object, or one expression`)

// The schema and Parse agree about the structure of manifests: members, types and enums.
func TestSchemaAgreesWithParse(t *testing.T) {
	t.Parallel()
	schema, manifests := manifestSchema(t), shipped(t)
	all, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	files := slices.Sorted(maps.Keys(manifests))
	lane.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom(files).Draw(t, "file")
		made := rapid.SampledFrom(mistakes("", decodeAny(t, manifests[file]))).Draw(t, "mistake")
		text := made.make(t, manifests[file])
		invalid := schema.Validate(decodeJSON(t, text))
		_, err := integration.Parse(text, all.Find)
		if invalid != nil && err == nil {
			t.Errorf("%s: the schema rejects %v at %s, and Parse accepts it: %v", file, made.value, made.pointer, invalid)
		}
		if err != nil && invalid == nil && structural.MatchString(err.Error()) {
			t.Errorf("%s: the schema accepts %v at %s: %v", file, made.value, made.pointer, err)
		}
	})
}

func decodeAny(t *rapid.T, text []byte) (out any) {
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
