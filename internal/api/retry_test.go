package api_test

import (
	"strings"
	"testing"
)

// subStep runs the workflow $child and waits for it.
const subStep = `{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "$child"}}`

// setupFailedRun creates a run that failed at its last step because the
// workflow it runs was paused, then activates that workflow.
func setupFailedRun(w *testWorkspace) {
	w.t.Helper()
	w.workflow("child", setStep)
	w.patch("child", `{"state": "paused"}`)
	w.workflow("wf", setStep,
		`{"id": "never", "uses": "data.set", "with": {"values": {}}, "if": "false"}`,
		strings.Replace(failStep, `"uses"`, `"on_error": "continue", "needs": [], "uses"`, 1),
		strings.Replace(subStep, `"uses"`, `"needs": ["set", "never", "fail"], "uses"`, 1))
	wantContains(w.t, w.runToEnd("run", "wf", `{"payload": {"name": "Ada"}}`).json(),
		`{"status": "failed", "error": {"code": "run_not_started", "step_id": "sub", "message": "~.*paused.*workflow_paused.*"}}`)
	w.patch("child", `{"state": "active"}`)
}

func TestRetryRun(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a retry takes over what came to a good end and executes the rest, of the same version, whatever the workflow is now",
			setup: func(w *testWorkspace) {
				setupFailedRun(w)
				w.patch("wf", `{"steps": []}`)
			},
			request: "POST /v1/runs/$run/retry", scope: "execute", requestHeaders: []string{"Prefer", "wait=60"}, status: 200, members: runKeys,
			headers: []string{"Preference-Applied", "wait=60", "Location", "/v1/runs/run_[0-9a-z]{26}"},
			contains: `{"status": "succeeded", "retry_of": "$run", "parent": null, "workflow_id": "$wf", "workflow_version": 2, "error": null,
				"trigger": {"type": "manual", "id": null, "payload": {"name": "Ada"}},
				"steps": [{"step_id": "set", "status": "succeeded", "output": {"a": 1}, "reason": "copied from $run", "attempt": 1, "attempts": [{"attempt": 1}]},
				{"step_id": "never", "status": "skipped", "reason": "its condition is false"},
				{"step_id": "fail", "status": "failed", "error": {"code": "invalid_input"}, "reason": "copied from $run"},
				{"step_id": "sub", "status": "succeeded", "reason": null, "output": {"status": "succeeded", "output": {"a": 1}}}]}`,
			events: "run.started run.started run.succeeded run.succeeded",
			after: func(w *testWorkspace, a *response) {
				if a.str("id") == w.names["run"] {
					w.t.Error("the retry has the id of the run it retries")
				}
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "failed", "retry_of": null}`)
			},
		},
		{
			name:    "without Prefer the answer is the run as it starts, with the steps it takes over",
			setup:   setupFailedRun,
			request: "POST /v1/runs/$run/retry", status: 201, headers: []string{"Location", "/v1/runs/run_[0-9a-z]{26}", "Preference-Applied", ""},
			contains: `{"status": "running", "retry_of": "$run", "steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "never"}, {"step_id": "fail"}]}`,
			events:   "run.started run.started run.succeeded run.succeeded",
		},
		{
			name: "a cancelled run can be retried: unfinished steps start over",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, askStep)
				w.runUntilWaiting("run", "wf")
				w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(200)
			},
			request: "POST /v1/runs/$run/retry", status: 201, contains: `{"steps": [{"step_id": "set"}]}`, events: "run.started",
			after: func(w *testWorkspace, a *response) {
				w.names["again"] = a.str("id")
				w.waitForStep("again", "ask")
				w.call("POST", "/v1/runs/$again/steps/ask/resume", `{"approved": true}`).wantStatus(200)
				w.waitForStatus("again", "succeeded")
			},
		},
		{
			name: "a retry can be retried, and names the one before",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, failStep)
				w.runToEnd("first", "wf", "")
				w.names["run"] = w.call("POST", "/v1/runs/$first/retry", "", "Prefer", "wait=60").wantStatus(200).str("id")
			},
			request: "POST /v1/runs/$run/retry", requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "failed", "retry_of": "$run", "steps": [{"step_id": "set", "reason": "copied from $first"}, {"step_id": "fail", "status": "failed"}]}`,
			events:   "run.started run.failed",
		},
		{
			name: "a step that stopped the run stops its retry too",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, `{"id": "halt", "uses": "flow.stop", "with": {"status": "failed", "message": "Enough"}}`,
					`{"id": "after", "uses": "data.set", "with": {"values": {}}}`)
				w.runToEnd("run", "wf", "")
			},
			request: "POST /v1/runs/$run/retry", requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "failed", "error": {"code": "stopped", "message": "Enough", "step_id": "halt"},
				"steps": [{"step_id": "set", "reason": "copied from $run"}, {"step_id": "halt", "status": "succeeded", "reason": null}]}`,
			events: "run.started run.failed",
		},
		{
			name:    "a run that goes on cannot be retried",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep); w.runUntilWaiting("run", "wf") },
			request: "POST /v1/runs/$run/retry", status: 409, code: "run_not_retryable", message: "running",
		},
		{
			name:    "a run that succeeded cannot be retried, and the message names it",
			setup:   func(w *testWorkspace) { w.workflow("wf"); w.runToEnd("run", "wf", "") },
			request: "POST /v1/runs/$run/retry", status: 409, code: "run_not_retryable", message: "$run",
		},
		{
			name:    "a run of a paused workflow cannot be retried",
			setup:   func(w *testWorkspace) { setupFailedRun(w); w.patch("wf", `{"state": "paused"}`) },
			request: "POST /v1/runs/$run/retry", status: 409, code: "workflow_paused", message: "$wf",
		},
		{
			name:    "a run of a deleted workflow is not found",
			setup:   func(w *testWorkspace) { setupFailedRun(w); w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(204) },
			request: "POST /v1/runs/$run/retry", status: 404, code: "run_not_found", message: "$run",
		},
		{
			name:    "an unknown run is run_not_found",
			request: "POST /v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/retry", status: 404, code: "run_not_found", message: "run_01m7f9hb3mevr88y42wdngtn4v",
		},
		{
			name:    "a retry takes no body",
			setup:   setupFailedRun,
			request: "POST /v1/runs/$run/retry", body: `{"payload": {}}`, status: 400, code: "invalid_request", pointers: []string{"/payload"},
		},
	})
}

