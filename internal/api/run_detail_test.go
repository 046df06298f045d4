package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestGetRun(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "a run that succeeded shows its steps with input, output and attempts",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "greet", "name": "Write it", "uses": "data.set", "with": {"values": {"text": "Hello ${{ trigger.payload.name }}"}}}`)
				w.runToEnd("run", "wf", `{"payload": {"name": "Ada"}}`)
			},
			request: "GET /v1/runs/$run", scope: "read", status: 200, members: runKeys,
			contains: `{"id": "$run", "status": "succeeded", "finished_at": "~.+Z", "error": null, "waiting_for": null, "retry_of": null,
				"steps": [{"step_id": "greet", "name": "Write it", "type": "data.set", "status": "succeeded", "attempt": 1, "finished_at": "~.+Z",
				"input": {"values": {"text": "Hello Ada"}}, "output": {"text": "Hello Ada"}, "error": null, "reason": null,
				"attempts": [{"attempt": 1, "status": "succeeded", "error": null}]}]}`,
			after: func(w *testWorkspace, a *response) {
				step := a.object()["steps"].([]any)[0].(map[string]any)
				wantKeys(w.t, step, stepKeys)
				wantKeys(w.t, step["attempts"].([]any)[0].(map[string]any), "attempt status started_at finished_at duration_ms error")
				checkEndEvent(w, a, "run.succeeded", "run_id workflow_id workflow_name status trigger started_at finished_at duration_ms", `{"status": "succeeded"}`)
			},
		},
		{
			name:    "a step without a name is called by its id",
			setup:   func(w *testWorkspace) { w.workflow("wf", setStep); w.runToEnd("run", "wf", "") },
			request: "GET /v1/runs/$run", status: 200, contains: `{"steps": [{"step_id": "set", "name": "set"}]}`,
		},
		{
			name: "a run with a failing expression is failed, with the error of the run and of the step",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, failStep, `{"id": "after", "uses": "data.set", "with": {"values": {}}}`)
				w.runToEnd("run", "wf", "")
			},
			request: "GET /v1/runs/$run", status: 200,
			contains: `{"status": "failed", "error": {"code": "invalid_input", "message": "~Step .Fail on purpose. failed: .+", "step_id": "fail"}, "waiting_for": null,
				"steps": [{"step_id": "set", "status": "succeeded"}, {"step_id": "fail", "status": "failed", "output": {}, "reason": null,
				"error": {"code": "invalid_input", "message": "~.+"}, "attempts": [{"attempt": 1, "status": "failed", "error": {"code": "invalid_input"}}]},
				{"step_id": "after", "status": "skipped", "attempt": 0, "duration_ms": 0, "input": {}, "output": {}, "error": null, "reason": "~.*fail.*", "attempts": []}]}`,
			after: func(w *testWorkspace, a *response) {
				wantKeys(w.t, a.object()["error"].(map[string]any), "code message step_id")
				wantKeys(w.t, a.object()["steps"].([]any)[1].(map[string]any)["error"].(map[string]any), "code message")
				message := a.object()["error"].(map[string]any)["message"].(string)
				checkEndEvent(w, a, "run.failed",
					"run_id workflow_id workflow_name status trigger started_at finished_at duration_ms error failed_step_id",
					fmt.Sprintf(`{"status": "failed", "error": %q, "failed_step_id": "fail"}`, message))
			},
		},
		{
			name: "an expression that cannot be evaluated fails the step with expression_failed",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "bad", "uses": "data.set", "with": {"values": {"x": "${{ trigger.payload.a + 1 }}"}}}`)
				w.runToEnd("run", "wf", `{"payload": {"a": {"b": 1}}}`)
			},
			request: "GET /v1/runs/$run", status: 200,
			contains: `{"status": "failed", "error": {"code": "expression_failed", "step_id": "bad"}, "steps": [{"status": "failed", "input": {}}]}`,
		},
		{
			name: "a skipped step has the moment it was skipped as its start and its end",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "never", "uses": "data.set", "with": {"values": {"a": 1}}, "if": "trigger.payload.go"}`,
					`{"id": "after", "uses": "data.set", "with": {"values": {"out": "${{ steps.never.output }}", "how": "${{ steps.never.status }}"}}, "join": "always"}`)
				w.runToEnd("run", "wf", `{"payload": {"go": false}}`)
			},
			request: "GET /v1/runs/$run", status: 200,
			contains: `{"status": "succeeded", "steps": [{"step_id": "never", "status": "skipped", "attempt": 0, "duration_ms": 0, "input": {}, "output": {},
				"error": null, "reason": "its condition is false", "attempts": []}, {"step_id": "after", "output": {"out": null, "how": "skipped"}}]}`,
			after: func(w *testWorkspace, a *response) {
				step := a.object()["steps"].([]any)[0].(map[string]any)
				wantKeys(w.t, step, stepKeys)
				if step["started_at"] != step["finished_at"] {
					w.t.Errorf("started %v, finished %v", step["started_at"], step["finished_at"])
				}
			},
		},
		{
			name: "a step that may fail lets the run go on, with its error at hand",
			setup: func(w *testWorkspace) {
				w.workflow("wf", strings.Replace(failStep, `"uses"`, `"on_error": "continue", "uses"`, 1),
					`{"id": "after", "uses": "data.set", "with": {"values": {"code": "${{ steps.fail.error.code }}", "how": "${{ steps.fail.status }}"}}}`)
				w.runToEnd("run", "wf", "")
			},
			request: "GET /v1/runs/$run", status: 200,
			contains: `{"status": "succeeded", "error": null, "steps": [{"status": "failed"}, {"status": "succeeded", "output": {"code": "invalid_input", "how": "failed"}}]}`,
		},
		{
			name: "a run that waits stays running and says why and until when",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, waitStep, `{"id": "later", "uses": "data.set", "with": {"values": {}}}`)
				w.runUntilWaiting("run", "wf")
			},
			request: "GET /v1/runs/$run", status: 200,
			contains: `{"status": "running", "finished_at": null, "waiting_for": {"kind": "time", "step_id": "pause", "connection": null, "reason": "~waits until .+", "until": "~.+Z"},
				"steps": [{"step_id": "set"}, {"step_id": "pause", "status": "waiting", "finished_at": null, "input": {"for": "1h"}, "output": {}, "error": null,
				"reason": "~waits until .+", "attempts": [{"status": "waiting", "finished_at": null}]}]}`,
			after: func(w *testWorkspace, a *response) {
				wait := a.object()["waiting_for"].(map[string]any)
				wantKeys(w.t, wait, "kind reason step_id connection until")
				until, err := time.Parse(time.RFC3339, wait["until"].(string))
				if left := time.Until(until); err != nil || left < 59*time.Minute || left > time.Hour {
					w.t.Errorf("it waits until %v, %v from now", wait["until"], left)
				}
			},
		},
		{
			name: "a wait that is over has the moment as its output",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "nap", "uses": "flow.wait", "with": {"for": "20ms"}}`)
				w.runToEnd("run", "wf", "")
			},
			request: "GET /v1/runs/$run", status: 200,
			contains: `{"status": "succeeded", "steps": [{"status": "succeeded", "reason": null, "output": {"waited_until": "~.+Z"}}]}`,
		},
		{
			name: "the texts of errors are bounded, and shorter in the event than in the run",
			setup: func(w *testWorkspace) {
				w.workflow("wf", `{"id": "bad", "uses": "flow.wait", "with": {"until": "${{ trigger.payload.x }}"}}`)
				w.runToEnd("run", "wf", `{"payload": {"x": "`+strings.Repeat("é", 20_000)+`"}}`)
			},
			request: "GET /v1/runs/$run", status: 200, contains: `{"status": "failed", "error": {"code": "invalid_input"}}`,
			after: func(w *testWorkspace, a *response) {
				whole := a.object()["error"].(map[string]any)["message"].(string)
				short := w.eventBodies("run.failed")[0]["data"].(map[string]any)["error"].(string)
				if len(whole) > 5<<10 || len(short) > 2000 || !strings.HasPrefix(whole, short) || strings.ContainsRune(whole, '\uFFFD') {
					w.t.Errorf("%d bytes in the run, %d in the event: %q", len(whole), len(short), short)
				}
			},
		},
		{
			name:    "an unknown run is run_not_found, and the message names it",
			request: "GET /v1/runs/run_01m7f9hb3mevr88y42wdngtn4v", status: 404, code: "run_not_found", message: "run_01m7f9hb3mevr88y42wdngtn4v",
		},
		{
			name:    "an id of the wrong form is an unknown run",
			request: "GET /v1/runs/1", status: 404, code: "run_not_found",
		},
	})
}

