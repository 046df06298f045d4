package api_test

import (
	"slices"
	"testing"
	"time"
)

func TestDeleteWorkflow(t *testing.T) {
	gone := func(w *world, _ *answer) {
		w.call("GET", "/v1/workflows/$wf", "").want(404, "workflow_not_found")
		w.call("DELETE", "/v1/workflows/$wf", "").want(404, "workflow_not_found")
	}
	runScenarios(t, []scenario{
		{
			name:  "a draft can be deleted",
			given: givenWorkflow, call: "DELETE /v1/workflows/$wf", as: "write",
			status: 204, headers: []string{"Content-Type", "", "ETag", ""}, audit: "workflow.deleted", then: gone,
		},
		{
			name:  "a paused workflow can be deleted",
			given: func(w *world) { givenWorkflow(w); w.patch("wf", `{"state": "paused"}`) },
			call:  "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted", then: gone,
		},
		{
			name:  "an active workflow must be paused first, and the message says so",
			given: func(w *world) { givenWorkflow(w); w.patch("wf", `{"state": "active"}`) },
			call:  "DELETE /v1/workflows/$wf", status: 409, code: "workflow_active", says: "pause it first",
			then: func(w *world, _ *answer) {
				wantContains(w.t, w.call("GET", "/v1/workflows/$wf", "").want(200).json(), `{"state": "active"}`)
			},
		},
		{
			name:  "an empty JSON object as the body of a DELETE is accepted",
			given: givenWorkflow, call: "DELETE /v1/workflows/$wf", body: "{}", status: 204, audit: "workflow.deleted",
		},
		{
			name:  "any other body of a DELETE is refused",
			given: givenWorkflow, call: "DELETE /v1/workflows/$wf", body: `{"force": true}`,
			status: 400, code: "invalid_request", points: []string{"/force"},
		},
		{
			name: "deleting an unknown workflow is workflow_not_found",
			call: "DELETE /v1/workflows/wf_01m7f8njhve3pt0yekqqme4qcm", status: 404, code: "workflow_not_found", says: "wf_01m7f8njhve3pt0yekqqme4qcm",
		},
		{
			name: "its versions, its runs and the webhooks bound to it are gone with it, and only they",
			given: func(w *world) {
				w.workflow("wf", setStep)
				w.workflow("other", setStep)
				w.finish("run", "wf", "")
				w.finish("others_run", "other", "")
				w.make("bound", "/v1/webhooks", `{"url": "https://example.com/a", "events": ["run.failed"], "workflow_id": "$wf"}`)
				w.make("free", "/v1/webhooks", `{"url": "https://example.com/b", "events": ["run.failed"]}`)
			},
			call: "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted",
			then: func(w *world, _ *answer) {
				checkGone(w)
				w.call("GET", "/v1/webhooks/$bound", "").want(404, "webhook_not_found")
				w.call("PATCH", "/v1/webhooks/$bound", `{"enabled": true}`).want(404, "webhook_not_found")
				w.call("GET", "/v1/webhooks/$free", "").want(200)
				w.call("GET", "/v1/runs/$others_run", "").want(200)
				if got := w.call("GET", "/v1/webhooks", "").column("id"); !slices.Equal(got, []string{w.names["free"]}) {
					w.t.Errorf("webhooks are %v", got)
				}
			},
		},
		{
			name: "a draft with runs that are going on can be deleted: they end without an event",
			given: func(w *world) {
				w.workflow("wf", waitStep)
				w.waiting("run", "wf")
			},
			call: "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted",
			then: func(w *world, _ *answer) {
				checkGone(w)
				time.Sleep(50 * time.Millisecond)
				if got := w.events(); !slices.Equal(got, []string{"run.started"}) {
					w.t.Errorf("events are %v", got)
				}
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"workflows": 0, "running_runs": 0}}`)
			},
		},
		{
			name: "a run that would wake up after its workflow was deleted does not go on",
			given: func(w *world) {
				w.workflow("wf", `{"id": "nap", "uses": "flow.wait", "with": {"for": "150ms"}}`, setStep)
				w.run("run", "wf", "")
			},
			call: "DELETE /v1/workflows/$wf", status: 204, audit: "workflow.deleted",
			then: func(w *world, _ *answer) {
				time.Sleep(300 * time.Millisecond)
				if got := w.events(); !slices.Equal(got, []string{"run.started"}) {
					w.t.Errorf("events are %v", got)
				}
			},
		},
	})
}

// checkGone makes sure that nothing of the workflow $wf with its run $run
// answers any more.
func checkGone(w *world) {
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
		w.call(method, path, "{}").want(404, code)
	}
	if got := w.call("GET", "/v1/workflows", "").column("id"); slices.Contains(got, w.names["wf"]) {
		w.t.Errorf("it is still in the list: %v", got)
	}
	body := `{"url": "https://example.com", "events": ["run.failed"], "workflow_id": "$wf"}`
	w.call("POST", "/v1/webhooks", body).want(404, "workflow_not_found")
}
