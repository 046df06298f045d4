package store

import (
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
)

var runQueueTable = Table{
	Name: "run_queue", Key: "run_id", Text: "run_id workspace_id workflow_id node executing suspects concurrency_key waiting_step",
	Int: "epoch wake_at execution_time log_bytes crashes concurrency_limit level", Bool: "admitted", Cluster: "slot throttled orphaned",
}

// lockParentAndSlots locks the run whose step waits for this one and the slots of
// its concurrency key, in the order that all transactions use: the end of a run
// affects both.
func lockParentAndSlots(tx *transaction, r run.Run) error {
	if r.Parent != nil && r.Parent.Waits {
		if _, err := runqueue.Lock(tx, r.Parent.RunID); err != nil {
			return err
		}
	}
	return lockSlots(tx, r)
}

func lockSlots(tx *transaction, r run.Run) error {
	if r.ConcurrencyKey == "" {
		return nil
	}
	return tx.Lock(database.Lock{Kind: database.LockConcurrency, Key: r.WorkflowID + "/" + r.ConcurrencyKey})
}
