package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestSubrun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("child", `{"id": "sum", "uses": "data.set", "with": {"values": {"twice": "${{ trigger.payload.n * 2 }}"}}}`)
	w.workflow("wf", `{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "$child", "payload": {"n": "${{ trigger.payload.n }}"}}}`)
	run := w.runToEnd("run", "wf", `{"payload": {"n": 21}}`)
	wantContains(t, run.json(), `{"status": "succeeded", "parent": null, "steps": [{"step_id": "sub", "type": "flow.run", "status": "succeeded", "attempt": 1,
		"input": {"payload": {"n": 21}}, "output": {"run_id": "~run_.+", "status": "succeeded", "output": {"twice": 42}}}]}`)
	ids := w.call("GET", "/v1/workflows/$child/runs", "").column("id")
	if len(ids) != 1 {
		t.Fatalf("the runs are %v", ids)
	}
	wantContains(t, w.call("GET", "/v1/runs/"+ids[0], "").json(),
		w.expand(`{"parent": {"run_id": "$run", "step_id": "sub"}, "retry_of": null, "trigger": {"type": "run", "id": "$run", "payload": {"n": 21}}}`))
	wantContains(t, w.eventBodies("run.started")[1], w.expand(`{"data": {"trigger": {"type": "run", "id": "$run"}}}`))
}

// While the subrun is running, the parent reports that it waits for it.
func TestRunWaitsForSubrun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("child", askStep)
	w.workflow("wf", subStep)
	w.startRun("run", "wf", "")
	waiting := w.waitForStep("run", "sub")
	w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
	wantContains(t, waiting.json(), w.expand(`{"waiting_for": {"reason": "waits for $below to end", "step_id": "sub"}, "steps": [{"status": "waiting"}]}`))
	// A wait for a subrun cannot be resumed by a decision.
	w.call("POST", "/v1/runs/$run/steps/sub/resume", `{"approved": true}`).wantStatus(409, "step_not_waiting")
	w.waitForStep("below", "ask")
	wantContains(t, w.call("GET", "/v1/approvals", "").json(), w.expand(`{"data": [{"run_id": "$below"}]}`))
	w.approve("below")
	wantContains(t, w.waitForStatus("run", "succeeded").json(), `{"steps": [{"output": {"output": {"approved": true}}}]}`)
}

func TestDetachedSubrun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("child", askStep)
	w.workflow("wf", strings.Replace(subStep, `"$child"`, `"$child", "wait": false`, 1))
	wantContains(t, w.runToEnd("run", "wf", "").json(), `{"status": "succeeded", "steps": [{"output": {"run_id": "~run_.+", "status": "running", "output": null}}]}`)
	w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
	w.waitForStep("below", "ask")
	wantContains(t, w.call("GET", "/v1/runs/$below", "").json(), w.expand(`{"parent": {"run_id": "$run", "step_id": "sub"}}`))
}

