package storetest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// startParent starts a run with a step that waits for another run. No node owns
// it.
func (w *harness) startParent(t *testing.T, of workflow.Workflow, path string) run.Run {
	t.Helper()
	r := w.start(t, of, "node_1")
	w.waitForChild(t, r, path)
	return r
}

func (w *harness) waitForChild(t *testing.T, r run.Run, path string) {
	t.Helper()
	step := waitingStep(path, 1, action.AwaitsRun)
	returns(w.Commit(t.Context(), firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}, Release: true, WakeAt: *step.WakeAt}))(t, "wait", true)
	w.notified.take()
}

// startChild starts a run for a step.
func (w *harness) startChild(t *testing.T, of workflow.Workflow, parent run.Run, path string, waits bool) run.Run {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Run.Parent, start.Run.Depth = &run.Parent{RunID: parent.ID, StepID: path, Waits: waits}, parent.Depth+1
	returns(w.Runs.StartRun(t.Context(), start))(t, "start a child", true)
	w.notified.take()
	return start.Run
}

// outcome returns the outcome that a step received of the run it waits for.
func (w *harness) outcome(t *testing.T, of run.Run, path string) *run.Outcome {
	t.Helper()
	answer, ok := must(w.Leases.Answers(t.Context(), of.ID))(t)[path]
	if !ok {
		return nil
	}
	var out run.Outcome
	if err := json.Unmarshal(answer.Value, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func testChildRuns(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	t.Run("is started once", func(t *testing.T) { testChildStartedOnce(t, w, wf) })

	t.Run("answers its parent", func(t *testing.T) {
		parent := w.startParent(t, wf, "each[1].sub")
		child := w.startChild(t, wf, parent, "each[1].sub", true)
		end := newFinish(t, child, run.Failed)
		end.Finish.Error, end.Finish.Output = &run.Failure{Code: "c", Message: "It broke."}, json.RawMessage(`{"n":1}`)
		returns(w.Commit(ctx, firstLease(child), child, end))(t, "finish", true)
		equal(t, "outcome", w.outcome(t, parent, "each[1].sub"), &run.Outcome{RunID: child.ID, Status: run.Failed, Output: end.Finish.Output, Error: "It broke."})
		wake := run.Wake{RunID: parent.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: end.Finish.At, Plan: ws.Plan}
		equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}, Ended: []endedRun{{ws.ID, child.ID, run.Failed}}})
	})

	t.Run("notifies the owner of its parent", func(t *testing.T) {
		parent := w.start(t, wf, "node_1")
		returns(w.Commit(ctx, firstLease(parent), parent, run.Decision{Rev: 1, Steps: []run.Step{newStep("sub", 1, run.StepRunning)}}))(t, "a step", true)
		child := w.startChild(t, wf, parent, "sub", true)
		w.finish(t, child, run.Succeeded)
		equal(t, "notifications", w.notified.take(), notifications{AnswersArrived: []string{parent.ID}, Ended: []endedRun{{ws.ID, child.ID, run.Succeeded}}})
		equal(t, "outcome", w.outcome(t, parent, "sub"), &run.Outcome{RunID: child.ID, Status: run.Succeeded})
	})

	t.Run("is cancelled", func(t *testing.T) {
		parent := w.startParent(t, wf, "sub")
		child := w.startChild(t, wf, parent, "sub", true)
		returns(w.Runs.CancelRun(ctx, newCancellation(t, child)))(t, "cancel", true)
		equal(t, "outcome", w.outcome(t, parent, "sub"), &run.Outcome{RunID: child.ID, Status: run.Cancelled})
		equal(t, "the parent run", found(w.Runs.Run(ctx, ws.ID, parent.ID))(t).Status, run.Running)
		w.notified.take()
	})

	t.Run("is not waited for", func(t *testing.T) {
		parent := w.startParent(t, wf, "sub")
		child := w.startChild(t, wf, parent, "sub", false)
		w.finish(t, child, run.Succeeded)
		missing(w.outcome(t, parent, "sub"), nil)(t, "outcome")
		equal(t, "notifications", w.notified.take(), notifications{Ended: []endedRun{{ws.ID, child.ID, run.Succeeded}}})
	})

	t.Run("has its workflow deleted", func(t *testing.T) {
		other := w.workflow(t, ws.ID)
		parent := w.startParent(t, wf, "sub")
		child := w.startChild(t, other, parent, "sub", true)
		w.startChild(t, other, parent, "free", false)
		w.deleteWorkflow(t, other)
		equal(t, "outcome", w.outcome(t, parent, "sub"), &run.Outcome{RunID: child.ID, Status: run.Deleted})
		notified := w.notified.take()
		equal(t, "woken", mapped(notified.Wakes, func(wake run.Wake) string { return wake.RunID }), []string{parent.ID})
		equal(t, "deleted", notified.Deleted, []string{other.ID})
	})
	t.Run("ends with its parent", func(t *testing.T) { testCancelDescendants(t, w, wf) })
}

