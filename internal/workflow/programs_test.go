package workflow_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/workflow"
)

// stored is a store with one definition.
type stored workflow.Definition

func (s stored) Definition(context.Context, string, int) (*workflow.Definition, error) {
	definition := workflow.Definition(s)
	return &definition, nil
}

func (s stored) Draft(context.Context, string) (*workflow.Unsaved, error) {
	return &workflow.Unsaved{Definition: workflow.Definition(s)}, nil
}

// Slow checks run only when a workflow is saved. A saved version still runs if
// such a check would reject it now.
func TestSavedVersionsSkipSlowChecks(t *testing.T) {
	t.Parallel()
	refused := []action.Problem{{Message: "refused"}}
	refuse := func(map[string]any) []action.Problem { return refused }
	refuseSlowly := func(_ context.Context, workspaceID string, _ map[string]any) ([]action.Problem, error) {
		if workspaceID != "ws_1" {
			t.Errorf("checked for workspace %q", workspaceID)
		}
		return refused, nil
	}
	for slow, spec := range map[bool]action.Spec{false: {Check: refuse}, true: {SlowCheck: refuseSlowly}} {
		spec.Name, spec.Input = "test.check", `{}`
		catalog, err := action.NewCatalog(action.Entry{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		var definition workflow.Definition
		if err := json.Unmarshal([]byte(`{"steps": [{"id": "a", "uses": "test.check"}]}`), &definition); err != nil {
			t.Fatal(err)
		}
		if problems, _, err := workflow.Check(t.Context(), workflow.Definition{}, definition, catalog, types(t), "ws_1", nil); err != nil || len(problems) != 1 {
			t.Errorf("slow %v: when it is saved: %v, %v", slow, problems, err)
		}
		program, err := workflow.NewPrograms(stored(definition), catalog, types(t)).Get(t.Context(), "wf", 1)
		if failed := err != nil; failed == slow || (program == nil) == slow {
			t.Errorf("slow %v: when it runs: %v", slow, err)
		}
	}
}
