package storetest

import (
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// newChild returns the start of a run for a step of another.
func newChild(t *testing.T, of workflow.Workflow, parent run.Run, waits bool) run.Start {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Run.Parent, start.Run.Depth = &run.Parent{RunID: parent.ID, StepID: "call", Waits: waits}, 1
	return start
}

// testChildRunErrors tests runs started by steps of other runs.
func testChildRunErrors(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	above, child := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	rejects := func(t *testing.T, start run.Start, because error) {
		t.Helper()
		if started, err := w.Runs.StartRun(ctx, start); started || !errors.Is(err, because) {
			t.Errorf("started: %v, %v instead of %v", started, err, because)
		}
	}
	status := func(t *testing.T, of run.Run) run.Status {
		t.Helper()
		return found(w.Runs.Run(ctx, ws.ID, of.ID))(t).Status
	}

	t.Run("is started once", func(t *testing.T) {
		start := newChild(t, child, w.start(t, above, "node_1"), true)
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		rejects(t, start, run.ErrStarted)
		equal(t, "parent", found(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t).Parent, start.Run.Parent)
	})

	t.Run("is not started for a run that has ended", func(t *testing.T) {
		parent := w.start(t, above, "node_1")
		w.finish(t, parent, run.Succeeded)
		for _, waits := range []bool{true, false} {
			start := newChild(t, child, parent, waits)
			rejects(t, start, run.ErrParentEnded)
			missing(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t, "run")
		}
	})

	for name, end := range map[string]func(t *testing.T, of workflow.Workflow, parent run.Run){
		"cancel": func(t *testing.T, _ workflow.Workflow, parent run.Run) {
			returns(w.Runs.CancelRun(ctx, newCancellation(t, parent)))(t, "cancel", true)
		},
		"deletion": func(t *testing.T, of workflow.Workflow, _ run.Run) { w.deleteWorkflow(t, of) },
	} {
		t.Run("ends with a "+name+" of its parent", func(t *testing.T) {
			own := w.workflow(t, ws.ID)
			parent := w.start(t, own, "node_1")
			waited, left := newChild(t, child, parent, true), newChild(t, child, parent, false)
			for _, start := range []run.Start{waited, left} {
				returns(w.Runs.StartRun(ctx, start))(t, "start", true)
			}
			end(t, own, parent)
			equal(t, "the one that is waited for", status(t, waited.Run), run.Cancelled)
			equal(t, "the other one", status(t, left.Run), run.Running)
			rejects(t, newChild(t, child, parent, true), run.ErrParentEnded)
		})
	}

	t.Run("a loop names the step inside that failed", func(t *testing.T) {
		r := w.start(t, above, "node_1")
		step := newStep("lines", 1, run.StepFailed)
		step.Error = &run.Failure{Code: "boom", Message: "It failed.", StepID: "lines[2].send"}
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}}))(t, "commit", true)
		equal(t, "error", found(w.Leases.Snapshot(ctx, r.ID))(t).Steps[0].Error, step.Error)
	})
}
