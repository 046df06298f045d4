package storetest

import (
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testRaces ends a run in two ways at the same moment, many times.
func testRaces(t *testing.T, w *harness) {
	const rounds = 200
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("a cancellation and a finish", func(t *testing.T) {
		runs := w.startMany(t, wf, rounds)
		cancelled := race(t, runs,
			func(r run.Run) (bool, error) { return w.Runs.CancelRun(ctx, newCancellation(t, r)) },
			func(r run.Run) (bool, error) { return w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)) })
		notified, status, endings := w.notified.take(), w.statuses(t, wf), w.allEndings(t)
		for i, r := range runs {
			want := run.Succeeded
			if cancelled[i] {
				want = run.Cancelled
			}
			equal(t, "INVARIANT: status", status[r.ID], want)
			equal(t, "notifications", notified.endsOf(r.ID), []endedRun{{ws.ID, r.ID, want}})
			equal(t, "INVARIANT: end events", endings[r.ID], 1)
		}
		equal(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE workflow_id = $1`, wf.ID), 0)
	})

	t.Run("a new owner and a finish", func(t *testing.T) {
		runs := w.startMany(t, wf, rounds/4)
		taken := race(t, runs,
			func(r run.Run) (bool, error) {
				_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
				return ok, err
			},
			func(r run.Run) (bool, error) { return w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)) })
		status, endings := w.statuses(t, wf), w.allEndings(t)
		for i, r := range runs {
			equal(t, "INVARIANT: still running", status[r.ID] == run.Running, taken[i])
			equal(t, "in the queue", w.queue(t, r.ID) != nil, taken[i])
			equal(t, "INVARIANT: ended", endings[r.ID] == 1, !taken[i])
		}
	})

	t.Run("a deletion and a start", func(t *testing.T) {
		for range rounds / 20 {
			made := w.workflow(t, ws.ID)
			start, entry := newStart(t, made, "node_1"), newEntry(ws.ID, "workflow.deleted", made.ID)
			concurrently(t, 2, func(i int) (bool, error) {
				if i == 0 {
					return w.Runs.StartRun(ctx, start)
				}
				return w.Workflows.DeleteWorkflow(ctx, made, clock.Now(), entry)
			})
			missing(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t, "a run of a deleted workflow")
			returns(w.Commit(ctx, firstLease(start.Run), start.Run, run.Decision{}))(t, "a commit", false)
		}
	})
}

// statuses returns the status of all runs of a workflow, by id.
func (w *harness) statuses(t *testing.T, of workflow.Workflow) map[string]run.Status {
	t.Helper()
	out := map[string]run.Status{}
	for _, item := range must(w.Runs.Runs(t.Context(), of.WorkspaceID, of.ID, "", fullPage))(t).Items {
		out[item.ID] = item.Status
	}
	return out
}

// allEndings counts the end events of runs, by run.
func (w *harness) allEndings(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, id := range collect(t, w, `SELECT run_id FROM events WHERE run_id IS NOT NULL AND type <> 'run.started'`, nil, text) {
		out[id]++
	}
	return out
}

func (w *harness) startMany(t *testing.T, of workflow.Workflow, n int) []run.Run {
	t.Helper()
	starts := make([]run.Start, n)
	for i := range starts {
		starts[i] = newStart(t, of, "node_1")
	}
	concurrently(t, n, func(i int) (bool, error) { return w.Runs.StartRun(t.Context(), starts[i]) })
	w.notified.take()
	return mapped(starts, func(s run.Start) run.Run { return s.Run })
}

// race calls both functions for each run at the same moment, some runs at a time.
// It checks that exactly one returned true and reports for which runs it was the
// first.
func race(t *testing.T, runs []run.Run, first, second func(run.Run) (bool, error)) []bool {
	t.Helper()
	const lanes = 4
	won := make([]bool, len(runs))
	var running sync.WaitGroup
	for lane := range lanes {
		running.Go(func() {
			for i := lane; i < len(runs); i += lanes {
				winners := concurrently(t, 2, func(which int) (bool, error) {
					if which == 0 {
						ok, err := first(runs[i])
						won[i] = ok
						return ok, err
					}
					return second(runs[i])
				})
				if winners != 1 {
					t.Errorf("INVARIANT: round %d has %d winners", i, winners)
				}
			}
		})
	}
	running.Wait()
	return won
}
