package api_test

import (
	"testing"
)

const fixedStep = `{"id": "fail", "uses": "data.set", "with": {"values": {"fixed": true}}}`

// setupFixedWorkflow creates a run that failed in version 2 and a version 3
// that fixes it.
func setupFixedWorkflow(w *testWorkspace) {
	w.t.Helper()
	w.workflow("wf", setStep, failStep)
	w.runToEnd("run", "wf", `{"payload": {"name": "Ada"}}`)
	w.patch("wf", `{"steps": [`+setStep+`, `+fixedStep+`]}`)
}

const retryCurrent = `{"version": "current"}`

func TestRetryWithCurrentVersion(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "runs the current version and keeps the results of steps that did not change",
			setup:   setupFixedWorkflow,
			request: "POST /v1/runs/$run/retry", scope: "execute", body: retryCurrent, requestHeaders: []string{"Prefer", "wait=60"}, status: 200, members: runKeys,
			contains: `{"status": "succeeded", "retry_of": "$run", "workflow_version": 3, "draft": false, "trigger": {"payload": {"name": "Ada"}},
				"steps": [{"step_id": "set", "status": "succeeded", "reason": "copied from $run"}, {"step_id": "fail", "reason": null, "output": {"fixed": true}}]}`,
			events: "run.started run.succeeded",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/runs/$run", "").json(), `{"status": "failed", "workflow_version": 2}`)
			},
		},
		{
			name:    "pinned runs the version of the run, also when there is a newer one",
			setup:   setupFixedWorkflow,
			request: "POST /v1/runs/$run/retry", body: `{"version": "pinned"}`, requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "failed", "workflow_version": 2, "steps": [{"step_id": "set", "reason": "copied from $run"}, {"step_id": "fail", "status": "failed"}]}`,
			events:   "run.started run.failed",
		},
		{
			name: "a changed step is executed, and so is what comes after it",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, `{"id": "twice", "uses": "data.set", "with": {"values": {"b": "${{ steps.set.output.a * 2 }}"}}}`, failStep)
				w.runToEnd("run", "wf", "")
				w.patch("wf", `{"steps": [{"id": "set", "uses": "data.set", "with": {"values": {"a": 21}}},
					{"id": "twice", "uses": "data.set", "with": {"values": {"b": "${{ steps.set.output.a * 2 }}"}}}, `+fixedStep+`]}`)
			},
			request: "POST /v1/runs/$run/retry", body: retryCurrent, requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "succeeded", "steps": [{"step_id": "set", "reason": null, "output": {"a": 21}}, {"step_id": "twice", "reason": null, "output": {"b": 42}}, {"step_id": "fail"}]}`,
			events:   "run.started run.succeeded",
		},
		{
			name: "removed, added and renamed steps, and a new name for one that stays",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, `{"id": "gone", "needs": [], "uses": "data.set", "with": {"values": {}}}`,
					`{"id": "old", "needs": [], "uses": "data.set", "with": {"values": {}}}`, `{"id": "fail", "needs": ["set", "gone", "old"], "uses": "flow.wait", "with": {"for": "${{ trigger.payload.none }}"}}`)
				w.runToEnd("run", "wf", "")
				w.patch("wf", `{"steps": [{"id": "set", "name": "Set it", "uses": "data.set", "with": {"values": {"a": 1}}},
					{"id": "fresh", "needs": [], "uses": "data.set", "with": {"values": {}}}, {"id": "fail", "needs": ["set", "fresh"], "uses": "data.set", "with": {"values": {}}}]}`)
			},
			request: "POST /v1/runs/$run/retry", body: retryCurrent, requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "succeeded", "steps": [{"step_id": "set", "name": "Set it", "reason": "copied from $run"}, {"step_id": "fresh", "reason": null}, {"step_id": "fail", "reason": null}]}`,
			events:   "run.started run.succeeded",
		},
		{
			name: "when the run has the current version, current is the same as pinned",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep, failStep)
				w.runToEnd("run", "wf", "")
			},
			request: "POST /v1/runs/$run/retry", body: retryCurrent, requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "failed", "workflow_version": 2, "steps": [{"step_id": "set", "reason": "copied from $run"}, {"step_id": "fail"}]}`,
			events:   "run.started run.failed",
		},
		{
			name: "a retry of a draft with the current version is not a draft and reuses no pinned output",
			setup: func(w *testWorkspace) {
				w.workflow("wf", setStep)
				w.names["run"] = w.runDraft(`{"use_pinned": true, "pinned": {"set": {"a": 7}}, "definition": {"steps": [` + setStep + `,
					{"id": "free", "needs": [], "uses": "data.set", "with": {"values": {"f": 1}}}, ` + failStep + `]}}`).str("id")
				w.patch("wf", `{"steps": [`+setStep+`, {"id": "free", "needs": [], "uses": "data.set", "with": {"values": {"f": 1}}}, `+fixedStep+`]}`)
			},
			request: "POST /v1/runs/$run/retry", body: retryCurrent, requestHeaders: []string{"Prefer", "wait=60"}, status: 200,
			contains: `{"status": "succeeded", "draft": false, "workflow_version": 3,
				"steps": [{"step_id": "free", "reason": "copied from $run"}, {"step_id": "set", "pinned": false, "reason": null, "output": {"a": 1}}, {"step_id": "fail"}]}`,
			events: "run.started run.succeeded",
		},
		{
			name: "a concurrency key of the current version that cannot be evaluated is rejected, and nothing starts",
			setup: func(w *testWorkspace) {
				setupFixedWorkflow(w)
				w.patch("wf", `{"settings": {"concurrency": {"key": "${{ trigger.payload.name + 1 }}"}}}`)
			},
			request: "POST /v1/runs/$run/retry", body: retryCurrent, status: 400, code: "invalid_request", message: "concurrency key",
		},
		{
			name:    "a paused workflow",
			setup:   func(w *testWorkspace) { setupFixedWorkflow(w); w.patch("wf", `{"state": "paused"}`) },
			request: "POST /v1/runs/$run/retry", body: retryCurrent, status: 409, code: "workflow_paused", message: "$wf",
		},
		{
			name: "a deleted workflow",
			setup: func(w *testWorkspace) {
				setupFixedWorkflow(w)
				w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(204)
			},
			request: "POST /v1/runs/$run/retry", body: retryCurrent, status: 404, code: "run_not_found", message: "$run",
		},
		{
			name:    "a run that succeeded",
			setup:   func(w *testWorkspace) { w.workflow("wf"); w.runToEnd("run", "wf", "") },
			request: "POST /v1/runs/$run/retry", body: retryCurrent, status: 409, code: "run_not_retryable",
		},
		{
			name:    "an unknown version is rejected",
			setup:   setupFixedWorkflow,
			request: "POST /v1/runs/$run/retry", body: `{"version": "newest"}`, status: 400, code: "invalid_request", pointers: []string{"/version"}, message: "current",
		},
		{
			name:    "an empty version is rejected",
			setup:   setupFixedWorkflow,
			request: "POST /v1/runs/$run/retry", body: `{"version": ""}`, status: 400, code: "invalid_request", pointers: []string{"/version"},
		},
		{
			name:    "null is rejected",
			setup:   setupFixedWorkflow,
			request: "POST /v1/runs/$run/retry", body: `{"version": null}`, status: 400, code: "invalid_request", pointers: []string{"/version"},
		},
		{
			name:    "a number is rejected",
			setup:   setupFixedWorkflow,
			request: "POST /v1/runs/$run/retry", body: `{"version": 3}`, status: 400, code: "invalid_request", pointers: []string{"/version"},
		},
	})
}

// The concurrency settings of the executed version apply.
func TestRetryWithCurrentVersionAcquiresSlot(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", setStep, failStep)
	w.runToEnd("run", "wf", "")
	w.patch("wf", `{"steps": [`+askStep+`], "settings": {"concurrency": {"limit": 1, "on_limit": "drop"}}}`)
	w.startRun("other", "wf", "")
	w.call("POST", "/v1/runs/$run/retry", retryCurrent).wantStatus(409, "concurrency_limit")
	w.call("POST", "/v1/runs/$other/cancel", "").wantStatus(200)
	w.names["again"] = w.call("POST", "/v1/runs/$run/retry", retryCurrent).wantStatus(201).str("id")
	w.waitForStep("again", "ask")
}
