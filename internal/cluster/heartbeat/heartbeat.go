// Package heartbeat keeps the lease of a node among those that share a database: it
// sends heartbeats, knows how long the node may trust that it owns its runs, and takes
// over the runs of dead nodes. It uses the clock of the database and durations, never the
// wall clock of the machine.
package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
)

// Registry stores the nodes.
type Registry interface {
	Heartbeat(ctx context.Context, n node.Node, capacity int, life time.Duration, steady clock.Record) (node.Heartbeat, error)
	// Expired marks the nodes whose time has run out as dead, and lists them.
	Expired(ctx context.Context) ([]string, error)
	// Retire marks a node as dead before its time. It claims no more runs.
	Retire(ctx context.Context, id string) error
	// TerminateSessions terminates the database sessions of a dead node, which
	// releases its locks.
	TerminateSessions(ctx context.Context, id string) error
	// Forget removes a dead node and reports whether it did. It leaves a node that is
	// alive again, because several nodes may take over from it and finish at
	// different times.
	Forget(ctx context.Context, id string) (bool, error)
	// TryLead acquires or renews the lease of the leader for a task, and reports
	// whether this node holds it.
	TryLead(ctx context.Context, leadership, id string, duration time.Duration) (bool, error)
}

// Queue stores the runs of nodes.
type Queue interface {
	// TakeOver requeues runs of a node, unless it is alive.
	TakeOver(ctx context.Context, node string, died bool) (count int, more bool, err error)
	OwnedRuns(ctx context.Context, node string) ([]run.OwnedRun, error)
	Sweep(ctx context.Context) (found int, more bool, throttled []string, err error)
	// UnknownNodes lists nodes that own runs but are not registered.
	UnknownNodes(ctx context.Context) ([]string, error)
	Recount(ctx context.Context, workspaceID string) (wrong bool, err error)
}

// Dispatcher has the runs of this node that are not executing.
type Dispatcher interface {
	// Has reports whether a run waits here to be executed.
	Has(runID string) bool
	// Resume queues a run that this node owns but does not execute.
	Resume(run.Wake)
	// Watch makes sure that a run of this node has a local timer.
	Watch(run.Wake)
	// Forget drops all runs, because this node may no longer own them.
	Forget()
	// SlotFreed is called if a workspace may have slots for its throttled runs.
	SlotFreed(workspaceID string)
	// DeleteStaleJobs deletes jobs that no run waits for.
	DeleteStaleJobs(ctx context.Context) error
}

// Executor executes the runs of this node.
type Executor interface {
	// Leases returns the leases of the runs that are executing.
	Leases() []run.Lease
	// AbortLease stops executing a run whose lease is no longer valid.
	AbortLease(run.Lease)
	// AbortAll stops executing all runs, because this node may no longer own them.
	AbortAll()
	// Nudge is called when an answer has arrived for a run.
	Nudge(runID string)
	// OnTakeover is called after the runs of another node were taken over.
	OnTakeover()
}

// Keeper keeps the lease of this node, and takes over from nodes whose lease has expired.
type Keeper struct {
	node        node.Node
	capacity    int
	ttl         time.Duration
	onHeartbeat func(node.Heartbeat)
	onClockJump func()
	registry    Registry
	queue       Queue
	dispatcher  Dispatcher
	executor    Executor
	log         *slog.Logger

	sending sync.Mutex // one heartbeat at a time
	left    bool       // it sends no more heartbeats
	failing bool       // the last heartbeat failed

	mu        sync.Mutex
	trusted   time.Time // until when the node is trusted, by the monotonic clock
	expired   bool      // trust has ended since the last successful heartbeat
	dropped   bool      // runs were dropped since the last reconciliation
	last      node.Heartbeat
	unclaimed map[string]bool // owned runs that nothing executed at the last look
	stats     Stats

	heartbeatOK        chan struct{}      // a heartbeat succeeded
	reconcileRequested chan struct{}      // Reconcile was called
	heartbeatNow       chan struct{}      // send a heartbeat immediately
	expiry             chan time.Duration // time until another node expires
}

// Stats are statistics of a keeper.
type Stats struct {
	// TakenOver counts runs taken over from dead nodes, Lost how often this node lost
	// trust, Found orphaned runs that were requeued.
	TakenOver, Lost, Found int64
}

// Config configures a keeper.
type Config struct {
	Node     node.Node
	Capacity int
	TTL      time.Duration
	// OnHeartbeat is called after each successful heartbeat.
	OnHeartbeat func(node.Heartbeat)
	// OnClockJump is called after a jump of the database's clock.
	OnClockJump func()
}

// New returns the keeper of a node's lease.
func New(config Config, registry Registry, queue Queue, dispatcher Dispatcher, executor Executor, log *slog.Logger) *Keeper {
	return &Keeper{
		node: config.Node, capacity: config.Capacity, ttl: config.TTL, onHeartbeat: config.OnHeartbeat, onClockJump: config.OnClockJump, registry: registry, queue: queue, dispatcher: dispatcher, executor: executor, log: log,
		unclaimed: map[string]bool{}, heartbeatOK: make(chan struct{}, 1), reconcileRequested: make(chan struct{}, 1), heartbeatNow: make(chan struct{}, 1), expiry: make(chan time.Duration, 1),
	}
}

// joinTimeout limits how long a node tries to register with a database that does
// not respond.
const joinTimeout = 30 * time.Second

