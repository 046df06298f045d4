package store

import (
	"time"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// acquireSlot acquires a slot under the concurrency limit of a new run. It
// returns false if the run has to wait for one, and an error if it is not
// accepted.
func (s *Store) acquireSlot(tx *transaction, start run.Start) (bool, error) {
	if start.Concurrency == nil {
		return true, nil
	}
	if err := lockSlots(tx, start.Run); err != nil {
		return false, err
	}
	inUse, err := countRuns(tx, start.Run, true)
	if err != nil || inUse < start.Concurrency.Limit {
		return true, err
	}
	if err := checkAncestors(tx, start.Run); err != nil {
		return false, err
	}
	switch start.Concurrency.OnLimit {
	case workflow.Drop:
		return false, run.ErrAtLimit
	case workflow.CancelRunning:
		oldest, err := list(tx, selectRun+`JOIN run_queue q ON q.run_id = r.id
			WHERE q.workflow_id = $1 AND q.share_key = $2 AND q.turn = $3 ORDER BY q.run_id LIMIT $4`,
			[]any{start.Run.WorkflowID, start.Run.ConcurrencyKey, true, inUse - start.Concurrency.Limit + 1}, scanRun)
		if err != nil {
			return false, err
		}
		for _, r := range oldest {
			// The slot goes to the new run, not to a queued one.
			r.ConcurrencyKey = ""
			if _, err := s.cancel(tx, r, start.Run.StartedAt); err != nil {
				return false, err
			}
		}
		return true, nil
	default:
		queued, err := countRuns(tx, start.Run, false)
		if err == nil && queued >= start.Plan.Limits().QueuedRuns {
			err = run.ErrQueueFull
		}
		return false, err
	}
}

// checkAncestors rejects a run that would wait for, or cancel, an ancestor that
// waits for it.
func checkAncestors(tx *transaction, r run.Run) error {
	for parent := r.Parent; parent != nil && parent.Waits; {
		above, err := one(tx, selectRun+`WHERE r.id = $1`, []any{parent.RunID}, scanRun)
		if err != nil || above == nil {
			return err
		}
		if above.WorkflowID == r.WorkflowID && above.ConcurrencyKey == r.ConcurrencyKey {
			return run.ErrAtLimit
		}
		parent = above.Parent
	}
	return nil
}

// countRuns counts the runs that hold a slot for the run's concurrency key, or
// wait for one. The condition on turn is written as a comparison so that the
// index applies.
func countRuns(tx *transaction, r run.Run, admitted bool) (int, error) {
	return number(tx, `SELECT count(*) FROM run_queue WHERE workflow_id = $1 AND share_key = $2 AND turn = $3`, r.WorkflowID, r.ConcurrencyKey, admitted)
}

// passSlot passes the slot of a run that has ended to the queued runs, in the
// order in which they started.
func (s *Store) passSlot(tx *transaction, r run.Run, at time.Time) error {
	if err := lockSlots(tx, r); err != nil {
		return err
	}
	for {
		next, err := one(tx, `SELECT run_id, share_limit FROM run_queue
			WHERE workflow_id = $1 AND share_key = $2 AND turn = $3`+notDeleted+` ORDER BY run_id LIMIT 1`,
			[]any{r.WorkflowID, r.ConcurrencyKey, false}, func(r Row) (w queuedRun, err error) {
				err = r.Scan(&w.runID, &w.limit)
				return w, err
			})
		if err != nil || next == nil {
			return err
		}
		inUse, err := countRuns(tx, r, true)
		if err != nil || inUse >= next.limit {
			return err
		}
		if err := tx.Do(`UPDATE run_queue SET turn = $1, wake_at = $2 WHERE run_id = $3`, true, at, next.runID); err != nil {
			return err
		}
		if err := s.wake(tx, next.runID); err != nil {
			return err
		}
	}
}

// queuedRun is a run that waits for a slot under its concurrency limit.
type queuedRun struct {
	runID string
	limit int
}
