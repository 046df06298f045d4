package api_test

import (
	"slices"
	"testing"
)

func TestDeleteWorkflow(t *testing.T) {
	wantDeleted := func(w *testWorkspace, _ *response) {
		w.call("GET", "/v1/workflows/$wf", "").wantStatus(404, "workflow_not_found")
		w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(404, "workflow_not_found")
	}
	runScenarios(t, []scenario{
		{
			name:  "a draft can be deleted",
			setup: setupWorkflow, request: "DELETE /v1/workflows/$wf", scope: "write",
			status: 204, headers: []string{"Content-Type", "", "ETag", ""}, audit: "workflow.deleted", after: wantDeleted,
		},
		{
			name:    "a paused workflow can be deleted",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"state": "paused"}`) },
			request: "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted", after: wantDeleted,
		},
		{
			name:    "an active workflow must be paused first, and the message says so",
			setup:   func(w *testWorkspace) { setupWorkflow(w); w.patch("wf", `{"state": "active"}`) },
			request: "DELETE /v1/workflows/$wf", status: 409, code: "workflow_active", message: "pause it first",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").wantStatus(200).json(), `{"state": "active"}`)
			},
		},
		{
			name:  "an empty JSON object as the body of a DELETE is accepted",
			setup: setupWorkflow, request: "DELETE /v1/workflows/$wf", body: "{}", status: 204, audit: "workflow.deleted",
		},
		{
			name:  "any other body of a DELETE is rejected",
			setup: setupWorkflow, request: "DELETE /v1/workflows/$wf", body: `{"force": true}`,
			status: 400, code: "invalid_request", pointers: []string{"/force"},
		},
		{
			name:    "deleting an unknown workflow is workflow_not_found",
			request: "DELETE /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm", status: 404, code: "workflow_not_found", message: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name: "its versions, runs and webhooks are deleted with it, and nothing else",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep)
				w.workflow("other", setStep)
				w.runToEnd("run", "wf", "")
				w.runToEnd("others_run", "other", "")
				w.create("bound", "/v1/webhooks", `{"url": "https://example.com/a", "events": ["run.failed"], "workflow_id": "$wf"}`)
				w.create("free", "/v1/webhooks", `{"url": "https://example.com/b", "events": ["run.failed"]}`)
			},
			request: "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted",
			after: func(w *testWorkspace, _ *response) {
				checkDeleted(w)
				w.call("GET", "/v1/webhooks/$bound", "").wantStatus(404, "webhook_not_found")
				w.call("PATCH", "/v1/webhooks/$bound", `{"enabled": true}`).wantStatus(404, "webhook_not_found")
				w.call("GET", "/v1/webhooks/$free", "").wantStatus(200)
				w.call("GET", "/v1/runs/$others_run", "").wantStatus(200)
				if got := w.call("GET", "/v1/webhooks", "").column("id"); !slices.Equal(got, []string{w.names["free"]}) {
					w.t.Errorf("webhooks are %v", got)
				}
			},
		},
		{
			name: "a draft with runs that are going on can be deleted: they end without an event",
			setup: func(w *testWorkspace) {
				w.workflow("wf", waitStep)
				w.runUntilWaiting("run", "wf")
			},
			request: "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted",
			after: func(w *testWorkspace, _ *response) {
				checkDeleted(w)
				if got := w.events(); !slices.Equal(got, []string{"run.started"}) {
					w.t.Errorf("events are %v", got)
				}
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"workflows": 0, "running_runs": 0}}`)
			},
		},
	})
}

// checkDeleted checks that nothing of the workflow $wf and its run $run can be
// read.
func checkDeleted(w *testWorkspace) {
	w.t.Helper()
	for call, code := range map[string]string{
		"GET /v1/workflows/$wf":                     "workflow_not_found",
		"PATCH /v1/workflows/$wf":                   "workflow_not_found",
		"POST /v1/workflows/$wf/validate":           "workflow_not_found",
		"GET /v1/workflows/$wf/versions":            "workflow_not_found",
		"GET /v1/workflows/$wf/versions/1":          "workflow_not_found",
		"POST /v1/workflows/$wf/versions/1/restore": "workflow_not_found",
		"GET /v1/workflows/$wf/runs":                "workflow_not_found",
		"POST /v1/workflows/$wf/runs":               "workflow_not_found",
		"GET /v1/runs/$run":                         "run_not_found",
		"POST /v1/runs/$run/cancel":                 "run_not_found",
	} {
		method, path := splitCall(call)
		w.call(method, path, "{}").wantStatus(404, code)
	}
	if got := w.call("GET", "/v1/workflows", "").column("id"); slices.Contains(got, w.names["wf"]) {
		w.t.Errorf("it is still in the list: %v", got)
	}
	body := `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "$wf"}`
	w.call("POST", "/v1/webhooks", body).wantStatus(404, "workflow_not_found")
}
