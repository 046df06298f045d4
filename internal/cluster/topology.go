// Package cluster makes several processes that share a PostgreSQL database one service.
// It owns what a node knows of the others and does because of them: it joins and leaves,
// sends heartbeats, takes over from dead nodes, dispatches runs to nodes with capacity and
// passes messages. A process that has its database to itself has the same methods; most of
// them have nothing to do.
//
// It does not own the rows of the queue of runs, which are those of runqueue, or what a
// node does with its runs, which is up to the engine.
package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/cluster/heartbeat"
	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/webhook"
)

// Topology is how a process shares the work with others. Join returns that of a node among
// others, NewSingle that of a process without any.
type Topology interface {
	// Nodes lists all nodes, this one included.
	node.Registry
	// Dispatcher brings runs to the engine of this process.
	Dispatcher() dispatch.Dispatcher
	// Outbox returns the deliveries that this node sends.
	Outbox() webhook.Outbox
	// NewRateLimits returns a counter of requests, over all nodes.
	NewRateLimits() ratelimit.Limits

	// HoldsLease reports whether this node still owns its runs.
	HoldsLease() bool
	// TryLead reports whether this node does a task that one node does for all, and keeps
	// doing it for the given time.
	TryLead(ctx context.Context, task string, duration time.Duration) (bool, error)
	// Publish tells the other nodes what has changed.
	Publish(kind byte, id string)
	// Others returns the addresses of the other nodes and of what all nodes share.
	Others() node.Others
	// Collect sets the metrics that depend on the number of nodes.
	Collect(*telemetry.Scrape)

	// Run keeps this node in the service until the context ends. It must outlive the runs
	// of this node.
	Run(ctx context.Context) error
	// Leave hands the runs of this node to the others. Run must still be running.
	Leave(ctx context.Context)
	// Close releases what NewSingle or Join has acquired.
	Close()
}

// Process is the rest of this process. Only OnClockJump may be called before Run.
type Process interface {
	heartbeat.Executor
	// OnMessage is called when another node has changed something.
	OnMessage(peer.Message)
	// OnClockJump is called after the clock was set, to check again what waits for a time
	// of day.
	OnClockJump()
}

// Config configures a topology.
type Config struct {
	// Self describes this node to the others.
	Self node.Node
	// Capacity is the number of runs that this node executes at a time.
	Capacity int
	Store    *store.DB
	Process  Process
	Log      *slog.Logger
}
