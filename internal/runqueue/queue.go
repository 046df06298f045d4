// Package runqueue is the queue of runs: which runs have work to do, which node
// executes each of them, and how many runs of a workspace are executed at a time.
// It owns the tables run_queue and workspace_load: the store calls its functions in its
// own transactions, and only lists of runs join run_queue there. Local is the queue of a single process, Cluster that of one
// of several nodes which share a database.
package runqueue

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Queue is implemented by Local and Cluster.
type Queue interface {
	// Begin returns the queue's part of a transaction.
	Begin(Tx) Transaction
	// Fence returns the statement that checks the lease of a decision: it touches the
	// run's row under the lease's epoch, and without a row the caller may not write.
	Fence(run.Lease, run.Decision) database.Statement
	// InsertsAlone reports whether Insert writes only the row of the new run and what
	// it has locked.
	InsertsAlone(run.Start) bool
	// ReleasesAlone reports whether releasing a run writes only the row of the run.
	ReleasesAlone() bool
	// WaitsForNode returns the condition that a run in the queue q waits for a node
	// to execute it.
	WaitsForNode() string
	// NodeIsGone returns the condition that the node in a column no longer exists. The
	// parameter is the placeholder of this node.
	NodeIsGone(column, self string) string
}

// Transaction is the queue's part of a transaction. Settle and Enqueue end it.
type Transaction interface {
	// Insert adds a new run: owned by its node, ready for any node, or held back by its
	// concurrency limit. It returns true if this process can execute the run now.
	Insert(start run.Start, admitted bool) (bool, error)
	// Activate makes a node the owner of a run whose epoch still matches the wake-up.
	// It returns false if the wake-up is stale.
	Activate(wake run.Wake, node string) (bool, error)
	// Release frees the slot of a run that a decision ends or releases.
	Release(run.Run)
	// Wake passes on a run that no node owns. A run that was just released wakes at
	// once if an answer arrived in the meantime.
	Wake(runID string) error
	// Remove deletes the row of a run that has ended, and frees what it holds.
	Remove(run.Run) error
	// Purge is Remove for a run of a deleted workflow. It returns the number of
	// deleted rows.
	Purge(runID string) (int, error)
	// Revoke frees what the runs of a deleted workflow hold and voids their leases.
	Revoke(workspaceID, workflowID string) error

	// SubscribersChanged invalidates what nodes have cached of the subscribers of a
	// workspace.
	SubscribersChanged(workspaceID string)
	// SubscriberVersion returns the version of a workspace's subscribers, and false if
	// they must not be cached.
	SubscriberVersion(workspaceID string) (int64, bool)

	// Settle writes what the transaction has collected, before its events.
	Settle() error
	// Enqueue enqueues the collected jobs at the end of the transaction.
	Enqueue(context.Context) error
}

// Tx is a transaction of the store.
type Tx interface {
	database.Conn
	// AfterCommit calls fn once the transaction is durable.
	AfterCommit(fn func())
	// Optimistic reports whether the transaction may rely on cached data: if that is
	// stale, it is rolled back and repeated without.
	Optimistic() bool
	// Unwrap returns the connection, for what its driver offers besides.
	Unwrap() database.Conn
}

// Store runs transactions with the queue's part in them.
type Store interface {
	WriteQueue(ctx context.Context, fn func(Transaction) error) error
	ReadQueue(ctx context.Context, fn func(database.Conn) error) error
}
