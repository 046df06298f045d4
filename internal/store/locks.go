package store

import (
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// lockRun blocks other transactions on a run until this one ends. It returns
// false if the run is no longer running. A transaction that writes about a run
// holds this lock or the run's lease. Locks on parents are acquired first.
func lockRun(tx *transaction, runID string) (bool, error) {
	n, err := tx.Exec(`UPDATE run_queue SET epoch = epoch WHERE run_id = $1`, runID)
	return n == 1, err
}

// lockParentAndSlots locks the run whose step waits for this one and the slots of
// its concurrency key, in the order that all transactions use: the end of a run
// affects both.
func lockParentAndSlots(tx *transaction, r run.Run) error {
	if r.Parent != nil && r.Parent.Waits {
		if _, err := lockRun(tx, r.Parent.RunID); err != nil {
			return err
		}
	}
	return lockSlots(tx, r)
}

// lockSlots locks the slots of the run's concurrency key.
func lockSlots(tx *transaction, r run.Run) error {
	if r.ConcurrencyKey == "" {
		return nil
	}
	return tx.Lock(database.Lock{Kind: database.LockConcurrency, Key: r.WorkflowID + "/" + r.ConcurrencyKey})
}
