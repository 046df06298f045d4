package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/heartbeat"
	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/webhook"
)

const (
	// jobConnections is the number of connections of the job queue.
	jobConnections = 4
	// listenConnections is the number of connections that listen to other nodes.
	listenConnections = 1
	// OwnConnections is the number of connections of a node beside those of the store.
	OwnConnections = jobConnections + listenConnections
	// leaveTimeout is how long a node has to hand its runs to others. If it fails, they take over
	// when its lease has expired, so that a stop need not wait for the database.
	leaveTimeout = 5 * time.Second
	// returnEvery is how often a node releases webhooks that have nothing to send.
	returnEvery = time.Minute
)

// SharedConfig configures a node that shares its database.
type SharedConfig struct {
	Config
	DB *postgres.DB
	// Options are those of DB.
	Options postgres.Options
	// ListenURL is the URL for LISTEN if Options name a connection pooler.
	ListenURL string
	// Lease is how long a node counts as alive after a heartbeat.
	Lease time.Duration
}

// joined is the topology of a node that shares its database with others.
type joined struct {
	SharedConfig
	jobs     *pgxpool.Pool
	dispatch *river.Dispatcher
	keeper   *heartbeat.Keeper
	notifier *peer.Notifier
	outbox   store.NodeOutbox
	nodes    atomic.Int64 // as of the last heartbeat
}

// Join adds this process to the nodes that share its database.
func Join(ctx context.Context, config SharedConfig) (_ Topology, err error) {
	j := &joined{SharedConfig: config, outbox: config.Store.Webhooks.OutboxOf(config.Self.ID)}
	pool, err := j.DB.Configure(j.Options, jobConnections)
	if err != nil {
		return nil, err
	}
	if j.jobs, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			j.Close()
		}
	}()
	queue := j.newQueue()
	j.dispatch, err = river.New(queue, river.Config{
		Node: j.Self.ID, Capacity: j.Capacity, HoldsLease: j.HoldsLease, Pool: j.jobs, PollOnly: j.Options.Pooled, Log: j.Log,
	})
	if err != nil {
		return nil, err
	}
	listen, err := j.listenConfig()
	if err != nil {
		return nil, err
	}
	j.notifier = peer.NewNotifier(peer.Config{
		Node: j.Self.ID, Pool: j.DB.Reserved(), Listen: listen, Timeout: j.Options.Timeout / 2, OnMessage: j.onMessage,
	}, j.Log)
	j.Store.SetQueue(queue)
	j.keeper = heartbeat.New(heartbeat.Config{
		Node: j.Self, Capacity: j.Capacity, TTL: j.Lease, OnHeartbeat: j.onHeartbeat, OnClockJump: j.Process.OnClockJump,
	}, registry{j.DB}, queue, j.dispatch, j.Process, j.Log)
	if err := j.keeper.Join(ctx); err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	return j, nil
}

// newQueue returns the queue of this node. It is used once there is a dispatcher, which
// needs the queue.
func (j *joined) newQueue() *runqueue.Cluster {
	return runqueue.NewCluster(runqueue.ClusterConfig{
		Node: j.Self.ID, Limit: j.limit,
		Wake:      func(w run.Wake) { j.dispatch.Wake(w) },
		Reserve:   func(w run.Wake) bool { return j.dispatch.ReserveShared(w) },
		Draining:  func() bool { return j.dispatch.Draining() },
		SlotFreed: func(workspaceID string) { j.dispatch.SlotFreed(workspaceID) },
		EnqueueJobs: func(ctx context.Context, conn database.Conn, runs []run.Job) error {
			return j.dispatch.EnqueueJobs(ctx, conn, runs)
		},
		HasJob: func(ctx context.Context, conn database.Conn, ids []string) (map[string]bool, error) {
			return j.dispatch.HasJob(ctx, conn, ids)
		},
	}, j.Store)
}

