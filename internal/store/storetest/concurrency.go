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

func newLimitedStart(t *testing.T, of workflow.Workflow, key string, limit int, on workflow.OnLimit) run.Start {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Run.ConcurrencyKey, start.Concurrency = key, &workflow.ConcurrencyLimit{Limit: limit, OnLimit: on}
	return start
}

// startLimited starts a run with a concurrency limit.
func (w *harness) startLimited(t *testing.T, of workflow.Workflow, key string, limit int, on workflow.OnLimit) run.Run {
	t.Helper()
	start := newLimitedStart(t, of, key, limit, on)
	returns(w.Runs.StartRun(t.Context(), start))(t, "start a run", true)
	return start.Run
}

// admittedRuns lists the admitted runs of a workflow.
func (w *harness) admittedRuns(t *testing.T, of workflow.Workflow) []string {
	t.Helper()
	return collect(t, w, `SELECT run_id FROM run_queue WHERE workflow_id = $1 AND admitted ORDER BY run_id`, []any{of.ID}, text)
}

func (w *harness) checkAdmitted(t *testing.T, what string, of workflow.Workflow, want ...run.Run) {
	t.Helper()
	ids := mapped(want, func(r run.Run) string { return r.ID })
	slices.Sort(ids)
	equal(t, what, w.admittedRuns(t, of), ids)
}

func testConcurrencyLimit(t *testing.T, w *harness) {
	ws := w.workspace(t)
	t.Run("waiting for a slot", func(t *testing.T) { testConcurrencyQueue(t, w, ws) })
	t.Run("cancelled while waiting", func(t *testing.T) { testConcurrencyCancel(t, w, ws) })
	t.Run("dropped at the limit", func(t *testing.T) { testConcurrencyDrop(t, w, ws) })
	t.Run("replacing the oldest", func(t *testing.T) { testConcurrencyCancelRunning(t, w, ws) })
	t.Run("with different limits", func(t *testing.T) { testConcurrencyLimits(t, w, ws) })
	t.Run("with a full queue", func(t *testing.T) { testConcurrencyQueueFull(t, w) })
	t.Run("races", func(t *testing.T) { testConcurrencyRaces(t, w, ws) })
	w.notified.take()
}

func testConcurrencyQueue(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first := w.startLimited(t, wf, "=a", 1, workflow.Queue)
	equal(t, "the first is woken", len(w.notified.take().Wakes), 1)
	second := w.startLimited(t, wf, "=a", 1, workflow.Queue)
	equal(t, "notified of the second", w.notified.take(), notifications{Started: []string{ws.ID}})
	equal(t, "its row", w.queue(t, second.ID), &queued{Epoch: 1})
	equal(t, "held back", found(w.Runs.Run(ctx, ws.ID, second.ID))(t).HeldBack, true)
	equal(t, "the first is not", found(w.Runs.Run(ctx, ws.ID, first.ID))(t).HeldBack, false)
	third := w.startLimited(t, wf, "=a", 1, workflow.Queue)
	other, apart := w.startLimited(t, wf, "=b", 1, workflow.Queue), w.workflow(t, ws.ID)
	foreign := w.startLimited(t, apart, "=a", 1, workflow.Queue)
	w.checkAdmitted(t, "another key has its own places", wf, first, other)
	w.checkAdmitted(t, "another workflow too", apart, foreign)
	w.notified.take()

	end := newFinish(t, first, run.Succeeded)
	returns(w.Commit(ctx, firstLease(first), first, end))(t, "finish", true)
	wake := run.Wake{RunID: second.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: end.Finish.At, Plan: ws.Plan}
	equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}, Ended: []endedRun{{ws.ID, first.ID, run.Succeeded}}})
	equal(t, "its row", w.queue(t, second.ID), &queued{Epoch: 1, WakeAt: &end.Finish.At})
	w.checkAdmitted(t, "the place has passed on", wf, second, other)
	equal(t, "held back", found(w.Runs.Run(ctx, ws.ID, second.ID))(t).HeldBack, false)
	lease, ok, err := w.Leases.Activate(ctx, wake, "node_2")
	returns(ok, err)(t, "activate", true)
	returns(w.Commit(ctx, lease, second, newFinish(t, second, run.Failed)))(t, "finish", true)
	w.checkAdmitted(t, "in the order of starts", wf, third, other)
	w.notified.take()
}

