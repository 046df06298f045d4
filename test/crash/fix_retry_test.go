package crash_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// A failed run is retried with a fixed version of its workflow, and the retry survives a
// crash. While it waits, it is listed as waiting.
func TestFixAndRetrySurvivesKill(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	each := func(body ...map[string]any) map[string]any {
		return map[string]any{"id": "each", "foreach": "[1, 2, 3]", "steps": body}
	}
	inner := flow.Set("inner", "${{ item * steps.first.output.n }}")
	id := flow.Define(t, s.Client, flow.Set("first", 2), each(inner, flow.Set("changed", 0)),
		map[string]any{"id": "broken", "uses": "flow.stop", "with": map[string]any{"status": "failed"}})
	var failed runBody
	s.Client.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+id+"/runs", nil).Decode(t, &failed)
	awaitEnd(t, s.Client, failed.ID)
	s.Client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": []map[string]any{
		flow.Set("first", 2), each(inner, flow.Set("changed", "${{ steps.inner.output.n + 100 }}")),
		{"id": "broken", "uses": "flow.wait", "with": map[string]any{"for": "2s"}},
		{"id": "last", "uses": "data.set", "with": map[string]any{"values": map[string]any{"all": "${{ steps.each.output.items }}"}}},
	}})

	var again runBody
	s.Client.Expect(t, http.StatusCreated, "POST", "/v1/runs/"+failed.ID+"/retry", map[string]any{"version": "current"}).Decode(t, &again)
	awaitWaiting(t, s.Client, again.ID)
	var waiting struct {
		Data []struct {
			ID         string
			WaitingFor struct {
				StepID string `json:"step_id"`
			} `json:"waiting_for"`
			StartedBy struct{ Type string } `json:"started_by"`
		}
	}
	s.Client.Expect(t, http.StatusOK, "GET", "/v1/runs?waiting=true", nil).Decode(t, &waiting)
	if len(waiting.Data) != 1 || waiting.Data[0].ID != again.ID || waiting.Data[0].WaitingFor.StepID != "broken" || waiting.Data[0].StartedBy.Type != "api_key" {
		t.Errorf("waiting runs are %+v", waiting.Data)
	}
	s.Kill(t)
	s = restart(t, s)
	ended := awaitEnd(t, s.Client, again.ID)
	if ended.Status != succeeded || ended.WorkflowVersion != 3 {
		t.Fatalf("the retry ended %s with version %d, want succeeded with 3", ended.Status, ended.WorkflowVersion)
	}
	checkFixed(t, s.Client, again.ID, failed.ID)
}

func checkFixed(t *testing.T, c *harness.Client, id, failed string) {
	t.Helper()
	var r struct {
		Steps []struct {
			StepID string `json:"step_id"`
			Reason *string
			Output json.RawMessage
		}
	}
	c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+id, nil).Decode(t, &r)
	copied := map[string]bool{}
	for _, step := range r.Steps {
		copied[step.StepID] = step.Reason != nil && *step.Reason == "copied from "+failed
		if want := `{"all":[{"n":102},{"n":104},{"n":106}]}`; step.StepID == "last" && string(step.Output) != want {
			t.Errorf("output of the last step is %s, want %s", step.Output, want)
		}
	}
	for _, path := range []string{"first", "each[0].inner", "each[1].inner", "each[2].inner"} {
		if !copied[path] {
			t.Errorf("%s was executed again", path)
		}
	}
	for _, path := range []string{"each", "each[0].changed", "each[2].changed", "broken", "last"} {
		if copied[path] {
			t.Errorf("%s was copied although it changed", path)
		}
	}
}
