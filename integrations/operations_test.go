package integrations_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

// Every operation passes its tests in tests.yaml, and has at least one. It sends what the
// vendor's client has sent to test/oracles, where there is a recording of that.
func TestOperations(t *testing.T) {
	t.Parallel()
	all := catalog(t)
	for _, i := range all.List() {
		if len(i.Operations) == 0 {
			continue
		}
		t.Run(i.ID, func(t *testing.T) {
			t.Parallel()
			text, err := fs.ReadFile(integrations.Files, i.ID+"/tests.yaml")
			if err != nil {
				t.Fatal(err)
			}
			tests, err := replay.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			problems, untested := replay.Run(t.Context(), all, i, tests, recordings(t, i.ID))
			for _, problem := range problems {
				t.Error(problem)
			}
			if len(untested) > 0 {
				t.Errorf("these operations have no test: %q", untested)
			}
		})
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
