package store

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// acquireSlot acquires a slot under the concurrency limit of a new run. It
// returns false if the run has to wait for one, and an error if it is not
// accepted.
func acquireSlot(tx *transaction, start run.Start) (bool, error) {
	if start.Concurrency == nil {
		return true, nil
	}
	if err := lockSlots(tx, start.Run); err != nil {
		return false, err
	}
	admission, err := start.Admit(slotRows{tx, start.Run})
	if err != nil {
		return false, err
	}
	return admission.Admitted, cancelOldest(tx, start.Run, admission.CancelOldest)
}

// cancelOldest cancels the oldest runs that hold a slot for the run's concurrency
// key. Their slots go to the new run, not to queued ones.
func cancelOldest(tx *transaction, r run.Run, count int) error {
	if count == 0 {
		return nil
	}
	oldest, err := database.List(tx, selectRun+`JOIN run_queue q ON q.run_id = r.id
		WHERE q.workflow_id = $1 AND q.concurrency_key = $2 AND q.admitted = $3 ORDER BY q.run_id LIMIT $4`,
		[]any{r.WorkflowID, r.ConcurrencyKey, true, count}, scanRun)
	if err != nil {
		return err
	}
	for _, old := range oldest {
		old.ConcurrencyKey = ""
		if _, err := cancelRun(tx, old, r.StartedAt); err != nil {
			return err
		}
	}
	return nil
}

// slotRows implements run.Slots for the concurrency key of a run.
type slotRows struct {
	tx  *transaction
	run run.Run
}

// Admitted implements run.Slots.
func (r slotRows) Admitted() (int, error) { return countRuns(r.tx, r.run, true) }

// Queued implements run.Slots.
func (r slotRows) Queued() (int, error) { return countRuns(r.tx, r.run, false) }

// Ancestor implements run.Slots.
func (r slotRows) Ancestor(runID string) (*run.Run, error) {
	found, err := database.One(r.tx, selectRun+`WHERE r.id = $1`, []any{runID}, scanRun)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Run, nil
}

// countRuns counts the runs that hold a slot for the run's concurrency key, or
// wait for one. The condition on turn is written as a comparison so that the
// index applies.
func countRuns(tx *transaction, r run.Run, admitted bool) (int, error) {
	return database.Number(tx, `SELECT count(*) FROM run_queue WHERE workflow_id = $1 AND concurrency_key = $2 AND admitted = $3`, r.WorkflowID, r.ConcurrencyKey, admitted)
}

// passSlot passes the slot of a run that has ended to the queued runs, in the
// order in which they started.
func passSlot(tx *transaction, r run.Run, at time.Time) error {
	if err := lockSlots(tx, r); err != nil {
		return err
	}
	for {
		next, err := database.One(tx, `SELECT run_id, concurrency_limit FROM run_queue
			WHERE workflow_id = $1 AND concurrency_key = $2 AND admitted = $3`+runqueue.NotDeleted+` ORDER BY run_id LIMIT 1`,
			[]any{r.WorkflowID, r.ConcurrencyKey, false}, func(r database.Row) (w queuedRun, err error) {
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
		if err := tx.Do(`UPDATE run_queue SET admitted = $1, wake_at = $2 WHERE run_id = $3`, true, clock.Past(at), next.runID); err != nil {
			return err
		}
		if err := tx.queue.Wake(next.runID); err != nil {
			return err
		}
	}
}

// queuedRun is a run that waits for a slot under its concurrency limit.
type queuedRun struct {
	runID string
	limit int
}
