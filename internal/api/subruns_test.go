package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestRunOfAnotherWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("child", `{"id": "sum", "uses": "data.set", "with": {"values": {"twice": "${{ trigger.payload.n * 2 }}"}}}`)
	w.workflow("wf", `{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "$child", "payload": {"n": "${{ trigger.payload.n }}"}}}`)
	run := w.finish("run", "wf", `{"payload": {"n": 21}}`)
	wantContains(t, run.json(), `{"status": "succeeded", "parent": null, "steps": [{"step_id": "sub", "type": "flow.run", "status": "succeeded", "attempt": 1,
		"input": {"payload": {"n": 21}}, "output": {"run_id": "~run_.+", "status": "succeeded", "output": {"twice": 42}}}]}`)
	ids := w.call("GET", "/v1/workflows/$child/runs", "").column("id")
	if len(ids) != 1 {
		t.Fatalf("the runs are %v", ids)
	}
	wantContains(t, w.call("GET", "/v1/runs/"+ids[0], "").json(),
		w.fill(`{"parent": {"run_id": "$run", "step_id": "sub"}, "retry_of": null, "trigger": {"type": "run", "id": "$run", "payload": {"n": 21}}}`))
	wantContains(t, w.eventBodies("run.started")[1], w.fill(`{"data": {"trigger": {"type": "run", "id": "$run"}}}`))
}

// While the other run goes on, the one that waits says so.
func TestRunWaitsForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("child", askStep)
	w.workflow("wf", subStep)
	w.run("run", "wf", "")
	waiting := w.waits("run", "sub")
	w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
	wantContains(t, waiting.json(), w.fill(`{"waiting_for": {"reason": "waits for the end of $below", "step_id": "sub"}, "steps": [{"status": "waiting"}]}`))
	// A run is no answer that somebody could give.
	w.call("POST", "/v1/runs/$run/steps/sub/resume", `{"approved": true}`).want(409, "step_not_waiting")
	w.waits("below", "ask")
	wantContains(t, w.call("GET", "/v1/approvals", "").json(), w.fill(`{"data": [{"run_id": "$below"}]}`))
	w.approve("below")
	wantContains(t, w.ends("run", "succeeded").json(), `{"steps": [{"output": {"output": {"approved": true}}}]}`)
}

func TestRunDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("child", askStep)
	w.workflow("wf", strings.Replace(subStep, `"$child"`, `"$child", "wait": false`, 1))
	wantContains(t, w.finish("run", "wf", "").json(), `{"status": "succeeded", "steps": [{"output": {"run_id": "~run_.+", "status": "running", "output": null}}]}`)
	w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
	w.waits("below", "ask")
	wantContains(t, w.call("GET", "/v1/runs/$below", "").json(), w.fill(`{"parent": {"run_id": "$run", "step_id": "sub"}}`))
}

// How the other run fails to succeed is how the step fails.
func TestRunOfAnotherWorkflowFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		child   []string
		meddle  func(w *world) // while the run waits
		prepare func(w *world)
		code    string
		message string
	}{
		"it fails":      {child: []string{failStep}, code: "run_failed", message: "run_.+ failed: Step .Fail on purpose. failed: .+"},
		"it is stopped": {child: []string{`{"id": "s", "uses": "flow.stop", "with": {"status": "failed", "message": "Enough"}}`}, code: "run_failed", message: "run_.+ failed: Enough"},
		"it is cancelled": {child: []string{askStep}, code: "run_cancelled", message: "run_.+ was cancelled", meddle: func(w *world) {
			w.call("POST", "/v1/runs/$below/cancel", "").want(200)
		}},
		"its workflow is deleted": {child: []string{askStep}, code: "run_deleted", message: "the workflow of run_.+ was deleted", meddle: func(w *world) {
			w.call("DELETE", "/v1/workflows/$child", "").want(204)
		}},
		"its workflow is paused": {child: []string{askStep}, code: "run_not_started", message: ".*workflow_paused.*", prepare: func(w *world) {
			w.patch("child", `{"state": "paused"}`)
		}},
		"its workflow is gone": {child: []string{askStep}, code: "run_not_started", message: ".*workflow_not_found.*", prepare: func(w *world) {
			w.call("DELETE", "/v1/workflows/$child", "").want(204)
		}},
		"its workflow takes no more runs": {child: []string{askStep}, code: "run_not_started", message: ".*concurrency_limit.*", prepare: func(w *world) {
			w.patch("child", `{"settings": {"concurrency": {"on_limit": "drop"}}}`)
			w.waiting("holder", "child")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.workflow("child", tc.child...)
			w.workflow("wf", subStep, `{"id": "after", "uses": "data.set", "with": {"values": {}}}`)
			if tc.prepare != nil {
				tc.prepare(w)
			}
			w.run("run", "wf", "")
			if tc.meddle != nil {
				w.waits("run", "sub")
				w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
				w.waits("below", "ask")
				tc.meddle(w)
			}
			wantContains(t, w.ends("run", "failed").json(), fmt.Sprintf(`{"error": {"code": %q, "message": "~Step .sub. failed: %s", "step_id": "sub"},
				"steps": [{"step_id": "sub", "status": "failed", "error": {"code": %[1]q}}, {"step_id": "after", "status": "skipped"}]}`, tc.code, tc.message))
		})
	}
}

