package storetest

import (
	"errors"
	"testing"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// below is a run that a step of another one asks for.
func below(t *testing.T, of workflow.Workflow, parent run.Run, waits bool) run.Start {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Run.Parent, start.Run.Depth = &run.Parent{RunID: parent.ID, StepID: "call", Waits: waits}, 1
	return start
}

// testFamily has runs that were started by steps of other runs.
func testFamily(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	above, child := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	refused := func(t *testing.T, start run.Start, because error) {
		t.Helper()
		if started, err := w.StartRun(ctx, start); started || !errors.Is(err, because) {
			t.Errorf("started: %v, %v instead of %v", started, err, because)
		}
	}
	status := func(t *testing.T, of run.Run) run.Status {
		t.Helper()
		return found(w.Run(ctx, ws.ID, of.ID))(t).Status
	}

	t.Run("is started once", func(t *testing.T) {
		start := below(t, child, w.start(t, above, "node_1"), true)
		answers(w.StartRun(ctx, start))(t, "start", true)
		refused(t, start, run.ErrStarted)
		same(t, "parent", found(w.Run(ctx, ws.ID, start.Run.ID))(t).Parent, start.Run.Parent)
	})

	t.Run("is not started for a run that has ended", func(t *testing.T) {
		parent := w.start(t, above, "node_1")
		w.finish(t, parent, run.Succeeded)
		for _, waits := range []bool{true, false} {
			start := below(t, child, parent, waits)
			refused(t, start, run.ErrParentEnded)
			gone(w.Run(ctx, ws.ID, start.Run.ID))(t, "run")
		}
	})

	for name, end := range map[string]func(t *testing.T, of workflow.Workflow, parent run.Run){
		"cancel": func(t *testing.T, _ workflow.Workflow, parent run.Run) {
			answers(w.CancelRun(ctx, newCancellation(t, parent)))(t, "cancel", true)
		},
		"deletion": func(t *testing.T, of workflow.Workflow, _ run.Run) { w.deleteWorkflow(t, of) },
	} {
		t.Run("ends with a "+name+" of the one that waits for it", func(t *testing.T) {
			own := w.workflow(t, ws.ID)
			parent := w.start(t, own, "node_1")
			waited, left := below(t, child, parent, true), below(t, child, parent, false)
			for _, start := range []run.Start{waited, left} {
				answers(w.StartRun(ctx, start))(t, "start", true)
			}
			end(t, own, parent)
			same(t, "the one that is waited for", status(t, waited.Run), run.Cancelled)
			same(t, "the other one", status(t, left.Run), run.Running)
			refused(t, below(t, child, parent, true), run.ErrParentEnded)
		})
	}

	t.Run("a loop names the step inside that failed", func(t *testing.T) {
		r := w.start(t, above, "node_1")
		step := newStep("lines", 1, run.StepFailed)
		step.Error = &run.Failure{Code: "boom", Message: "It failed.", StepID: "lines[2].send"}
		answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}}))(t, "commit", true)
		same(t, "error", found(w.Snapshot(ctx, r.ID))(t).Steps[0].Error, step.Error)
	})
}
