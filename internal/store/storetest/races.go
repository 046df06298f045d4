package storetest

import (
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testRaces lets a run end in two ways at the same moment, many times.
func testRaces(t *testing.T, w *world) {
	const rounds = 200
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("a cancellation and a finish", func(t *testing.T) {
		runs := w.startMany(t, wf, rounds)
		cancelled := race(t, runs,
			func(r run.Run) (bool, error) { return w.CancelRun(ctx, newCancellation(t, r)) },
			func(r run.Run) (bool, error) { return w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)) })
		told, status, endings := w.told.take(), w.statuses(t, wf), w.allEndings(t)
		for i, r := range runs {
			want := run.Succeeded
			if cancelled[i] {
				want = run.Cancelled
			}
			same(t, "status", status[r.ID], want)
			same(t, "told", told.endsOf(r.ID), []ended{{ws.ID, r.ID, want}})
			same(t, "endings", endings[r.ID], 1)
		}
		same(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE workflow_id = $1`, wf.ID), 0)
	})

	t.Run("a new owner and a finish", func(t *testing.T) {
		runs := w.startMany(t, wf, rounds/4)
		taken := race(t, runs,
			func(r run.Run) (bool, error) {
				_, ok, err := w.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
				return ok, err
			},
			func(r run.Run) (bool, error) { return w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)) })
		status, endings := w.statuses(t, wf), w.allEndings(t)
		for i, r := range runs {
			same(t, "still running", status[r.ID] == run.Running, taken[i])
			same(t, "in the queue", w.queue(t, r.ID) != nil, taken[i])
			same(t, "ended", endings[r.ID] == 1, !taken[i])
		}
	})

	t.Run("a deletion and a start", func(t *testing.T) {
		for range rounds / 20 {
			made := w.workflow(t, ws.ID)
			start, entry := newStart(t, made, "node_1"), newEntry(ws.ID, "workflow.deleted", made.ID)
			together(t, 2, func(i int) (bool, error) {
				if i == 0 {
					return w.StartRun(ctx, start)
				}
				return w.DeleteWorkflow(ctx, made, clock.Now(), entry)
			})
			gone(w.Run(ctx, ws.ID, start.Run.ID))(t, "a run of a deleted workflow")
			answers(w.Commit(ctx, firstLease(start.Run), start.Run, run.Decision{}))(t, "a commit", false)
		}
	})
}

// statuses are those of all runs of a workflow, by their id.
func (w *world) statuses(t *testing.T, of workflow.Workflow) map[string]run.Status {
	t.Helper()
	out := map[string]run.Status{}
	for _, item := range must(w.Runs(t.Context(), of.WorkspaceID, of.ID, "", whole))(t).Items {
		out[item.ID] = item.Status
	}
	return out
}

// allEndings counts the events that tell of the end of runs, by run.
func (w *world) allEndings(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, id := range collect(t, w, `SELECT run_id FROM events WHERE run_id IS NOT NULL AND type <> 'run.started'`, nil, text) {
		out[id]++
	}
	return out
}

func (w *world) startMany(t *testing.T, of workflow.Workflow, n int) []run.Run {
	t.Helper()
	starts := make([]run.Start, n)
	for i := range starts {
		starts[i] = newStart(t, of, "node_1")
	}
	together(t, n, func(i int) (bool, error) { return w.StartRun(t.Context(), starts[i]) })
	w.told.take()
	return mapped(starts, func(s run.Start) run.Run { return s.Run })
}

// race calls both functions for each run at the same moment, some runs at a
// time, checks that exactly one answered true, and tells where it was the first.
func race(t *testing.T, runs []run.Run, first, second func(run.Run) (bool, error)) []bool {
	t.Helper()
	const lanes = 4
	won := make([]bool, len(runs))
	var running sync.WaitGroup
	for lane := range lanes {
		running.Go(func() {
			for i := lane; i < len(runs); i += lanes {
				winners := together(t, 2, func(which int) (bool, error) {
					if which == 0 {
						ok, err := first(runs[i])
						won[i] = ok
						return ok, err
					}
					return second(runs[i])
				})
				if winners != 1 {
					t.Errorf("round %d has %d winners", i, winners)
				}
			}
		})
	}
	running.Wait()
	return won
}