// The error of the step tells how the subrun ended.
func TestFailedSubrun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		child   []string
		meddle  func(w *testWorkspace) // while the run waits
		prepare func(w *testWorkspace)
		code    string
		message string
	}{
		"it fails":      {child: []string{failStep}, code: "run_failed", message: "run_.+ failed: Step .Fail on purpose. failed: .+"},
		"it is stopped": {child: []string{`{"id": "s", "uses": "flow.stop", "with": {"status": "failed", "message": "Enough"}}`}, code: "run_failed", message: "run_.+ failed: Enough"},
		"it is cancelled": {child: []string{askStep}, code: "run_cancelled", message: "run_.+ was cancelled", meddle: func(w *testWorkspace) {
			w.call("POST", "/v1/runs/$below/cancel", "").wantStatus(200)
		}},
		"its workflow is deleted": {child: []string{askStep}, code: "run_deleted", message: "the workflow of run_.+ was deleted", meddle: func(w *testWorkspace) {
			w.call("DELETE", "/v1/workflows/$child", "").wantStatus(204)
		}},
		"its workflow is paused": {child: []string{askStep}, code: "run_not_started", message: ".*workflow_paused.*", prepare: func(w *testWorkspace) {
			w.patch("child", `{"state": "paused"}`)
		}},
		"its workflow was deleted": {child: []string{askStep}, code: "run_not_started", message: ".*workflow_not_found.*", prepare: func(w *testWorkspace) {
			w.call("DELETE", "/v1/workflows/$child", "").wantStatus(204)
		}},
		"its workflow takes no more runs": {child: []string{askStep}, code: "run_not_started", message: ".*concurrency_limit.*", prepare: func(w *testWorkspace) {
			w.patch("child", `{"settings": {"concurrency": {"on_limit": "drop"}}}`)
			w.runUntilWaiting("holder", "child")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestWorkspace(t)
			w.workflow("child", tc.child...)
			w.workflow("wf", subStep, `{"id": "after", "uses": "data.set", "with": {"values": {}}}`)
			if tc.prepare != nil {
				tc.prepare(w)
			}
			w.startRun("run", "wf", "")
			if tc.meddle != nil {
				w.waitForStep("run", "sub")
				w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
				w.waitForStep("below", "ask")
				tc.meddle(w)
			}
			wantContains(t, w.waitForStatus("run", "failed").json(), fmt.Sprintf(`{"error": {"code": %q, "message": "~Step .sub. failed: %s", "step_id": "sub"},
				"steps": [{"step_id": "sub", "status": "failed", "error": {"code": %[1]q}}, {"step_id": "after", "status": "skipped"}]}`, tc.code, tc.message))
		})
	}
}

// Workflows of other workspaces and unknown ones are not found.
func TestSubrunOfForeignWorkflow(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	other.workflow("wf", setStep)
	w.workflow("wf", `{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "${{ trigger.payload.id }}"}}`)
	for _, id := range []string{other.names["wf"], "wf_01m7f8njhve3pt0yekqqme4qcm", "x", "' OR 1=1"} {
		wantContains(t, w.runToEnd("run", "wf", fmt.Sprintf(`{"payload": {"id": %q}}`, id)).json(), `{"status": "failed", "error": {"code": "run_not_started", "message": "~.*workflow_not_found.*"}}`)
	}
	if got := other.call("GET", "/v1/workflows/$wf/runs", "").items(); len(got) != 0 {
		t.Errorf("a run was started in another workspace: %v", got)
	}
}

// A workflow that runs itself is stopped.
func TestSubrunDepthLimit(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf")
	w.patch("wf", `{"steps": [{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "$wf"}}]}`)
	wantContains(t, w.runToEnd("run", "wf", "").json(), `{"status": "failed", "error": {"code": "run_failed"}}`)
	ids := w.call("GET", "/v1/workflows/$wf/runs", "").column("id")
	if len(ids) != 11 {
		t.Errorf("there are %d runs", len(ids))
	}
	deepest := 0
	for _, id := range ids {
		if run := w.call("GET", "/v1/runs/"+id, "").object(); run["error"].(map[string]any)["code"] == "chain_depth_exceeded" {
			deepest++
		}
	}
	if deepest != 1 {
		t.Errorf("%d runs were the deepest", deepest)
	}
}

