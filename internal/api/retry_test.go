package api_test

import (
	"strings"
	"testing"
)

// subStep runs the workflow called child and waits for it.
const subStep = `{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "$child"}}`

// givenFailed makes a run that failed at its last step, because the workflow
// that it runs was paused, and activates that workflow.
func givenFailed(w *world) {
	w.t.Helper()
	w.workflow("child", setStep)
	w.patch("child", `{"state": "paused"}`)
	w.workflow("wf", setStep,
		`{"id": "never", "uses": "data.set", "with": {"values": {}}, "if": "false"}`,
		strings.Replace(failStep, `"uses"`, `"on_error": "continue", "needs": [], "uses"`, 1),
		strings.Replace(subStep, `"uses"`, `"needs": ["set", "never", "fail"], "uses"`, 1))
	wantContains(w.t, w.finish("run", "wf", `{"payload": {"name": "Ada"}}`).json(),
		`{"status": "failed", "error": {"code": "run_not_started", "step_id": "sub", "message": "~.*paused.*workflow_paused.*"}}`)
	w.patch("child", `{"state": "active"}`)
}

func TestRetryRun(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a retry takes over what came to a good end and executes the rest, of the same version, whatever the workflow is now",
			given: func(w *world) {
				givenFailed(w)
				w.patch("wf", `{"steps": []}`)
			},
			call: "POST /v1/runs/$run/retry", as: "execute", with: []string{"Prefer", "wait=30"}, status: 200, keys: runKeys,
			headers: []string{"Preference-Applied", "wait=30", "Location", "/v1/runs/run_[0-9a-z]{26}"},
			answer: `{"status": "succeeded", "retry_of": "$run", "parent": null, "workflow_id": "$wf", "workflow_version": 2, "error": null,
				"trigger": {"type": "manual", "id": null, "payload": {"name": "Ada"}},
				"steps": [{"step_id": "set", "status": "succeeded", "output": {"a": 1}, "reason": "copied from $run", "attempt": 1, "attempts": [{"attempt": 1}]},
				{"step_id": "never", "status": "skipped", "reason": "its condition is false"},
				{"step_id": "fail", "status": "failed", "error": {"code": "invalid_input"}, "reason": "copied from $run"},
				{"step_id": "sub", "status": "succeeded", "reason": null, "output": {"status": "succeeded", "output": {"a": 1}}}]}`,
			events: "run.started run.started run.succeeded run.succeeded",
			then: func(w *world, a *answer) {
				if a.text("id") == w.names["run"] {
					w.t.Error("the retry has the id of the run it retries")
				}
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "failed", "retry_of": null}`)
			},
		},
		{
			name:  "without Prefer the answer is the run as it starts, with the steps it takes over",
			given: givenFailed,
			call:  "POST /v1/runs/$run/retry", status: 201, headers: []string{"Location", "/v1/runs/run_[0-9a-z]{26}", "Preference-Applied", ""},
			answer: `{"status": "running", "retry_of": "$run", "steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "never"}, {"step_id": "fail"}]}`,
			events: "run.started run.started run.succeeded run.succeeded",
		},
		{
			name: "a cancelled run can be retried: what was open begins anew",
			given: func(w *world) {
				w.workflow("wf", setStep, askStep)
				w.waiting("run", "wf")
				w.call("POST", "/v1/runs/$run/cancel", "").want(200)
			},
			call: "POST /v1/runs/$run/retry", status: 201, answer: `{"steps": [{"step_id": "set"}]}`, events: "run.started",
			then: func(w *world, a *answer) {
				w.names["again"] = a.text("id")
				w.waits("again", "ask")
				w.call("POST", "/v1/runs/$again/steps/ask/resume", `{"approved": true}`).want(200)
				w.ends("again", "succeeded")
			},
		},
		{
			name: "a retry can be retried, and names the one before",
			given: func(w *world) {
				w.workflow("wf", setStep, failStep)
				w.finish("first", "wf", "")
				w.names["run"] = w.call("POST", "/v1/runs/$first/retry", "", "Prefer", "wait=30").want(200).text("id")
			},
			call: "POST /v1/runs/$run/retry", with: []string{"Prefer", "wait=30"}, status: 200,
			answer: `{"status": "failed", "retry_of": "$run", "steps": [{"step_id": "set", "reason": "copied from $first"}, {"step_id": "fail", "status": "failed"}]}`,
			events: "run.started run.failed",
		},
		{
			name: "a step that stopped the run stops its retry too",
			given: func(w *world) {
				w.workflow("wf", setStep, `{"id": "halt", "uses": "flow.stop", "with": {"status": "failed", "message": "Enough"}}`,
					`{"id": "after", "uses": "data.set", "with": {"values": {}}}`)
				w.finish("run", "wf", "")
			},
			call: "POST /v1/runs/$run/retry", with: []string{"Prefer", "wait=30"}, status: 200,
			answer: `{"status": "failed", "error": {"code": "stopped", "message": "Enough", "step_id": "halt"},
				"steps": [{"step_id": "set", "reason": "copied from $run"}, {"step_id": "halt", "status": "succeeded", "reason": null}]}`,
			events: "run.started run.failed",
		},
		{
			name:  "a run that goes on cannot be retried",
			given: func(w *world) { w.workflow("wf", waitStep); w.waiting("run", "wf") },
			call:  "POST /v1/runs/$run/retry", status: 409, code: "run_not_retryable", says: "running",
		},
		{
			name:  "a run that succeeded cannot be retried, and the message names it",
			given: func(w *world) { w.workflow("wf"); w.finish("run", "wf", "") },
			call:  "POST /v1/runs/$run/retry", status: 409, code: "run_not_retryable", says: "$run",
		},
		{
			name:  "a run of a paused workflow cannot be retried",
			given: func(w *world) { givenFailed(w); w.patch("wf", `{"state": "paused"}`) },
			call:  "POST /v1/runs/$run/retry", status: 409, code: "workflow_paused", says: "$wf",
		},
		{
			name:  "a run of a deleted workflow is gone",
			given: func(w *world) { givenFailed(w); w.call("DELETE", "/v1/workflows/$wf", "").want(204) },
			call:  "POST /v1/runs/$run/retry", status: 404, code: "run_not_found", says: "$run",
		},
		{
			name: "an unknown run is run_not_found",
			call: "POST /v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/retry", status: 404, code: "run_not_found", says: "run_01m7f9hb3mevr88y42wdngtn4v",
		},
		{
			name:  "a retry takes no body",
			given: givenFailed,
			call:  "POST /v1/runs/$run/retry", body: `{"payload": {}}`, status: 400, code: "invalid_request", points: []string{"/payload"},
		},
	})
}