func testConcurrencyCancel(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first, second, third := w.startLimited(t, wf, "=", 1, ""), w.startLimited(t, wf, "=", 1, ""), w.startLimited(t, wf, "=", 1, "")
	returns(w.Runs.CancelRun(ctx, newCancellation(t, second)))(t, "cancel one that waits", true)
	w.checkAdmitted(t, "no place is free", wf, first)
	returns(w.Runs.CancelRun(ctx, newCancellation(t, first)))(t, "cancel the one that has the place", true)
	w.checkAdmitted(t, "the place has passed on", wf, third)
	w.finish(t, third, run.Succeeded)
	equal(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE workflow_id = $1`, wf.ID), 0)
	w.notified.take()
}

func testConcurrencyDrop(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first := w.startLimited(t, wf, "=", 2, workflow.Drop)
	w.startLimited(t, wf, "=", 2, workflow.Drop)
	w.notified.take()
	start := newLimitedStart(t, wf, "=", 2, workflow.Drop)
	if ok, err := w.Runs.StartRun(ctx, start); ok || !errors.Is(err, run.ErrAtLimit) {
		t.Errorf("over the limit: got %t, %v", ok, err)
	}
	w.checkNotStarted(t, start)
	w.finish(t, first, run.Succeeded)
	returns(w.Runs.StartRun(ctx, start))(t, "after an end", true)
	w.notified.take()
}

func testConcurrencyCancelRunning(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	first, second := w.startLimited(t, wf, "=", 2, workflow.Queue), w.startLimited(t, wf, "=", 2, workflow.Queue)
	waits := w.startLimited(t, wf, "=", 2, workflow.Queue)
	step := newStep("a", 1, run.StepRunning)
	returns(w.Commit(ctx, firstLease(first), first, run.Decision{Steps: []run.Step{step}}))(t, "a step", true)
	w.notified.take()
	third := w.startLimited(t, wf, "=", 2, workflow.CancelRunning)
	notified := w.notified.take()
	equal(t, "notified of the oldest", notified.Ended, []endedRun{{ws.ID, first.ID, run.Cancelled}})
	equal(t, "woken", mapped(notified.Wakes, func(wake run.Wake) string { return wake.RunID }), []string{third.ID})
	cancelled := found(w.Runs.Run(ctx, ws.ID, first.ID))(t)
	equal(t, "status", cancelled.Status, run.Cancelled)
	equal(t, "its step", cancelled.Steps[0].Status, run.StepCancelled)
	equal(t, "its event", w.events(t, first.ID, string(event.RunCancelled)), 1)
	w.checkAdmitted(t, "the place is that of the new run", wf, second, third)
	w.finish(t, second, run.Succeeded)
	w.checkAdmitted(t, "the next goes to the one that waits", wf, third, waits)
	// A lower limit cancels as many runs as exceed it.
	last := w.startLimited(t, wf, "=", 1, workflow.CancelRunning)
	w.checkAdmitted(t, "the only place", wf, last)
	w.notified.take()
}

// testConcurrencyLimits checks that runs of different versions of a workflow each
// respect their own limit.
func testConcurrencyLimits(t *testing.T, w *harness, ws auth.Workspace) {
	wf := w.workflow(t, ws.ID)
	first, patient, wide := w.startLimited(t, wf, "=", 1, ""), w.startLimited(t, wf, "=", 1, ""), w.startLimited(t, wf, "=", 2, "")
	w.checkAdmitted(t, "a higher limit has room", wf, first, wide)
	w.finish(t, first, run.Succeeded)
	w.checkAdmitted(t, "not for the one with the lower limit", wf, wide)
	w.finish(t, wide, run.Succeeded)
	w.checkAdmitted(t, "until it is alone", wf, patient)
	one, two := w.startLimited(t, wf, "=", 3, ""), w.startLimited(t, wf, "=", 3, "")
	w.checkAdmitted(t, "beside others", wf, patient, one, two)
	w.notified.take()
}

func testConcurrencyQueueFull(t *testing.T, w *harness) {
	ws := w.workspace(t)
	w.exec(t, `UPDATE workspaces SET plan = $1 WHERE id = $2`, string(auth.Free), ws.ID)
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	most := auth.Free.Limits().QueuedRuns
	starts := make([]run.Start, 1+most)
	for i := range starts {
		starts[i] = newLimitedStart(t, wf, "=", 1, workflow.Queue)
		starts[i].Plan = auth.Free
	}
	for chunk := range slices.Chunk(starts, 64) {
		equal(t, "started", concurrently(t, len(chunk), func(i int) (bool, error) { return w.Runs.StartRun(ctx, chunk[i]) }), len(chunk))
	}
	w.notified.take()
	start := newLimitedStart(t, wf, "=", 1, workflow.Queue)
	start.Plan = auth.Free
	if ok, err := w.Runs.StartRun(ctx, start); ok || !errors.Is(err, run.ErrQueueFull) {
		t.Errorf("over the limit: got %t, %v", ok, err)
	}
	w.checkNotStarted(t, start)
}

func testConcurrencyRaces(t *testing.T, w *harness, ws auth.Workspace) {
	const many, limit = 64, 3
	ctx := t.Context()
	startAll := func(of workflow.Workflow, on workflow.OnLimit) ([]run.Run, int) {
		starts := make([]run.Start, many)
		for i := range starts {
			starts[i] = newLimitedStart(t, of, "=", limit, on)
		}
		started := concurrently(t, many, func(i int) (bool, error) {
			ok, err := w.Runs.StartRun(ctx, starts[i])
			if errors.Is(err, run.ErrAtLimit) {
				err = nil
			}
			return ok, err
		})
		return mapped(starts, func(s run.Start) run.Run { return s.Run }), started
	}

	t.Run("of starts that wait, and of ends", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		runs, started := startAll(wf, workflow.Queue)
		equal(t, "started", started, many)
		for left := many; left > 0; {
			admitted := w.admittedRuns(t, wf)
			if len(admitted) != min(limit, left) {
				t.Fatalf("%d of %d are admitted", len(admitted), left)
			}
			left -= concurrently(t, len(admitted), func(i int) (bool, error) {
				r := runs[slices.IndexFunc(runs, func(r run.Run) bool { return r.ID == admitted[i] })]
				if i == 0 {
					return w.Runs.CancelRun(ctx, newCancellation(t, r))
				}
				return w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded))
			})
		}
		equal(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE workflow_id = $1`, wf.ID), 0)
	})

	t.Run("of starts that are dropped", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		_, started := startAll(wf, workflow.Drop)
		equal(t, "started", started, limit)
		equal(t, "admitted", len(w.admittedRuns(t, wf)), limit)
	})

	t.Run("of starts that cancel", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		_, started := startAll(wf, workflow.CancelRunning)
		equal(t, "started", started, many)
		equal(t, "admitted", len(w.admittedRuns(t, wf)), limit)
		equal(t, "cancelled", w.count(t, `SELECT count(*) FROM events WHERE workflow_id = $1 AND type = 'run.cancelled'`, wf.ID), many-limit)
	})
	w.notified.take()
}
