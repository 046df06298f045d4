package api_test

import (
	"net/http"
	"testing"
)

func TestActivity(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("idle")
	w.workflow("wf", `{"id": "stop", "uses": "flow.stop", "with": {"status": "${{ trigger.payload.end ?? 'succeeded' }}"}}`)
	w.patch("wf", `{"state": "active", "triggers": [{"id": "later", "type": "schedule", "cron": "0 0 1 1 *"}, {"id": "call", "type": "webhook"}]}`)
	w.runToEnd("good", "wf", "")
	w.runToEnd("bad", "wf", `{"payload": {"end": "failed"}}`)
	w.runToEnd("better", "wf", "")
	w.runDraft(`{"definition": {"steps": []}}`)
	got := w.call("GET", "/v1/workflows?include=activity", "").wantStatus(http.StatusOK)
	wantContains(t, got.json(), w.expand(`{"data": [
		{"id": "$wf", "activity": {"triggers": [{"id": "call", "type": "webhook"}, {"id": "later", "type": "schedule"}],
			"last_run": {"draft": true, "status": "succeeded"}, "success_rate": 0.6666666666666666,
			"recent": [{"draft": true}, {"id": "$better", "status": "succeeded"}, {"id": "$bad", "status": "failed"}, {"id": "$good"}]}},
		{"id": "$idle", "activity": {"triggers": [], "next_run_at": null, "last_run": null, "recent": [], "success_rate": null}}]}`))
	if next, _ := got.items()[0]["activity"].(map[string]any)["next_run_at"].(string); next == "" {
		t.Errorf("no next run in %s", got.body)
	}
	wantKeys(t, w.call("GET", "/v1/workflows", "").items()[0], "id name state created_at updated_at")
	w.call("GET", "/v1/workflows?include=all", "").wantStatus(http.StatusBadRequest, "invalid_request")
	first := w.call("GET", "/v1/workflows?include=activity&limit=1", "").wantStatus(http.StatusOK)
	wantContains(t, w.call("GET", "/v1/workflows?include=activity&limit=1&cursor="+first.str("next_cursor"), "").wantStatus(http.StatusOK).json(), w.expand(`{"data": [{"id": "$idle"}]}`))
}
