package replay_test

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// The schema accepts the tests of every integration, and rejects what Parse and Check
// reject.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := replay.Schema()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(replay.SchemaID, fromJSON(t, text)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(replay.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(integrations.Files, "*/tests.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(integrations.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(fromYAML(t, string(text))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, text := range []string{
		"operation: {}",
		"operations: []",
		"operations: {add: {name: a}}",
		"operations: {add: [{output: {}}]}",
		"operations: {add: [{name: a}]}",
		"operations: {add: [{name: a, output: {}, error: {code: failed}}]}",
		"operations: {add: [{name: a, error: {kode: failed}}]}",
		"operations: {add: [{name: a, output: {}, exchanges: {}}]}",
		"operations: {add: [{name: a, output: {}, exchanges: [{request: {url: 1}}]}]}",
		"operations: {add: [{name: a, output: {}, exchanges: [{request: {url: x}, answer: {status: ok}}]}]}",
	} {
		if schema.Validate(fromYAML(t, text)) == nil {
			t.Errorf("the schema accepts %s", text)
		}
		i, _ := parse(t, acme, "{}")
		if tests, err := replay.Parse([]byte(text)); err == nil && len(tests.Check(i)) == 0 {
			t.Errorf("Parse and Check accept %s", text)
		}
	}
}

func fromJSON(t *testing.T, text []byte) any {
	t.Helper()
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func fromYAML(t *testing.T, text string) any {
	t.Helper()
	document, err := strictyaml.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return fromJSON(t, document.JSON)
}
