package catalog_test

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	actions "github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/integration"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

// TestSchemaOfServices checks which names of services the schema of workflows accepts, with
// and without a list of them.
func TestSchemaOfServices(t *testing.T) {
	t.Parallel()
	listed, short := schema(t, true), schema(t, false)
	for _, tc := range []struct {
		uses, kind    string
		listed, short bool
	}{
		{"log.write", "schedule", true, true},
		{"slack.post_message", "gmail.new_message", true, true},
		{integration.OwnPrefix + "acme.create_ticket", integration.OwnPrefix + "acme.new_ticket", true, true},
		{"slack.post_mesage", "gmail.new_mesage", false, true},
		{"log", "gmail", false, false},
		{"slack.post message", "gmail.new-message", false, false},
	} {
		for _, document := range []map[string]any{
			{"steps": []any{map[string]any{"id": "a", "uses": tc.uses, "with": map[string]any{"message": "Hello"}}}},
			{"triggers": []any{map[string]any{"id": "a", "type": tc.kind, "connection": "c", "with": map[string]any{}}}},
		} {
			if tc.kind == "schedule" && document["triggers"] != nil {
				document["triggers"] = []any{map[string]any{"id": "a", "type": tc.kind, "cron": "* * * * *"}}
			}
			if err := listed.Validate(document); (err == nil) != tc.listed {
				t.Errorf("with a list: %v: %v", document, err)
			}
			if err := short.Validate(document); (err == nil) != tc.short {
				t.Errorf("without: %v: %v", document, err)
			}
		}
	}
}

// schema returns the compiled schema of the format.
func schema(t *testing.T, services bool) *jsonschema.Schema {
	t.Helper()
	known, err := actions.New(actions.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	types, err := triggers.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := workflow.Schema(known, types.Format(), services)
	if err != nil {
		t.Fatal(err)
	}
	if !services && bytes.Contains(text, []byte("slack.")) {
		t.Error("the schema without services names one")
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("workflow.json", document); err != nil {
		t.Fatal(err)
	}
	out, err := compiler.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
