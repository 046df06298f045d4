package api_test

import (
	"net/http"
	"testing"
)

func TestRounds(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "lines", "on_error": "continue", "foreach": "${{ [1, 0, 2, 0, 3] }}", "parallel": 5, "steps": [
		{"id": "soft", "on_error": "continue", "uses": "flow.run", "with": {"workflow_id": "wf_01m7f8njhve3pt0yekqqme4qcm"}},
		{"id": "hard", "join": "always", "uses": "data.set", "with": {"values": {"v": "${{ 6 / item }}"}}}]}`)
	w.runToEnd("run", "wf", "")
	all := w.call("GET", "/v1/runs/$run/steps/lines/rounds", "").wantStatus(http.StatusOK)
	wantKeys(t, all.object(), "step_id total counts data next_cursor")
	wantContains(t, all.json(), `{"step_id": "lines", "total": 5, "counts": {"succeeded": 3, "failed": 2, "running": 0}, "next_cursor": null,
		"data": [{"index": 1, "status": "failed", "failed_step_id": "lines[1].hard"}, {"index": 3, "status": "failed"},
		{"index": 0, "status": "succeeded", "failed_step_id": null}, {"index": 2}, {"index": 4}]}`)

	failed := w.call("GET", "/v1/runs/$run/steps/lines/rounds?status=failed&limit=1", "").wantStatus(http.StatusOK)
	wantContains(t, failed.json(), `{"counts": {"succeeded": 3}, "data": [{"index": 1}]}`)
	rest := w.call("GET", "/v1/runs/$run/steps/lines/rounds?status=failed&limit=1&cursor="+failed.str("next_cursor"), "").wantStatus(http.StatusOK)
	wantContains(t, rest.json(), `{"data": [{"index": 3}], "next_cursor": null}`)

	w.call("GET", "/v1/runs/$run/steps/lines/rounds?status=none", "").wantStatus(http.StatusBadRequest, "invalid_request")
	w.call("GET", "/v1/runs/$run/steps/none/rounds", "").wantStatus(http.StatusNotFound, "step_not_found")
	wantContains(t, w.call("GET", "/v1/runs/$run/steps/lines%5B0%5D.hard/rounds", "").wantStatus(http.StatusOK).json(), `{"total": null, "data": []}`)
	newTestWorkspace(t).client.call("GET", w.expand("/v1/runs/$run/steps/lines/rounds"), "").wantStatus(http.StatusNotFound, "run_not_found")
}

func TestRoundsInProgress(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "lines", "foreach": "${{ [1, 2] }}", "steps": [{"id": "set", "uses": "data.set", "with": {"values": {}}},
		{"id": "pause", "uses": "flow.wait", "with": {"for": "1h"}}]}`)
	w.runUntilWaiting("run", "wf")
	wantContains(t, w.call("GET", "/v1/runs/$run/steps/lines/rounds", "").wantStatus(http.StatusOK).json(),
		`{"total": 2, "counts": {"waiting": 1, "succeeded": 0}, "data": [{"index": 0, "status": "waiting", "finished_at": null}]}`)
}
