package runqueue

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Cluster is the queue of one of several nodes that share a database. How many runs
// each workspace executes is counted in workspace_load, guarded by the workspace's
// lock:
//
//   - a run has a slot while a node executes it or a job for it is enqueued;
//   - a run that is due while its workspace has no free slot is throttled;
//   - a run that waits for a time or an answer is neither.
//
// Its statements are for PostgreSQL only.
type Cluster struct {
	ClusterConfig
	store       Store
	workspaces  workspaceCache
	sweepCursor atomic.Pointer[overdueRun] // where the next Sweep continues
}

// ClusterConfig connects the queue to its node and to the other nodes.
type ClusterConfig struct {
	Node string
	// Wake passes on a run that has work to do on this node, after the commit.
	Wake func(run.Wake)
	// Limit returns how many runs of a workspace may have a slot.
	Limit func(auth.Plan) int
	// Reserve reserves capacity on this node for a run and reports whether there
	// was any.
	Reserve func(run.Wake) bool
	// Draining reports whether this node accepts no more runs, because it is
	// shutting down or other nodes have taken over its runs.
	Draining func() bool
	// EnqueueJobs enqueues wake-ups for any node in the connection's transaction.
	EnqueueJobs func(context.Context, database.Conn, []run.Job) error
	// HasJob reports which of the given runs have a job.
	HasJob func(context.Context, database.Conn, []string) (map[string]bool, error)
	// SlotFreed is called after the commit if a workspace has throttled runs and
	// may have a slot for them.
	SlotFreed func(workspaceID string)
}

// NewCluster returns the queue of a node. It runs its own transactions on the store,
// whose queue it becomes.
func NewCluster(config ClusterConfig, store Store) *Cluster {
	return &Cluster{ClusterConfig: config, store: store}
}

// shortWait is the longest wait for which the node that last executed a run keeps a local timer
// instead of enqueueing a job.
const shortWait = 10 * time.Second

// Begin implements Queue.
func (c *Cluster) Begin(tx Tx) Transaction { return &clusterTransaction{Tx: tx, queue: c} }

// ownedByNode matches runs that a node owns. It is not written as IS NOT NULL: if
// the queue was empty at the last ANALYZE, PostgreSQL would then look for the run
// among all owned runs, including dead rows.
const ownedByNode = ` AND COALESCE(node, '') <> ''`

// Fence implements Queue. The holder of a lease has a slot, so a caller that missed
// the response to a release cannot release the run twice.
func (c *Cluster) Fence(lease run.Lease, d run.Decision) database.Statement {
	return fence(lease, d, `slot = false, `, NotDeleted+` AND slot`+ownedByNode)
}

// InsertsAlone implements Queue. A run without a node needs a job.
func (c *Cluster) InsertsAlone(start run.Start) bool { return start.Node != "" }

// ReleasesAlone implements Queue.
func (c *Cluster) ReleasesAlone() bool { return false }

// WaitsForNode implements Queue.
func (c *Cluster) WaitsForNode() string { return `(q.throttled OR q.slot AND q.node IS NULL)` }

// NodeIsGone implements Queue.
func (c *Cluster) NodeIsGone(column, _ string) string {
	return `NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = ` + column + ` AND NOT nodes.dead)`
}

func (c *Cluster) write(ctx context.Context, fn func(*clusterTransaction) error) error {
	return c.store.WriteQueue(ctx, func(t Transaction) error { return fn(t.(*clusterTransaction)) })
}
