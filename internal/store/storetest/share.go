package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

func newShared(t *testing.T, of workflow.Workflow, key string, limit int, on workflow.OnLimit) run.Start {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Run.ShareKey, start.Share = key, &workflow.Share{Limit: limit, OnLimit: on}
	return start
}

// share starts a run that shares places.
func (w *world) share(t *testing.T, of workflow.Workflow, key string, limit int, on workflow.OnLimit) run.Run {
	t.Helper()
	start := newShared(t, of, key, limit, on)
	answers(w.StartRun(t.Context(), start))(t, "start a run", true)
	return start.Run
}

// placed lists the runs of a workflow that have a place.
func (w *world) placed(t *testing.T, of workflow.Workflow) []string {
	t.Helper()
	return collect(t, w, `SELECT run_id FROM run_queue WHERE workflow_id = $1 AND turn ORDER BY run_id`, []any{of.ID}, text)
}

func (w *world) checkPlaced(t *testing.T, what string, of workflow.Workflow, want ...run.Run) {
	t.Helper()
	ids := mapped(want, func(r run.Run) string { return r.ID })
	slices.Sort(ids)
	same(t, what, w.placed(t, of), ids)
}

func testShare(t *testing.T, w *world) {
	ws := w.workspace(t)
	t.Run("waiting for a place", func(t *testing.T) { testShareQueue(t, w, ws) })
	t.Run("cancelled while waiting", func(t *testing.T) { testShareCancel(t, w, ws) })
	t.Run("refused", func(t *testing.T) { testShareDrop(t, w, ws) })
	t.Run("in the place of the oldest", func(t *testing.T) { testShareCancelRunning(t, w, ws) })
	t.Run("with another limit", func(t *testing.T) { testShareLimits(t, w, ws) })
	t.Run("too many", func(t *testing.T) { testShareFull(t, w) })
	t.Run("races", func(t *testing.T) { testShareRaces(t, w, ws) })
	w.told.take()
}

func testShareQueue(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first := w.share(t, wf, "=a", 1, workflow.Queue)
	same(t, "the first is woken", len(w.told.take().Wakes), 1)
	second := w.share(t, wf, "=a", 1, workflow.Queue)
	same(t, "told of the second", w.told.take(), heard{Started: []string{ws.ID}})
	same(t, "its row", w.queue(t, second.ID), &queued{Epoch: 1})
	same(t, "it is held back", found(w.Run(ctx, ws.ID, second.ID))(t).HeldBack, true)
	same(t, "the first is not", found(w.Run(ctx, ws.ID, first.ID))(t).HeldBack, false)
	third := w.share(t, wf, "=a", 1, workflow.Queue)
	other, apart := w.share(t, wf, "=b", 1, workflow.Queue), w.workflow(t, ws.ID)
	foreign := w.share(t, apart, "=a", 1, workflow.Queue)
	w.checkPlaced(t, "another key has its own places", wf, first, other)
	w.checkPlaced(t, "another workflow too", apart, foreign)
	w.told.take()

	end := newFinish(t, first, run.Succeeded)
	answers(w.Commit(ctx, firstLease(first), first, end))(t, "finish", true)
	wake := run.Wake{RunID: second.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: end.Finish.At, Plan: ws.Plan}
	same(t, "told", w.told.take(), heard{Wakes: []run.Wake{wake}, Ended: []ended{{ws.ID, first.ID, run.Succeeded}}})
	same(t, "its row", w.queue(t, second.ID), &queued{Epoch: 1, WakeAt: &end.Finish.At})
	w.checkPlaced(t, "the place has passed on", wf, second, other)
	same(t, "it is held back", found(w.Run(ctx, ws.ID, second.ID))(t).HeldBack, false)
	lease, ok, err := w.Activate(ctx, wake, "node_2")
	answers(ok, err)(t, "activate", true)
	answers(w.Commit(ctx, lease, second, newFinish(t, second, run.Failed)))(t, "finish", true)
	w.checkPlaced(t, "in the order of starts", wf, third, other)
	w.told.take()
}

