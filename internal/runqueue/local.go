package runqueue

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Local is the queue of a single process, which counts in memory how many runs each
// workspace executes.
type Local struct {
	wake func(run.Wake)
}

// NewLocal returns the queue of a single process. It calls wake for runs that have
// work to do, after the commit.
func NewLocal(wake func(run.Wake)) *Local { return &Local{wake} }

// Begin implements Queue.
func (l *Local) Begin(tx Tx) Transaction { return localTransaction{l, tx} }

// Fence implements Queue.
func (l *Local) Fence(lease run.Lease, d run.Decision) database.Statement {
	return fence(lease, d, ``, NotDeleted)
}

// InsertsAlone implements Queue.
func (l *Local) InsertsAlone(run.Start) bool { return true }

// ReleasesAlone implements Queue.
func (l *Local) ReleasesAlone() bool { return true }

// WaitsForNode implements Queue. The dispatcher knows which runs wait.
func (l *Local) WaitsForNode() string { return `false` }

// NodeIsGone implements Queue. Each process is a new node, and there is one at a time.
func (l *Local) NodeIsGone(column, self string) string { return column + ` <> ` + self }

// localTransaction writes rows at once and collects nothing.
type localTransaction struct {
	queue *Local
	tx    Tx
}

// Insert implements Transaction.
func (t localTransaction) Insert(start run.Start, admitted bool) (bool, error) {
	r := start.Run
	var node, wakeAt, limit any
	switch {
	case !admitted:
	case start.Node == "":
		wakeAt = clock.Past(r.StartedAt)
	default:
		node = start.Node
	}
	if start.Concurrency != nil {
		limit = start.Concurrency.Limit
	}
	return admitted, t.tx.Do(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, concurrency_key, concurrency_limit, admitted, level)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9)`,
		r.ID, r.WorkspaceID, r.WorkflowID, node, wakeAt, database.OrNil(r.ConcurrencyKey), limit, admitted, start.Level)
}

// Activate implements Transaction.
func (t localTransaction) Activate(wake run.Wake, node string) (bool, error) {
	return activate(t.tx, wake, node, NotDeleted)
}

// Release implements Transaction.
func (t localTransaction) Release(run.Run) {}

// Wake implements Transaction.
func (t localTransaction) Wake(runID string) error {
	wake, err := database.One(t.tx, selectWake+`WHERE run_queue.run_id = $1`, []any{runID}, scanWake)
	if err == nil && wake != nil {
		t.tx.AfterCommit(func() { t.queue.wake(*wake) })
	}
	return err
}

// Remove implements Transaction.
func (t localTransaction) Remove(r run.Run) error {
	return t.tx.Do(`DELETE FROM run_queue WHERE run_id = $1`, r.ID)
}

// Purge implements Transaction.
func (t localTransaction) Purge(runID string) (int, error) {
	n, err := t.tx.Exec(`DELETE FROM run_queue WHERE run_id = $1`, runID)
	return int(n), err
}

// Revoke implements Transaction. NotDeleted voids the leases.
func (t localTransaction) Revoke(string, string) error { return nil }

// SubscribersChanged implements Transaction.
func (t localTransaction) SubscribersChanged(string) {}

// SubscriberVersion implements Transaction.
func (t localTransaction) SubscriberVersion(string) (int64, bool) { return 0, false }

// Settle implements Transaction.
func (t localTransaction) Settle() error { return nil }

// Enqueue implements Transaction.
func (t localTransaction) Enqueue(context.Context) error { return nil }