// A retry of a failed loop reuses the rounds that succeeded.
func TestRetryReusesRounds(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("child", setStep)
	w.workflow("asleep", setStep)
	w.patch("asleep", `{"state": "paused"}`)
	w.workflow("wf", `{"id": "each", "foreach": "trigger.payload.ids", "parallel": 3, "steps": [
		{"id": "note", "uses": "log.write", "with": {"message": "round ${{ index }}"}},
		{"id": "try", "uses": "flow.run", "with": {"workflow_id": "${{ item }}", "payload": {"n": "${{ index }}"}}}]}`)
	w.runToEnd("run", "wf", `{"payload": {"ids": ["$child", "$asleep", "$child"]}}`)
	w.patch("asleep", `{"state": "active"}`)
	again := w.call("POST", "/v1/runs/$run/retry", "", "Prefer", "wait=60").wantStatus(200)
	w.names["again"] = again.str("id")
	copied := w.expand(`"copied from $run"`)
	steps := stepsByID(again)
	for path, reason := range map[string]string{
		"each[0].note": copied, "each[0].try": copied, "each[1].note": copied, "each[1].try": "null", "each[2].note": copied, "each[2].try": copied, "each": "null",
	} {
		wantContains(t, steps[path], `{"status": "succeeded", "reason": `+reason+`}`)
	}
	if got := len(w.call("GET", "/v1/workflows/$child/runs", "").items()); got != 2 {
		t.Errorf("the rounds that had ended well were executed again: %d runs", got)
	}
	wantContains(t, steps["each"].(map[string]any)["output"], `{"items": [{"output": {"a": 1}}, {"output": {"a": 1}}, {"output": {"a": 1}}]}`)
	if got := w.call("GET", "/v1/runs/$again/logs", "").items(); len(got) != 0 {
		t.Errorf("steps that were copied wrote to the log: %v", got)
	}
}

// stepsByID returns the steps of a run by id.
func stepsByID(run *response) map[string]any {
	run.t.Helper()
	out := map[string]any{}
	list, _ := run.object()["steps"].([]any)
	for _, step := range list {
		out[step.(map[string]any)["step_id"].(string)] = step
	}
	return out
}
