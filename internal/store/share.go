package store

import (
	"time"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// takePlace gives a new run one of the places that it shares with others. It
// answers false when the run has to wait for one, and refuses, with an error,
// one that may not.
func (s *Store) takePlace(u *unit, start run.Start) (bool, error) {
	if start.Share == nil {
		return true, nil
	}
	if err := lockPlaces(u, start.Run); err != nil {
		return false, err
	}
	taken, err := sharing(u, start.Run, true)
	if err != nil || taken < start.Share.Limit {
		return true, err
	}
	if err := checkAbove(u, start.Run); err != nil {
		return false, err
	}
	switch start.Share.OnLimit {
	case workflow.Drop:
		return false, run.ErrAtLimit
	case workflow.CancelRunning:
		oldest, err := list(u, selectRun+`JOIN run_queue q ON q.run_id = r.id
			WHERE q.workflow_id = $1 AND q.share_key = $2 AND q.turn = $3 ORDER BY q.run_id LIMIT $4`,
			[]any{start.Run.WorkflowID, start.Run.ShareKey, true, taken - start.Share.Limit + 1}, scanRun)
		if err != nil {
			return false, err
		}
		for _, old := range oldest {
			// The place goes to the new run, not to one that waits.
			old.ShareKey = ""
			if _, err := s.cancel(u, old, start.Run.StartedAt); err != nil {
				return false, err
			}
		}
		return true, nil
	default:
		queued, err := sharing(u, start.Run, false)
		if err == nil && queued >= start.Plan.Limits().QueuedRuns {
			err = run.ErrQueueFull
		}
		return false, err
	}
}

// checkAbove refuses a run that would wait for a run above it, or end it, while
// that one waits for it.
func checkAbove(u *unit, r run.Run) error {
	for parent := r.Parent; parent != nil && parent.Waits; {
		above, err := one(u, selectRun+`WHERE r.id = $1`, []any{parent.RunID}, scanRun)
		if err != nil || above == nil {
			return err
		}
		if above.WorkflowID == r.WorkflowID && above.ShareKey == r.ShareKey {
			return run.ErrAtLimit
		}
		parent = above.Parent
	}
	return nil
}

// sharing counts the runs that have one of the places of a run, or wait for one.
// The turn is compared, not only looked at: so the index knows it.
func sharing(u *unit, of run.Run, turn bool) (int, error) {
	return number(u, `SELECT count(*) FROM run_queue WHERE workflow_id = $1 AND share_key = $2 AND turn = $3`, of.WorkflowID, of.ShareKey, turn)
}

// passPlace gives the place of a run that has ended to those that wait for one,
// in the order in which they started.
func (s *Store) passPlace(u *unit, of run.Run, at time.Time) error {
	if err := lockPlaces(u, of); err != nil {
		return err
	}
	for {
		next, err := one(u, `SELECT run_id, share_limit FROM run_queue
			WHERE workflow_id = $1 AND share_key = $2 AND turn = $3`+notDeleted+` ORDER BY run_id LIMIT 1`,
			[]any{of.WorkflowID, of.ShareKey, false}, func(r Row) (w waiting, err error) {
				err = r.Scan(&w.runID, &w.limit)
				return w, err
			})
		if err != nil || next == nil {
			return err
		}
		taken, err := sharing(u, of, true)
		if err != nil || taken >= next.limit {
			return err
		}
		if err := u.Do(`UPDATE run_queue SET turn = $1, wake_at = $2 WHERE run_id = $3`, true, at, next.runID); err != nil {
			return err
		}
		if err := s.wake(u, next.runID); err != nil {
			return err
		}
	}
}

// waiting is a run that waits for its turn.
type waiting struct {
	runID string
	limit int
}