// Join registers the node. It must be called first.
func (k *Keeper) Join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for {
		_, err := k.heartbeat(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
}

// HoldsLease reports whether this node still owns its runs. If its last heartbeat is too
// old, other nodes may have taken them over.
func (k *Keeper) HoldsLease() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return clock.Monotonic().Before(k.trusted)
}

// Cluster returns the number of runs that all nodes together execute at a time, and
// the number of nodes.
func (k *Keeper) Cluster() (capacity, nodes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last.Capacity, k.last.Nodes
}

// Others returns the addresses of the other nodes.
func (k *Keeper) Others() node.Others {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last.Others
}

// Stats returns the current statistics.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats
}

// interval is the time between heartbeats: one may be lost without the node losing its runs. margin
// is how long before its expiry a node stops trusting that it owns its runs, so that it has aborted
// them before another node takes them over.
func (k *Keeper) interval() time.Duration { return k.ttl * 3 / 10 }
func (k *Keeper) margin() time.Duration   { return k.ttl * 3 / 10 }

// errGone is returned for a heartbeat after Leave.
var errGone = errors.New("this node has left")

// heartbeat sends a heartbeat. The node is trusted from the time it was sent.
func (k *Keeper) heartbeat(ctx context.Context) (node.Heartbeat, error) {
	k.sending.Lock()
	defer k.sending.Unlock()
	if k.left {
		return node.Heartbeat{}, errGone
	}
	sent := clock.Monotonic()
	limit, cancel := context.WithTimeout(ctx, k.interval())
	defer cancel()
	beat, err := k.registry.Heartbeat(limit, k.node, k.capacity, k.ttl, clock.Current())
	if err != nil {
		return beat, err
	}
	k.followClock(beat, sent)
	k.onHeartbeat(beat)
	if beat.Dead || k.overdue() { // other nodes may have taken over its runs
		k.dropRuns()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if beat.Others.URL == "" { // the last one known may be back soon
		beat.Others.URL = k.last.Others.URL
	}
	k.last = beat
	if !beat.Dead {
		k.trusted, k.expired = sent.Add(k.ttl-k.margin()), false
	}
	return beat, nil
}

// followClock makes the clock of this process follow that of the database.
func (k *Keeper) followClock(beat node.Heartbeat, sent time.Time) {
	before := clock.Correction()
	clock.FollowSteady(beat.Now, sent, beat.Correction)
	if step := before - clock.Correction(); step != 0 {
		k.log.Warn("the clock of the database has jumped; waits go on as if it had not", "by", step)
		k.onClockJump()
	}
}

// overdue reports whether trust has ended without being noticed, for example because
// the process was paused.
func (k *Keeper) overdue() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.trusted.IsZero() && !clock.Monotonic().Before(k.trusted)
}

// Run sends heartbeats, takes over the runs of dead nodes and does maintenance, until
// the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { k.watchTrust(ctx) })
	parts.Go(func() { k.runMaintenance(ctx) })
	parts.Go(func() { k.reconcileLoop(ctx) })
	parts.Go(func() { k.watchExpired(ctx) })
	defer parts.Wait()
	// This loop only sends heartbeats, so that nothing else delays them.
	timer := time.NewTimer(k.interval())
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-k.heartbeatNow:
		case <-ctx.Done():
			return nil
		}
		began := clock.Monotonic()
		next := k.beat(ctx)
		timer.Reset(max(0, next-time.Since(began)))
	}
}

// Reconcile compares the runs that this node executes with those that it owns, and
// checks for answers, without waiting for the next heartbeat.
func (k *Keeper) Reconcile() {
	pubsub.Signal(k.reconcileRequested)
}

// beat sends a heartbeat and handles the response. It returns the time until the next
// one, which is short after an error, so that a brief outage of the database has
// little effect.
func (k *Keeper) beat(ctx context.Context) time.Duration {
	beat, err := k.heartbeat(ctx)
	switch {
	case errors.Is(err, errGone):
	case err != nil:
		if ctx.Err() == nil && !k.failing {
			k.log.Warn("cannot send the heartbeat of this node to the database", "error", err)
		}
		k.failing = true
		return k.interval() / 10
	case beat.Dead:
		k.log.Warn("this node has expired: other nodes take over its runs")
		replace(k.expiry, 0)
	default:
		replace(k.heartbeatOK, struct{}{})
		if beat.NextExpiry != nil {
			// The jitter keeps nodes from taking over all at once.
			replace(k.expiry, max(0, clock.UntilSteady(*beat.NextExpiry))+50*time.Millisecond+rand.N(k.ttl/20))
		}
	}
	k.failing = false
	return k.interval()
}

// replace sends a message and discards one that was not received yet. It must not be
// called concurrently.
func replace[T any](c chan T, message T) {
	select {
	case <-c:
	default:
	}
	c <- message
}

// Leave requeues the runs of this node and removes it from the registry.
func (k *Keeper) Leave(ctx context.Context) error {
	k.sending.Lock()
	k.left = true
	k.sending.Unlock()
	if err := k.registry.Retire(ctx, k.node.ID); err != nil {
		return err
	}
	if _, err := k.takeRuns(ctx, k.node.ID, false); err != nil {
		return err
	}
	_, err := k.registry.Forget(ctx, k.node.ID)
	return err
}
