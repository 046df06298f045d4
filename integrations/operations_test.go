package integrations_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

// Every operation passes its tests in tests.yaml, and has at least one. It sends what the
// vendor's client has sent to test/oracles, where there is a recording of that.
func TestOperations(t *testing.T) {
	t.Parallel()
	all := catalog(t)
	for _, i := range all.List() {
		if len(i.Operations()) == 0 {
			continue
		}
		t.Run(i.ID, func(t *testing.T) {
			t.Parallel()
			found, recorded := tests(t, i.ID), recordings(t, i.ID)
			for _, result := range replay.Run(t.Context(), all, i, found, recorded, nil) {
				if result.Problem != "" {
					t.Errorf("%s/tests.yaml:%d: %s, %s: %s", i.ID, result.Line, result.Of, result.Test, result.Problem)
				}
			}
			for _, problem := range found.Check(i) {
				t.Errorf("%s/tests.yaml: %v", i.ID, problem)
			}
			for _, problem := range recorded.Check(i, found) {
				t.Errorf("%s/recordings.json: %s", i.ID, problem)
			}
			if untested := found.Untested(i); len(untested) > 0 {
				t.Errorf("these operations have no test: %q", untested)
			}
		})
	}
}

// tests returns those of an integration.
func tests(t *testing.T, id string) *replay.Tests {
	t.Helper()
	text, err := fs.ReadFile(integrations.Files, id+"/tests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := replay.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every item that the tests of a list return has a value and a label for dropdowns.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, i := range catalog(t).List() {
		for _, o := range i.Operations() {
			if o.Option == nil || o.Output != nil { // its output need not be the items
				continue
			}
			items := 0
			for _, test := range tests(t, i.ID).Operations[o.Name] {
				var output struct {
					Items []any `json:"items"`
				}
				if test.Error == nil && json.Unmarshal(test.Output, &output) != nil {
					t.Errorf("%s.%s, %s: the output has no items", i.ID, o.Name, test.Name)
				}
				for _, item := range output.Items {
					items++
					checkOption(t, i.ID+"."+o.Name, o.Option, item)
				}
			}
			if items == 0 {
				t.Errorf("%s.%s: no test returns an item", i.ID, o.Name)
			}
		}
	}
}

func checkOption(t *testing.T, name string, option *integration.Option, item any) {
	t.Helper()
	env := integration.Env{More: map[string]any{"item": item}}
	value, err := env.Eval(option.Value)
	if err != nil || value == nil || value == "" {
		t.Errorf("%s: the value of %v is %v, error %v", name, item, value, err)
	}
	label, err := env.Eval(option.Label)
	if text, ok := label.(string); err != nil || !ok || text == "" {
		t.Errorf("%s: the label of %v is %v, error %v", name, item, label, err)
	}
}

// recordings returns those of an integration, nil if it has none.
func recordings(t *testing.T, id string) *replay.Recordings {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(id, "recordings.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := replay.ParseRecordings(text)
	if err != nil {
		t.Fatalf("recordings.json: %v", err)
	}
	return out
}

// The input of every operation is a valid schema: one that is not would make it unknown.
func TestInputSchemas(t *testing.T) {
	t.Parallel()
	actions, err := action.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	operations := operation.NewActions(catalog(t), nil)
	actions = actions.With(operations)
	for _, name := range operations.Names() {
		if _, ok := actions.Find(name); !ok {
			t.Errorf("the input schema of %s is not valid", name)
		}
	}
}
