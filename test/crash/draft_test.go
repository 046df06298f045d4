package crash_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// A run of a draft goes on after a crash with what it was started with, pins
// included, whatever became of the saved definition meanwhile. So does its retry.
func TestDraftsSurviveKills(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	set := func(id string, value any) map[string]any {
		return map[string]any{"id": id, "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": value}}}
	}
	id := define(t, s.Client, nil, set("saved", 1))
	const told = "${{ steps.first.output.n + steps.pinned.output.n }}"
	draft := map[string]any{
		"use_pinned": true, "pinned": map[string]any{"pinned": map[string]any{"n": 40}},
		"definition": map[string]any{"steps": []map[string]any{
			set("first", 2), set("pinned", 0),
			{"id": "pause", "uses": "flow.wait", "with": map[string]any{"for": "2s"}},
			set("last", told),
			{"id": "stop", "uses": "flow.stop", "with": map[string]any{"status": "failed", "message": told}},
		}},
	}
	var begun runBody
	s.Client.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+id+"/runs", draft).Decode(t, &begun)
	awaitWaiting(t, s.Client, begun.ID)
	s.Client.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": []map[string]any{set("first", -1)}})
	s.Kill(t)
	s = restart(t, s)
	awaitEnd(t, s.Client, begun.ID, 20*time.Second)
	checkDraft(t, s.Client, begun.ID)

	var again runBody
	s.Client.Expect(t, http.StatusCreated, "POST", "/v1/runs/"+begun.ID+"/retry", nil).Decode(t, &again)
	s.Kill(t)
	s = restart(t, s)
	awaitEnd(t, s.Client, again.ID, 20*time.Second)
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