// limit returns how many runs of a workspace may be in flight: what its plan
// allows, capped at three quarters of the cluster's capacity.
func (j *joined) limit(plan auth.Plan) int {
	capacity, _ := j.keeper.Cluster()
	return min(plan.Limits().ConcurrentRuns, max(1, capacity*3/4))
}

// listenConfig returns the connection for LISTEN, or nil behind a connection pool
// that does not support it.
func (j *joined) listenConfig() (*pgx.ConnConfig, error) {
	opts := j.Options
	switch {
	case j.ListenURL != "":
		opts.URL, opts.Pooled = j.ListenURL, false
	case opts.Pooled:
		return nil, nil
	}
	pool, err := j.DB.Configure(opts, 1)
	if err != nil {
		return nil, err
	}
	return pool.ConnConfig, nil
}

func (j *joined) onHeartbeat(b node.Heartbeat) {
	if before := j.nodes.Swap(int64(b.Nodes)); before > int64(b.Nodes) {
		j.Process.OnTakeover()
	}
	j.notifier.SetSingleNode(b.Nodes == 1)
	j.DB.SetSingleNode(b.Nodes == 1)
}

// onMessage handles a message from another node. If it does not say which run it is
// about, all runs of this node are checked.
func (j *joined) onMessage(m peer.Message) {
	j.Process.OnMessage(m)
	if m.ID == "" && slices.Contains([]byte{peer.RunCancelled, peer.AnswerArrived, peer.WorkflowDeleted}, m.Kind) {
		j.keeper.Reconcile()
	}
}

func (j *joined) Nodes(ctx context.Context) ([]node.Node, error) { return j.DB.Nodes(ctx) }
func (j *joined) Dispatcher() dispatch.Dispatcher                { return j.dispatch }
func (j *joined) Outbox() webhook.Outbox                         { return j.outbox }
func (j *joined) HoldsLease() bool                               { return j.keeper.HoldsLease() }
func (j *joined) Publish(kind byte, id string)                   { j.notifier.Publish(kind, id) }
func (j *joined) Close()                                         { j.jobs.Close() }

func (j *joined) NewRateLimits() ratelimit.Limits {
	// clock.Now already follows the clock of the database.
	return ratelimit.NewLeased(j.Store.RateLimits, j.Options.Timeout/5, func() time.Duration { return 0 })
}

func (j *joined) TryLead(ctx context.Context, task string, duration time.Duration) (bool, error) {
	return j.DB.TryLead(ctx, task, j.Self.ID, duration)
}

func (j *joined) Others() node.Others {
	others := j.keeper.Others()
	others.Listens = slices.Concat(others.Listens, j.DB.DialedAddrs())
	return others
}

func (j *joined) Collect(m *telemetry.Scrape) {
	_, nodes := j.keeper.Cluster()
	stats := j.keeper.Stats()
	m.Set(telemetry.Nodes, float64(nodes))
	m.Set(telemetry.NodeLost, float64(stats.Lost))
	m.Set(telemetry.ClockOffset, clock.Offset().Seconds())
	m.Set(telemetry.RunsFound, float64(stats.Found))
	m.Set(telemetry.RunsResumed, float64(stats.TakenOver))
}

func (j *joined) Run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{j.keeper.Run, j.notifier.Run, j.dispatch.AdmitThrottled, j.returnWebhooks} {
		parts.Go(func() error { return part(ctx) })
	}
	return parts.Wait()
}

// returnWebhooks releases webhooks that have nothing to send, so that any node can send
// their next delivery.
func (j *joined) returnWebhooks(ctx context.Context) error {
	for clock.Sleep(ctx, returnEvery) {
		if err := j.outbox.ReturnWebhooks(ctx); err != nil && ctx.Err() == nil {
			j.Log.Warn("cannot release idle webhooks", "error", err)
		}
	}
	return nil
}

func (j *joined) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := j.keeper.Leave(ctx); err != nil {
		j.Log.Warn("cannot hand the runs of this node to other nodes; they take over when its lease expires", "error", err)
	}
}

// registry removes nodes with what they had in the job queue.
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
