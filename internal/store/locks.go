package store

import "github.com/stepmill/stepmill/internal/run"

// Lock identifies a resource that only one of several concurrent transactions may
// use at a time. A transaction acquires its locks in the order of the constants
// below, that of a workspace last, so that two transactions never deadlock.
type Lock struct {
	Kind LockKind
	Key  string
	// Shared admits other holders that share it too.
	Shared bool
}

// LockKind identifies the kind of resource.
type LockKind string

const (
	// lockIdempotencyKey guards a request with an idempotency key.
	lockIdempotencyKey LockKind = "once"
	// lockMembers guards the members and invitations of a workspace. It comes
	// before the row of a user, which every change to the user touches first.
	lockMembers LockKind = "members"
	// lockWorkflow is shared by starts, and exclusive for a change or a deletion of
	// the workflow. A deletion sees every run, and no run that started before a
	// pause becomes visible after it.
	lockWorkflow LockKind = "workflow"
	// lockConcurrency guards the slots of a concurrency key.
	lockConcurrency LockKind = "share"
	// LockWorkspace guards the order of a workspace's events and its
	// workspace-wide state: its set of webhooks and its number of runs in flight.
	// It is acquired at the end of a transaction. Only the row of the workspace's
	// audit chain comes after it.
	LockWorkspace LockKind = "workspace"
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
	return tx.Lock(Lock{Kind: lockConcurrency, Key: r.WorkflowID + "/" + r.ConcurrencyKey})
}

// lockWorkspace locks the workspace for the end of the transaction: events are
// numbered in commit order and go to the webhooks that exist at that moment.
func lockWorkspace(tx *transaction, workspaceID string) error {
	return tx.Lock(Lock{Kind: LockWorkspace, Key: workspaceID})
}