// Cancelling a run cancels its subruns at any depth, and nothing else.
func TestCancelCascadesToSubruns(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("leaf", askStep)
	w.workflow("child", `{"id": "down", "uses": "flow.run", "with": {"workflow_id": "$leaf"}}`)
	w.workflow("apart", askStep)
	w.workflow("wf", `{"id": "free", "needs": [], "uses": "flow.run", "with": {"workflow_id": "$apart", "wait": false}}`,
		`{"id": "sub", "needs": [], "uses": "flow.run", "with": {"workflow_id": "$child"}}`)
	w.startRun("run", "wf", "")
	w.waitForStep("run", "sub")
	only := func(name, workflow string) {
		t.Helper()
		eventually(t, "there is a run of "+workflow, func() bool {
			ids := w.call("GET", "/v1/workflows/$"+workflow+"/runs", "").column("id")
			if len(ids) == 1 {
				w.names[name] = ids[0]
			}
			return len(ids) == 1
		})
	}
	only("below", "child")
	only("deepest", "leaf")
	only("beside", "apart")
	w.waitForStep("deepest", "ask")
	w.waitForStep("beside", "ask")
	before := len(w.events())
	w.call("POST", "/v1/runs/$run/cancel", "").wantStatus(200)
	for _, name := range []string{"run", "below", "deepest"} {
		wantContains(t, w.call("GET", "/v1/runs/$"+name, "").json(), `{"status": "cancelled", "error": null}`)
	}
	w.waitForStep("beside", "ask")
	if got := w.events()[before:]; strings.Join(got, " ") != "run.cancelled run.cancelled run.cancelled" {
		t.Errorf("events are %v", got)
	}
	wantContains(t, w.call("GET", "/v1/approvals", "").json(), w.expand(`{"data": [{"run_id": "$beside"}]}`))
}

// A retry of a subrun has no parent.
func TestRetryOfSubrun(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("child", failStep)
	w.workflow("wf", subStep)
	w.runToEnd("run", "wf", "")
	w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
	wantContains(t, w.call("POST", "/v1/runs/$below/retry", "", "Prefer", "wait=60").wantStatus(200).json(),
		w.expand(`{"retry_of": "$below", "parent": null, "trigger": {"type": "run", "id": "$run"}, "status": "failed"}`))
	w.waitForStatus("run", "failed")
}

func TestStop(t *testing.T) {
	t.Parallel()
	stop := func(with string) string { return `{"id": "halt", "uses": "flow.stop", "with": ` + with + `}` }
	for name, tc := range map[string]struct {
		steps []string
		want  string
	}{
		"as succeeded, unless said otherwise": {
			steps: []string{setStep, `{"id": "halt", "uses": "flow.stop"}`, waitStep},
			want:  `{"status": "succeeded", "error": null, "steps": [{"step_id": "set"}, {"step_id": "halt", "status": "succeeded", "output": {}}]}`,
		},
		"as failed, with the message": {
			steps: []string{stop(`{"status": "failed", "message": "No ${{ trigger.payload.what }}"}`), waitStep},
			want:  `{"status": "failed", "error": {"code": "stopped", "message": "No stock", "step_id": "halt"}, "steps": [{"step_id": "halt", "status": "succeeded"}]}`,
		},
		"as failed, without one": {
			steps: []string{stop(`{"status": "failed"}`)},
			want:  `{"status": "failed", "error": {"code": "stopped", "message": "~.*halt.*", "step_id": "halt"}}`,
		},
		"beside a step that waits, which is cancelled": {
			steps: []string{waitStep, `{"id": "halt", "needs": [], "uses": "flow.stop"}`},
			want:  `{"status": "succeeded", "steps": [{"step_id": "pause", "status": "cancelled", "output": {}}, {"step_id": "halt"}]}`,
		},
		"inside a loop": {
			steps: []string{`{"id": "each", "foreach": "[1, 2, 3]", "steps": [{"id": "halt", "if": "item == 2", "uses": "flow.stop", "with": {"status": "failed"}}]}`, waitStep},
			want: `{"status": "failed", "error": {"code": "stopped", "step_id": "each[1].halt"},
				"steps": [{"step_id": "each", "status": "cancelled"}, {"step_id": "each[0].halt", "status": "skipped"}, {"step_id": "each[1].halt", "status": "succeeded"}]}`,
		},
		"inside a loop, as succeeded": {
			steps: []string{`{"id": "each", "foreach": "[1, 2]", "parallel": 2, "steps": [{"id": "halt", "uses": "flow.stop"}]}`},
			want:  `{"status": "succeeded", "steps": [{"step_id": "each", "status": "cancelled"}, {"step_id": "each[0].halt", "status": "succeeded"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestWorkspace(t)
			w.workflow("wf", tc.steps...)
			wantContains(t, w.runToEnd("run", "wf", `{"payload": {"what": "stock"}}`).json(), tc.want)
		})
	}
}