func testChildStartedOnce(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, parent := t.Context(), w.startParent(t, wf, "sub")
	child := w.startChild(t, wf, parent, "sub", true)
	equal(t, "run", found(w.Runs.Run(ctx, wf.WorkspaceID, child.ID))(t).Run, child)
	start := newStart(t, wf, "node_2")
	start.Run = child
	if ok, err := w.Runs.StartRun(ctx, start); ok || !errors.Is(err, run.ErrStarted) {
		t.Errorf("again: got %t, %v", ok, err)
	}
	equal(t, "queue", w.queue(t, child.ID), &queued{Epoch: 1, Node: new("node_1")})
	equal(t, "events", w.events(t, child.ID, string(event.RunStarted)), 1)
	equal(t, "notifications", w.notified.take(), notifications{})
	w.finish(t, child, run.Succeeded)
	if ok, err := w.Runs.StartRun(ctx, start); ok || !errors.Is(err, run.ErrStarted) {
		t.Errorf("after its end: got %t, %v", ok, err)
	}
	w.notified.take()
}

// testCancelDescendants checks that the runs that a run waits for end with it, at
// any depth, and that others continue.
func testCancelDescendants(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx := t.Context()
	for name, end := range map[string]func(r run.Run) (bool, error){
		"cancelled": func(r run.Run) (bool, error) { return w.Runs.CancelRun(ctx, newCancellation(t, r)) },
		"cut short": func(r run.Run) (bool, error) {
			decision := newFinish(t, r, run.Succeeded)
			decision.Finish.CutShort = true
			return w.Commit(ctx, firstLease(r), r, decision)
		},
	} {
		top := w.startParent(t, wf, "sub")
		middle := w.startChild(t, wf, top, "sub", true)
		w.waitForChild(t, middle, "down")
		bottom := w.startChild(t, wf, middle, "down", true)
		free, apart := w.startChild(t, wf, top, "sub", false), w.startParent(t, wf, "sub")
		returns(end(top))(t, name, true)
		notified := w.notified.take()
		for _, r := range []run.Run{middle, bottom} {
			detail := found(w.Runs.Run(ctx, wf.WorkspaceID, r.ID))(t)
			equal(t, name+": status below", detail.Status, run.Cancelled)
			equal(t, name+": notifications", notified.endsOf(r.ID), []endedRun{{wf.WorkspaceID, r.ID, run.Cancelled}})
			equal(t, name+": events", w.events(t, r.ID, string(event.RunCancelled)), 1)
			missing(w.queue(t, r.ID), nil)(t, "its row in the queue")
		}
		for _, r := range []run.Run{top, middle} {
			equal(t, name+": steps", found(w.Runs.Run(ctx, wf.WorkspaceID, r.ID))(t).Steps[0].Status, run.StepCancelled)
			equal(t, name+": answers", must(w.Leases.Answers(ctx, r.ID))(t), nil)
		}
		for _, r := range []run.Run{free, apart} {
			equal(t, name+": the others", found(w.Runs.Run(ctx, wf.WorkspaceID, r.ID))(t).Status, run.Running)
		}
		equal(t, name+": no run is woken", notified.Wakes, nil)
	}
}
