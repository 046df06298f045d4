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

// above starts a run with a step that waits for another run; it is held by
// nobody.
func (w *world) above(t *testing.T, of workflow.Workflow, path string) run.Run {
	t.Helper()
	r := w.start(t, of, "node_1")
	w.waitBelow(t, r, path)
	return r
}

func (w *world) waitBelow(t *testing.T, r run.Run, path string) {
	t.Helper()
	step := waitingStep(path, 1, action.AwaitsRun)
	answers(w.Commit(t.Context(), firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}, Release: true, WakeAt: *step.WakeAt}))(t, "wait", true)
	w.told.take()
}

// below starts a run on behalf of a step.
func (w *world) below(t *testing.T, of workflow.Workflow, parent run.Run, path string, waits bool) run.Run {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Run.Parent, start.Run.Depth = &run.Parent{RunID: parent.ID, StepID: path, Waits: waits}, parent.Depth+1
	answers(w.StartRun(t.Context(), start))(t, "start below", true)
	w.told.take()
	return start.Run
}

// outcome is what a step has learned of the run it waits for.
func (w *world) outcome(t *testing.T, of run.Run, path string) *run.Outcome {
	t.Helper()
	answer, ok := must(w.Answers(t.Context(), of.ID))(t)[path]
	if !ok {
		return nil
	}
	var out run.Outcome
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func testBelow(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	t.Run("is started once", func(t *testing.T) { testBelowOnce(t, w, wf) })

	t.Run("tells of its end", func(t *testing.T) {
		parent := w.above(t, wf, "each[1].sub")
		child := w.below(t, wf, parent, "each[1].sub", true)
		end := newFinish(t, child, run.Failed)
		end.Finish.Error, end.Finish.Output = &run.Failure{Code: "c", Message: "It broke."}, json.RawMessage(`{"n":1}`)
		answers(w.Commit(ctx, firstLease(child), child, end))(t, "finish", true)
		same(t, "outcome", w.outcome(t, parent, "each[1].sub"), &run.Outcome{RunID: child.ID, Status: run.Failed, Output: end.Finish.Output, Error: "It broke."})
		wake := run.Wake{RunID: parent.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: end.Finish.At, Plan: ws.Plan}
		same(t, "told", w.told.take(), heard{Wakes: []run.Wake{wake}, Ended: []ended{{ws.ID, child.ID, run.Failed}}})
	})

	t.Run("tells the one who holds the run above", func(t *testing.T) {
		parent := w.start(t, wf, "node_1")
		answers(w.Commit(ctx, firstLease(parent), parent, run.Decision{Rev: 1, Steps: []run.Step{newStep("sub", 1, run.StepRunning)}}))(t, "a step", true)
		child := w.below(t, wf, parent, "sub", true)
		w.finish(t, child, run.Succeeded)
		same(t, "told", w.told.take(), heard{Stirred: []string{parent.ID}, Ended: []ended{{ws.ID, child.ID, run.Succeeded}}})
		same(t, "outcome", w.outcome(t, parent, "sub"), &run.Outcome{RunID: child.ID, Status: run.Succeeded})
	})

	t.Run("is cancelled", func(t *testing.T) {
		parent := w.above(t, wf, "sub")
		child := w.below(t, wf, parent, "sub", true)
		answers(w.CancelRun(ctx, newCancellation(t, child)))(t, "cancel", true)
		same(t, "outcome", w.outcome(t, parent, "sub"), &run.Outcome{RunID: child.ID, Status: run.Cancelled})
		same(t, "the run above", found(w.Run(ctx, ws.ID, parent.ID))(t).Status, run.Running)
		w.told.take()
	})

	t.Run("is not waited for", func(t *testing.T) {
		parent := w.above(t, wf, "sub")
		child := w.below(t, wf, parent, "sub", false)
		w.finish(t, child, run.Succeeded)
		gone(w.outcome(t, parent, "sub"), nil)(t, "outcome")
		same(t, "told", w.told.take(), heard{Ended: []ended{{ws.ID, child.ID, run.Succeeded}}})
	})

	t.Run("has its workflow deleted", func(t *testing.T) {
		other := w.workflow(t, ws.ID)
		parent := w.above(t, wf, "sub")
		child := w.below(t, other, parent, "sub", true)
		w.below(t, other, parent, "free", false)
		w.deleteWorkflow(t, other)
		same(t, "outcome", w.outcome(t, parent, "sub"), &run.Outcome{RunID: child.ID, Status: run.Deleted})
		told := w.told.take()
		same(t, "woken", mapped(told.Wakes, func(wake run.Wake) string { return wake.RunID }), []string{parent.ID})
		same(t, "deleted", told.Deleted, []string{other.ID})
	})
	t.Run("ends with the run above", func(t *testing.T) { testCascade(t, w, wf) })
}

func testBelowOnce(t *testing.T, w *world, wf workflow.Workflow) {
	ctx, parent := t.Context(), w.above(t, wf, "sub")
	child := w.below(t, wf, parent, "sub", true)
	same(t, "run", found(w.Run(ctx, wf.WorkspaceID, child.ID))(t).Run, child)
	start := newStart(t, wf, "node_2")
	start.Run = child
	if ok, err := w.StartRun(ctx, start); ok || !errors.Is(err, run.ErrStarted) {
		t.Errorf("once more: answered %t, %v", ok, err)
	}
	same(t, "queue", w.queue(t, child.ID), &queued{Epoch: 1, Node: new("node_1")})
	same(t, "events", w.events(t, child.ID, string(event.RunStarted)), 1)
	same(t, "told", w.told.take(), heard{})
	w.finish(t, child, run.Succeeded)
	if ok, err := w.StartRun(ctx, start); ok || !errors.Is(err, run.ErrStarted) {
		t.Errorf("after its end: answered %t, %v", ok, err)
	}
	w.told.take()
}

// What a run waits for ends with it, however deep; what it does not wait for
// goes on.
func testCascade(t *testing.T, w *world, wf workflow.Workflow) {
	ctx := t.Context()
	for name, end := range map[string]func(r run.Run) (bool, error){
		"cancelled": func(r run.Run) (bool, error) { return w.CancelRun(ctx, newCancellation(t, r)) },
		"cut short": func(r run.Run) (bool, error) {
			decision := newFinish(t, r, run.Succeeded)
			decision.Finish.CutShort = true
			return w.Commit(ctx, firstLease(r), r, decision)
		},
	} {
		top := w.above(t, wf, "sub")
		middle := w.below(t, wf, top, "sub", true)
		w.waitBelow(t, middle, "down")
		bottom := w.below(t, wf, middle, "down", true)
		free, apart := w.below(t, wf, top, "sub", false), w.above(t, wf, "sub")
		answers(end(top))(t, name, true)
		told := w.told.take()
		for _, r := range []run.Run{middle, bottom} {
			detail := found(w.Run(ctx, wf.WorkspaceID, r.ID))(t)
			same(t, name+": status below", detail.Status, run.Cancelled)
			same(t, name+": told", told.endsOf(r.ID), []ended{{wf.WorkspaceID, r.ID, run.Cancelled}})
			same(t, name+": events", w.events(t, r.ID, string(event.RunCancelled)), 1)
			gone(w.queue(t, r.ID), nil)(t, "its row in the queue")
		}
		for _, r := range []run.Run{top, middle} {
			same(t, name+": steps", found(w.Run(ctx, wf.WorkspaceID, r.ID))(t).Steps[0].Status, run.StepCancelled)
			same(t, name+": answers", must(w.Answers(ctx, r.ID))(t), nil)
		}
		for _, r := range []run.Run{free, apart} {
			same(t, name+": the others", found(w.Run(ctx, wf.WorkspaceID, r.ID))(t).Status, run.Running)
		}
		same(t, name+": nobody is woken", told.Wakes, nil)
	}
}