// checkEndEvent compares the event of a run's end with the run.
func checkEndEvent(w *testWorkspace, run *response, kind, keys, data string) {
	w.t.Helper()
	bodies := w.eventBodies(kind)
	if len(bodies) != 1 {
		w.t.Fatalf("there are %d events %s", len(bodies), kind)
	}
	wantKeys(w.t, bodies[0], "id event timestamp data")
	wantKeys(w.t, bodies[0]["data"].(map[string]any), keys)
	wantContains(w.t, bodies[0]["data"], data)
	finished := run.str("finished_at")
	wantContains(w.t, bodies[0], fmt.Sprintf(`{"event": %q, "timestamp": %q, "data": {"run_id": %q, "workflow_id": %q,
		"workflow_name": "Workflow wf", "trigger": {"type": "manual", "id": null}, "started_at": %q, "finished_at": %[2]q}}`,
		kind, finished, run.str("id"), run.str("workflow_id"), run.str("started_at")))
}

func TestCancelRun(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "cancelling a waiting run is immediate and final, with every open step cancelled and the finished ones as they were",
			setup:   func(w *testWorkspace) { w.workflow("wf", setStep, waitStep); w.runUntilWaiting("run", "wf") },
			request: "POST /v1/runs/$run/cancel", scope: "execute", status: 200, members: runKeys,
			contains: `{"id": "$run", "status": "cancelled", "finished_at": "~.+Z", "error": null, "waiting_for": null,
				"steps": [{"step_id": "set", "status": "succeeded", "output": {"a": 1}},
				{"step_id": "pause", "status": "cancelled", "finished_at": "~.+Z", "error": null, "output": {}, "attempts": [{"status": "cancelled"}]}]}`,
			events: "run.cancelled",
			after: func(w *testWorkspace, a *response) {
				checkEndEvent(w, a, "run.cancelled", "run_id workflow_id workflow_name status trigger started_at finished_at duration_ms", `{"status": "cancelled"}`)
				if got := w.call("GET", "/v1/runs/$run", ""); string(got.body) != string(a.body) {
					w.t.Errorf("cancelling it gave %s, reading it gives %s", a.body, got.body)
				}
				w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(409, "run_not_running")
			},
		},
		{
			name:    "a run that succeeded is run_not_running, and the message names it",
			setup:   func(w *testWorkspace) { w.workflow("wf"); w.runToEnd("run", "wf", "") },
			request: "POST /v1/runs/$run/cancel", status: 409, code: "run_not_running", message: "$run",
		},
		{
			name:    "a run that failed is run_not_running",
			setup:   func(w *testWorkspace) { w.workflow("wf", failStep); w.runToEnd("run", "wf", "") },
			request: "POST /v1/runs/$run/cancel", status: 409, code: "run_not_running", message: "failed",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "failed"}`)
			},
		},
		{
			name:    "an unknown run is run_not_found",
			request: "POST /v1/runs/run_01m7f9hb3mevr88y42wdngtn4v/cancel", status: 404, code: "run_not_found", message: "run_01m7f9hb3mevr88y42wdngtn4v",
		},
		{
			name: "a run of a paused workflow can be cancelled",
			setup: func(w *testWorkspace) {
				w.workflow("wf", waitStep)
				w.runUntilWaiting("run", "wf")
				w.patch("wf", `{"state": "paused"}`)
			},
			request: "POST /v1/runs/$run/cancel", body: "{}", status: 200, contains: `{"status": "cancelled"}`, events: "run.cancelled",
		},
		{
			name:    "cancelling takes no body",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep); w.runUntilWaiting("run", "wf") },
			request: "POST /v1/runs/$run/cancel", body: `{"reason": "x"}`, status: 400, code: "invalid_request", pointers: []string{"/reason"},
		},
		{
			name:    "cancelling needs the scope execute",
			setup:   func(w *testWorkspace) { w.workflow("wf", waitStep); w.startRun("run", "wf", "") },
			request: "POST /v1/runs/$run/cancel", scope: "write", status: 403, code: "insufficient_scope", message: "execute",
		},
	})
}

// A waiting request returns when the run is cancelled.
func TestCancelEndsPreferWait(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", waitStep)
	waited := make(chan *response, 1)
	go func() { waited <- w.call("POST", "/v1/workflows/$wf/runs", "", "Prefer", "wait=60") }()
	var id string
	eventually(t, "the run is listed", func() bool {
		ids := w.client.call("GET", w.expand("/v1/workflows/$wf/runs"), "").column("id")
		if len(ids) == 1 {
			id = ids[0]
		}
		return id != ""
	})
	w.client.call("POST", "/v1/runs/"+id+"/cancel", "").wantStatus(200)
	wantContains(t, (<-waited).wantStatus(200).json(), `{"status": "cancelled"}`)
}