func testShareCancel(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first, second, third := w.share(t, wf, "=", 1, ""), w.share(t, wf, "=", 1, ""), w.share(t, wf, "=", 1, "")
	answers(w.CancelRun(ctx, newCancellation(t, second)))(t, "cancel one that waits", true)
	w.checkPlaced(t, "no place is free", wf, first)
	answers(w.CancelRun(ctx, newCancellation(t, first)))(t, "cancel the one that has the place", true)
	w.checkPlaced(t, "the place has passed on", wf, third)
	w.finish(t, third, run.Succeeded)
	same(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE workflow_id = $1`, wf.ID), 0)
	w.told.take()
}

func testShareDrop(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first := w.share(t, wf, "=", 2, workflow.Drop)
	w.share(t, wf, "=", 2, workflow.Drop)
	w.told.take()
	start := newShared(t, wf, "=", 2, workflow.Drop)
	if ok, err := w.StartRun(ctx, start); ok || !errors.Is(err, run.ErrAtLimit) {
		t.Errorf("one too many: answered %t, %v", ok, err)
	}
	w.checkNotStarted(t, start)
	w.finish(t, first, run.Succeeded)
	answers(w.StartRun(ctx, start))(t, "after an end", true)
	w.told.take()
}

func testShareCancelRunning(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first, second := w.share(t, wf, "=", 2, workflow.Queue), w.share(t, wf, "=", 2, workflow.Queue)
	waits := w.share(t, wf, "=", 2, workflow.Queue)
	step := newStep("a", 1, run.StepRunning)
	answers(w.Commit(ctx, firstLease(first), first, run.Decision{Steps: []run.Step{step}}))(t, "a step", true)
	w.told.take()
	third := w.share(t, wf, "=", 2, workflow.CancelRunning)
	told := w.told.take()
	same(t, "told of the oldest", told.Ended, []ended{{ws.ID, first.ID, run.Cancelled}})
	same(t, "woken", mapped(told.Wakes, func(wake run.Wake) string { return wake.RunID }), []string{third.ID})
	cancelled := found(w.Run(ctx, ws.ID, first.ID))(t)
	same(t, "status", cancelled.Status, run.Cancelled)
	same(t, "its step", cancelled.Steps[0].Status, run.StepCancelled)
	same(t, "its event", w.events(t, first.ID, string(event.RunCancelled)), 1)
	w.checkPlaced(t, "the place is that of the new run", wf, second, third)
	w.finish(t, second, run.Succeeded)
	w.checkPlaced(t, "the next goes to the one that waits", wf, third, waits)
	// A lower limit makes room by cancelling as many as are too many.
	last := w.share(t, wf, "=", 1, workflow.CancelRunning)
	w.checkPlaced(t, "the only place", wf, last)
	w.told.take()
}

// Runs of different versions of a workflow may have different limits: each keeps
// to its own.
func testShareLimits(t *testing.T, w *world, ws auth.Workspace) {
	wf := w.workflow(t, ws.ID)
	first, patient, wide := w.share(t, wf, "=", 1, ""), w.share(t, wf, "=", 1, ""), w.share(t, wf, "=", 2, "")
	w.checkPlaced(t, "a higher limit has room", wf, first, wide)
	w.finish(t, first, run.Succeeded)
	w.checkPlaced(t, "not for the one with the lower limit", wf, wide)
	w.finish(t, wide, run.Succeeded)
	w.checkPlaced(t, "until it is alone", wf, patient)
	one, two := w.share(t, wf, "=", 3, ""), w.share(t, wf, "=", 3, "")
	w.checkPlaced(t, "beside others", wf, patient, one, two)
	w.told.take()
}

func testShareFull(t *testing.T, w *world) {
	ws := w.workspace(t)
	w.exec(t, `UPDATE workspaces SET plan = $1 WHERE id = $2`, string(auth.Free), ws.ID)
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	most := auth.Free.Limits().QueuedRuns
	starts := make([]run.Start, 1+most)
	for i := range starts {
		starts[i] = newShared(t, wf, "=", 1, workflow.Queue)
		starts[i].Plan = auth.Free
	}
	for chunk := range slices.Chunk(starts, 64) {
		same(t, "started", together(t, len(chunk), func(i int) (bool, error) { return w.StartRun(ctx, chunk[i]) }), len(chunk))
	}
	w.told.take()
	start := newShared(t, wf, "=", 1, workflow.Queue)
	start.Plan = auth.Free
	if ok, err := w.StartRun(ctx, start); ok || !errors.Is(err, run.ErrQueueFull) {
		t.Errorf("one too many: answered %t, %v", ok, err)
	}
	w.checkNotStarted(t, start)
}

func testShareRaces(t *testing.T, w *world, ws auth.Workspace) {
	const many, limit = 64, 3
	ctx := t.Context()
	startAll := func(of workflow.Workflow, on workflow.OnLimit) ([]run.Run, int) {
		starts := make([]run.Start, many)
		for i := range starts {
			starts[i] = newShared(t, of, "=", limit, on)
		}
		started := together(t, many, func(i int) (bool, error) {
			ok, err := w.StartRun(ctx, starts[i])
			if errors.Is(err, run.ErrAtLimit) {
				err = nil
			}
			return ok, err
		})
		return mapped(starts, func(s run.Start) run.Run { return s.Run }), started
	}

	t.Run("of starts that wait, and their ends", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		runs, started := startAll(wf, workflow.Queue)
		same(t, "started", started, many)
		for left := many; left > 0; {
			placed := w.placed(t, wf)
			if len(placed) != min(limit, left) {
				t.Fatalf("%d of %d have a place", len(placed), left)
			}
			left -= together(t, len(placed), func(i int) (bool, error) {
				r := runs[slices.IndexFunc(runs, func(r run.Run) bool { return r.ID == placed[i] })]
				if i == 0 {
					return w.CancelRun(ctx, newCancellation(t, r))
				}
				return w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded))
			})
		}
		same(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE workflow_id = $1`, wf.ID), 0)
	})

	t.Run("of starts that are refused", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		_, started := startAll(wf, workflow.Drop)
		same(t, "started", started, limit)
		same(t, "placed", len(w.placed(t, wf)), limit)
	})

	t.Run("of starts that cancel", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		_, started := startAll(wf, workflow.CancelRunning)
		same(t, "started", started, many)
		same(t, "placed", len(w.placed(t, wf)), limit)
		same(t, "cancelled", w.count(t, `SELECT count(*) FROM events WHERE workflow_id = $1 AND type = 'run.cancelled'`, wf.ID), many-limit)
	})
	w.told.take()
}
