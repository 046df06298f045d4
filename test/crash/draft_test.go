package crash_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// After a crash a draft run continues with the definition and pinned outputs it was
// started with, even if the saved definition has changed. So does its retry.
func TestDraftRunsSurviveKills(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	id := flow.Define(t, s.Client, flow.Set("saved", 1))
	const sum = "${{ steps.first.output.n + steps.pinned.output.n }}"
	draft := map[string]any{
		"use_pinned": true, "pinned": map[string]any{"pinned": map[string]any{"n": 40}},
		"definition": map[string]any{"steps": []map[string]any{
			flow.Set("first", 2), flow.Set("pinned", 0),
			{"id": "ask", "uses": "flow.approval"},
			flow.Set("last", sum),
			{"id": "stop", "uses": "flow.stop", "with": map[string]any{"status": "failed", "message": sum}},
		}},
	}
	var begun runBody
	s.Client.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+id+"/runs", draft).Decode(t, &begun)
	awaitReason(t, s.Client, begun.ID, "approval")
	s.Client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": []map[string]any{flow.Set("first", -1)}})
	s.Kill(t)
	s = restart(t, s)
	s.Expect(t, http.StatusOK, "POST", "/v1/runs/"+begun.ID+"/steps/ask/resume", map[string]any{"approved": true})
	awaitEnd(t, s.Client, begun.ID)
	checkDraft(t, s.Client, begun.ID)

	var again runBody
	s.Client.Expect(t, http.StatusCreated, "POST", "/v1/runs/"+begun.ID+"/retry", nil).Decode(t, &again)
	s.Kill(t)
	s = restart(t, s)
	awaitEnd(t, s.Client, again.ID)
	checkDraft(t, s.Client, again.ID)
}

func checkDraft(t *testing.T, c *harness.Client, id string) {
	t.Helper()
	var r struct {
		Status status
		Draft  bool
		Steps  []struct {
			StepID string `json:"step_id"`
			Output json.RawMessage
		}
	}
	c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+id, nil).Decode(t, &r)
	outputs := map[string]string{}
	for _, step := range r.Steps {
		outputs[step.StepID] = string(step.Output)
	}
	if r.Status != failed || !r.Draft || outputs["last"] != `{"n":42}` || outputs["saved"] != "" {
		t.Errorf("run %s: %+v", id, r)
	}
}
