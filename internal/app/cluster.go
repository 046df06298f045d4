package app

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/heartbeat"
	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/transport"
)

const (
	// jobConnections is the number of connections of the job queue.
	jobConnections = 4
	// listenConnections is the number of connections that listen to other nodes.
	listenConnections = 1
	// leaveTimeout is how long a node has to hand its runs to others.
	leaveTimeout = 5 * time.Second
)

// cluster holds the parts of a node that shares its database with other nodes.
type cluster struct {
	jobs     *pgxpool.Pool
	dispatch *river.Dispatcher
	keeper   *heartbeat.Keeper
	notifier *peer.Notifier
	nodes    atomic.Int64 // as of the last heartbeat
	// limitTimeout bounds the time to check a rate limit.
	limitTimeout time.Duration
}

// holdsLease reports whether this node still owns its runs. A single process always
// does.
func (s *Server) holdsLease() bool { return s.cluster == nil || s.cluster.keeper.HoldsLease() }

// newCluster joins the cluster.
func (s *Server) newCluster(ctx context.Context, data config.Data) (*cluster, error) {
	c := &cluster{limitTimeout: databaseTimeout(data) / 5}
	pool, err := s.data.pg.Configure(sharedOptions(data), jobConnections)
	if err != nil {
		return nil, err
	}
	if c.jobs, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	queue := s.newQueue(c)
	c.dispatch, err = river.New(queue, river.Config{
		Node: s.node, Capacity: engine.Slots, HoldsLease: func() bool { return c.keeper.HoldsLease() }, Pool: c.jobs, PollOnly: data.Pooled, Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	listen, err := s.listenConfig(data)
	if err != nil {
		return nil, err
	}
	c.notifier = peer.NewNotifier(peer.Config{
		Node: s.node, Pool: s.data.pg.Reserved(), Listen: listen, Timeout: databaseTimeout(data) / 2, OnMessage: s.onPeerMessage,
	}, s.log)
	s.data.store.SetQueue(queue)
	c.keeper = heartbeat.New(heartbeat.Config{
		Node:     s.self(),
		Capacity: engine.Slots, TTL: max(time.Second, s.config.NodeLease),
		OnHeartbeat: func(b node.Heartbeat) {
			if before := c.nodes.Swap(int64(b.Nodes)); before > int64(b.Nodes) {
				executor{s, c}.OnTakeover()
			}
			c.notifier.SetSingleNode(b.Nodes == 1)
			s.data.pg.SetSingleNode(b.Nodes == 1)
		},
		OnClockJump: s.onClockJump,
	}, registry{s.data.pg}, queue, executor{s, c}, s.log)
	if err := c.keeper.Join(ctx); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	return c, nil
}

// newQueue returns the queue of this node. It is used once the cluster has a
// dispatcher.
func (s *Server) newQueue(c *cluster) *runqueue.Cluster {
	return runqueue.NewCluster(runqueue.ClusterConfig{
		Node: s.node, Wake: func(w run.Wake) { c.dispatch.Wake(w) }, Limit: c.limit,
		Reserve:  func(w run.Wake) bool { return c.dispatch.ReserveShared(w) },
		Draining: func() bool { return c.dispatch.Draining() },
		EnqueueJobs: func(ctx context.Context, conn database.Conn, runs []run.Job) error {
			return c.dispatch.EnqueueJobs(ctx, conn, runs)
		},
		HasJob: func(ctx context.Context, conn database.Conn, ids []string) (map[string]bool, error) {
			return c.dispatch.HasJob(ctx, conn, ids)
		},
		SlotFreed: func(workspaceID string) { c.dispatch.SlotFreed(workspaceID) },
	}, s.data.store)
}

// listenConfig returns the connection for LISTEN, or nil behind a connection pool
// that does not support it.
func (s *Server) listenConfig(data config.Data) (*pgx.ConnConfig, error) {
	opts := sharedOptions(data)
	switch {
	case data.ListenURL != "":
		opts.URL, opts.Pooled = data.ListenURL, false
	case data.Pooled:
		return nil, nil
	}
	pool, err := s.data.pg.Configure(opts, 1)
	if err != nil {
		return nil, err
	}
	return pool.ConnConfig, nil
}

// self describes this process to other nodes.
func (s *Server) self() node.Node {
	self := node.Node{
		ID: s.node, Name: nodeName(s.config.NodeName), Version: config.VersionText(), Role: s.role, Level: release.Known(),
		Listens: s.front.reachableAddresses(), StartedAt: clock.Now(),
	}
	if s.front.listener != nil {
		self.URL = s.publicURL()
	}
	return self
}

// ownAddresses returns the addresses that steps must not reach: those of this
// process, of the other nodes and of the shared database.
func (s *Server) ownAddresses() []netip.AddrPort {
	own := s.front.listenAddresses()
	if s.cluster != nil {
		own = slices.Concat(own, s.cluster.keeper.Others().Listens, s.data.pg.DialedAddrs())
	}
	return own
}

// registry returns the registry of all nodes, or of this one if it runs alone.
func (s *Server) registry() node.Registry {
	if s.cluster == nil {
		return node.Alone(s.self())
	}
	return s.data.pg
}

func nodeName(given string) string {
	if given != "" {
		return given
	}
	name, err := os.Hostname()
	if err != nil {
		return "unnamed"
	}
	return name
}

// limit returns how many runs of a workspace may be in flight: what its plan
// allows, capped at three quarters of the cluster's capacity.
func (c *cluster) limit(plan auth.Plan) int {
	capacity, _ := c.keeper.Cluster()
	return min(plan.Limits().ConcurrentRuns, max(1, capacity*3/4))
}

// limits returns the rate limiter of workspaces. In a cluster, all nodes share
// the limits.
func (s *Server) limits() transport.Limits {
	if s.cluster == nil {
		return ratelimit.New()
	}
	// clock.Now already follows the clock of the database.
	return ratelimit.NewLeased(s.data.store.RateLimits, s.cluster.limitTimeout, func() time.Duration { return 0 })
}

func (c *cluster) close() {
	if c.jobs != nil {
		c.jobs.Close()
	}
}

// registry stores the nodes, and releases the jobs of those that it removes.
type registry struct{ *postgres.DB }

// Forget implements heartbeat.Registry.
func (r registry) Forget(ctx context.Context, id string) (bool, error) {
	return r.DB.Forget(ctx, id, func(ctx context.Context, tx pgx.Tx, id string) error {
		if err := river.ReleaseJobs(ctx, tx, id); err != nil {
			return err
		}
		return peer.AnnounceTakeover(ctx, tx, id)
	})
}

// executor gives the keeper of the lease access to the runs on this node.
type executor struct {
	server  *Server
	cluster *cluster
}

// Leases implements heartbeat.Executor.
func (e executor) Leases() []run.Lease { return e.server.runner.engine.Leases() }

// Has implements heartbeat.Executor.
func (e executor) Has(runID string) bool { return e.cluster.dispatch.Has(runID) }

// Abort implements heartbeat.Executor.
func (e executor) Abort(lease run.Lease) { e.server.runner.engine.AbortLease(lease) }

// AbortAll implements heartbeat.Executor.
func (e executor) AbortAll() {
	e.cluster.dispatch.Forget()
	e.server.runner.engine.AbortAll()
}

// Nudge implements heartbeat.Executor.
func (e executor) Nudge(runID string) { e.server.nudge(runID) }

// Resume implements heartbeat.Executor.
func (e executor) Resume(w run.Wake) { e.cluster.dispatch.Resume(w) }

// Watch implements heartbeat.Executor.
func (e executor) Watch(w run.Wake) { e.cluster.dispatch.Watch(w) }

// OnTakeover implements heartbeat.Executor.
func (e executor) OnTakeover() {
	e.server.runner.sender.Wake()
	e.server.runner.wakeTriggers()
}

// DeleteStaleJobs implements heartbeat.Executor.
func (e executor) DeleteStaleJobs(ctx context.Context) error {
	return e.cluster.dispatch.DeleteStaleJobs(ctx)
}

// AdmitThrottled implements heartbeat.Executor.
func (e executor) AdmitThrottled(workspaceID string) { e.cluster.dispatch.SlotFreed(workspaceID) }

// nudge notifies the engine and the dispatcher that an answer for a run arrived.
func (s *Server) nudge(runID string) {
	s.runner.engine.Nudge(runID)
	if s.cluster != nil {
		s.cluster.dispatch.Nudge(runID)
	}
}

// onPeerMessage handles a message from another node. A message without an id
// means that anything of that kind may have changed.
func (s *Server) onPeerMessage(n peer.Message) {
	switch n.Kind {
	case peer.RunChanged:
		publish(s.changes.runs, n.ID)
	case peer.RunEnded:
		s.onRunEnded(n.ID, s.runner.engine.IsActive) // a run that this node executes has not ended elsewhere
	case peer.RunCancelled:
		s.runner.engine.Abort(n.ID)
		s.checkRunsUnlessKnown(n.ID)
		s.onRunEnded(n.ID, nil)
	case peer.AnswerArrived:
		s.nudge(n.ID)
		s.checkRunsUnlessKnown(n.ID)
	case peer.EventRecorded:
		publish(s.changes.events, n.ID)
	case peer.Deliverable:
		s.runner.sender.Wake()
	case peer.WorkflowDeleted:
		s.runner.engine.AbortWorkflow(n.ID)
		s.checkRunsUnlessKnown(n.ID)
		s.changes.runs.PublishAll()
	case peer.Scheduled:
		s.runner.wakeTriggers()
	case peer.Everything:
		s.runner.wakeTriggers()
		s.onRunEnded("", nil)
		s.changes.events.PublishAll()
		s.runner.sender.Wake()
	}
}

// checkRunsUnlessKnown checks all runs of this node if the id is not known.
func (s *Server) checkRunsUnlessKnown(id string) {
	if id == "" {
		s.cluster.keeper.Reconcile()
	}
}

// onRunEnded handles the end of a run on another node. An empty id means that any
// watched run may have ended, other than those of except.
func (s *Server) onRunEnded(runID string, except func(runID string) bool) {
	if runID == "" {
		go s.checkEndedRuns(except)
	} else {
		s.changes.watchers.Ended(runID, nil)
	}
	publish(s.changes.runs, runID)
}

// publish notifies the subscribers of an id, or all subscribers if it is empty.
func publish(broker *pubsub.Broker, id string) {
	if id == "" {
		broker.PublishAll()
	} else {
		broker.Publish(id)
	}
}

// checkEndedRuns finds the watched runs that have ended on another node.
func (s *Server) checkEndedRuns(except func(runID string) bool) {
	watched := s.changes.watchers.Watched()
	if except != nil {
		watched = slices.DeleteFunc(watched, except)
	}
	if len(watched) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	ended, err := s.data.store.Runs.EndedRuns(ctx, watched)
	if err != nil {
		s.log.Debug("cannot check which watched runs have ended", "error", err)
	}
	for _, id := range ended {
		s.changes.watchers.Ended(id, nil)
	}
}

// notifyPeers publishes a message to the other nodes.
func (s *Server) notifyPeers(kind byte, id string) {
	if s.cluster != nil {
		s.cluster.notifier.Publish(kind, id)
	}
}
