package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Examples of actions show the outputs of real runs. Examples that need a
// server, a person, another workflow or a table are skipped: internal/action/catalog
// runs them.
func TestActionExamples(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	apart := map[string]bool{"http.request": true, "graphql.request": true, "flow.approval": true, "flow.run": true}
	ran := 0
	for _, item := range w.call("GET", "/v1/actions", "").wantStatus(200).items() {
		name := item["name"].(string)
		if apart[name] || strings.HasPrefix(name, "table.") || strings.HasPrefix(name, "state.") {
			continue
		}
		for _, one := range item["examples"].([]any) {
			example := one.(map[string]any)
			step, err := json.Marshal(map[string]any{"id": "example", "uses": name, "with": example["with"]})
			if err != nil {
				t.Fatal(err)
			}
			w.workflow("wf", string(step))
			done := w.runToEnd("run", "wf", `{"payload": {"total": 50}}`).object()
			steps := done["steps"].([]any)
			if diff := cmp.Diff(example["output"], steps[0].(map[string]any)["output"]); diff != "" || done["status"] != "succeeded" {
				t.Errorf("%s, %s: a run that %v has another output (-example +run):\n%s", name, example["title"], done["status"], diff)
			}
			ran++
		}
	}
	if ran < 7 {
		t.Errorf("only %d examples ran", ran)
	}
}