// A workflow of another workspace, or one that is none, is not there.
func TestRunOfAForeignWorkflow(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	other.workflow("wf", setStep)
	w.workflow("wf", `{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "${{ trigger.payload.id }}"}}`)
	for _, id := range []string{other.names["wf"], "wf_01m7f8njhve3pt0yekqqme4qcm", "x", "' OR 1=1"} {
		wantContains(t, w.finish("run", "wf", fmt.Sprintf(`{"payload": {"id": %q}}`, id)).json(), `{"status": "failed", "error": {"code": "run_not_started", "message": "~.*workflow_not_found.*"}}`)
	}
	if got := other.call("GET", "/v1/workflows/$wf/runs", "").items(); len(got) != 0 {
		t.Errorf("a run was started in another workspace: %v", got)
	}
}

// A workflow that runs itself comes to an end.
func TestChainDepth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("wf")
	w.patch("wf", `{"steps": [{"id": "sub", "uses": "flow.run", "with": {"workflow_id": "$wf"}}]}`)
	wantContains(t, w.finish("run", "wf", "").json(), `{"status": "failed", "error": {"code": "run_failed"}}`)
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

// Cancelling a run cancels what it waits for, however deep, and nothing else.
func TestCancelCascades(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("leaf", askStep)
	w.workflow("child", `{"id": "down", "uses": "flow.run", "with": {"workflow_id": "$leaf"}}`)
	w.workflow("apart", askStep)
	w.workflow("wf", `{"id": "free", "needs": [], "uses": "flow.run", "with": {"workflow_id": "$apart", "wait": false}}`,
		`{"id": "sub", "needs": [], "uses": "flow.run", "with": {"workflow_id": "$child"}}`)
	w.run("run", "wf", "")
	w.waits("run", "sub")
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
	w.waits("deepest", "ask")
	w.waits("beside", "ask")
	before := len(w.events())
	w.call("POST", "/v1/runs/$run/cancel", "").want(200)
	for _, name := range []string{"run", "below", "deepest"} {
		wantContains(t, w.call("GET", "/v1/runs/$"+name, "").json(), `{"status": "cancelled", "error": null}`)
	}
	w.waits("beside", "ask")
	if got := w.events()[before:]; strings.Join(got, " ") != "run.cancelled run.cancelled run.cancelled" {
		t.Errorf("events are %v", got)
	}
	wantContains(t, w.call("GET", "/v1/approvals", "").json(), w.fill(`{"data": [{"run_id": "$beside"}]}`))
}

// A retry of a run below another is a run of its own.
func TestRetryOfARunBelow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.workflow("child", failStep)
	w.workflow("wf", subStep)
	w.finish("run", "wf", "")
	w.names["below"] = w.call("GET", "/v1/workflows/$child/runs", "").column("id")[0]
	wantContains(t, w.call("POST", "/v1/runs/$below/retry", "", "Prefer", "wait=30").want(200).json(),
		w.fill(`{"retry_of": "$below", "parent": null, "trigger": {"type": "run", "id": "$run"}, "status": "failed"}`))
	w.ends("run", "failed")
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
			w := newWorld(t)
			w.workflow("wf", tc.steps...)
			wantContains(t, w.finish("run", "wf", `{"payload": {"what": "stock"}}`).json(), tc.want)
		})
	}
}
