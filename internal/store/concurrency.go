package store

import (
	"time"

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
	oldest, err := runqueue.OldestAdmitted(tx, r.WorkflowID, r.ConcurrencyKey, count)
	if err != nil {
		return err
	}
	for _, id := range oldest {
		old, err := database.One(tx, selectRun+`WHERE r.id = $1`, []any{id}, scanRun)
		if err != nil {
			return err
		}
		if old == nil { // its workflow was deleted
			continue
		}
		old.ConcurrencyKey = ""
		if _, err := cancelRun(tx, *old, r.StartedAt); err != nil {
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
func (r slotRows) Admitted() (int, error) { return r.count(true) }

// Queued implements run.Slots.
func (r slotRows) Queued() (int, error) { return r.count(false) }

func (r slotRows) count(admitted bool) (int, error) {
	return runqueue.CountByKey(r.tx, r.run.WorkflowID, r.run.ConcurrencyKey, admitted)
}

// Ancestor implements run.Slots.
func (r slotRows) Ancestor(runID string) (*run.Run, error) {
	found, err := database.One(r.tx, selectRun+`WHERE r.id = $1`, []any{runID}, scanRun)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Run, nil
}

// passSlot passes the slot of a run that has ended to the queued runs, in the
// order in which they started.
func passSlot(tx *transaction, r run.Run, at time.Time) error {
	if err := lockSlots(tx, r); err != nil {
		return err
	}
	for {
		next, err := runqueue.NextQueued(tx, r.WorkflowID, r.ConcurrencyKey)
		if err != nil || next == nil {
			return err
		}
		inUse, err := runqueue.CountByKey(tx, r.WorkflowID, r.ConcurrencyKey, true)
		if err != nil || inUse >= next.Limit {
			return err
		}
		if err := runqueue.Admit(tx, next.RunID, at); err != nil {
			return err
		}
		if err := tx.queue.Wake(next.RunID); err != nil {
			return err
		}
	}
}