// Of a loop that failed, the rounds that came to a good end are kept.
func TestRetryKeepsRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("child", setStep)
	w.workflow("asleep", setStep)
	w.patch("asleep", `{"state": "paused"}`)
	w.workflow("wf", `{"id": "each", "foreach": "trigger.payload.ids", "parallel": 3, "steps": [
		{"id": "note", "uses": "log.write", "with": {"message": "round ${{ index }}"}},
		{"id": "try", "uses": "flow.run", "with": {"workflow_id": "${{ item }}", "payload": {"n": "${{ index }}"}}}]}`)
	w.finish("run", "wf", `{"payload": {"ids": ["$child", "$asleep", "$child"]}}`)
	w.patch("asleep", `{"state": "active"}`)
	again := w.call("POST", "/v1/runs/$run/retry", "", "Prefer", "wait=30").want(200)
	w.names["again"] = again.text("id")
	copied := w.fill(`"copied from $run"`)
	steps := stepsOf(again)
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

// stepsOf are the steps of a run by their id.
func stepsOf(run *answer) map[string]any {
	run.t.Helper()
	out := map[string]any{}
	list, _ := run.object()["steps"].([]any)
	for _, step := range list {
		out[step.(map[string]any)["step_id"].(string)] = step
	}
	return out
}
