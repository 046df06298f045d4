package app

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/dispatch/river"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/membership"
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
)

const (
	// jobConnections is how many connections the hand-over of runs has.
	jobConnections = 4
	// listenConnections is how many listen to the other nodes.
	listenConnections = 1
	// leaveTime is how long a node has to hand its runs to others.
	leaveTime = 5 * time.Second
)

// cluster is what a node has that shares its database with others.
type cluster struct {
	jobs     *pgxpool.Pool
	dispatch *river.Dispatcher
	member   *membership.Member
	bell     *postgres.Bell
	nodes    atomic.Int64 // as of the last heartbeat
}

// newCluster makes this node one of several.
func (s *Server) newCluster(ctx context.Context, data config.Data) (*cluster, error) {
	c := &cluster{}
	pool, err := s.core.pg.Configure(sharedOptions(data), jobConnections)
	if err != nil {
		return nil, err
	}
	if c.jobs, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	c.dispatch, err = river.New(claimer{s.core.store}, river.Config{
		Node: s.node, Capacity: engine.Slots, Trusted: func() bool { return c.member.Trusted() }, Pool: c.jobs, Schema: postgres.JobSchema, PollOnly: data.Pooled, Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	listen, err := s.listenConfig(data)
	if err != nil {
		return nil, err
	}
	c.bell = postgres.NewBell(s.core.pg, s.node, listen, s.hear, s.log)
	s.core.store.OfCluster(store.Cluster{
		Node: s.node, Limit: c.limit, Room: c.dispatch.Room, Leaving: c.dispatch.Leaving,
		Hand: func(ctx context.Context, conn store.Conn, runs []run.Handover) error {
			tx, err := postgres.Tx(conn)
			if err != nil {
				return err
			}
			return c.dispatch.Hand(ctx, tx, runs)
		},
		Carried: func(ctx context.Context, conn store.Conn, ids []string) (map[string]bool, error) {
			tx, err := postgres.Tx(conn)
			if err != nil {
				return nil, err
			}
			return c.dispatch.Carried(ctx, tx, ids)
		},
		Freed: c.dispatch.Freed,
	})
	c.member = membership.New(membership.Config{
		Node:     s.self(),
		Capacity: engine.Slots, Life: max(time.Second, s.config.NodeLease),
		Told: func(b node.Beat) {
			if before := c.nodes.Swap(int64(b.Nodes)); before > int64(b.Nodes) {
				hands{s, c}.TookOver()
			}
			c.bell.Alone(b.Nodes == 1)
			s.core.pg.Alone(b.Nodes == 1)
		},
	}, s.core.pg, s.core.store, hands{s, c}, s.log)
	if err := c.member.Join(ctx); err != nil {
		return nil, fmt.Errorf("join the other nodes: %w", err)
	}
	return c, nil
}

// listenConfig is how to reach the database for listening; nil when that is not
// possible.
func (s *Server) listenConfig(data config.Data) (*pgx.ConnConfig, error) {
	opts := sharedOptions(data)
	switch {
	case data.ListenURL != "":
		opts.URL, opts.Pooled = data.ListenURL, false
	case data.Pooled:
		return nil, nil
	}
	pool, err := s.core.pg.Configure(opts, 1)
	if err != nil {
		return nil, err
	}
	return pool.ConnConfig, nil
}

// self is this process as others see it.
func (s *Server) self() node.Node {
	self := node.Node{
		ID: s.node, Name: nodeName(s.config.NodeName), Version: config.VersionText(), Role: s.role, Listens: s.reachable(), StartedAt: clock.Now(),
	}
	if s.listener != nil {
		self.URL = s.base()
	}
	return self
}

// registry knows the nodes: those that share the database, or this one alone.
func (s *Server) registry() node.Registry {
	if s.cluster == nil {
		return node.Alone(s.self())
	}
	return s.core.pg
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

// limit is how many runs of a workspace are under way at a time: as many as its
// plan allows, and never all that the nodes can execute.
func (c *cluster) limit(plan auth.Plan) int {
	capacity, _ := c.member.Cluster()
	return min(plan.Limits().ConcurrentRuns, max(1, capacity*3/4))
}

// limits count the requests of a workspace: those to all nodes together, where
// there are several.
func (s *Server) limits() api.Limits {
	if s.cluster == nil {
		return ratelimit.New()
	}
	// The clock that Now goes by is the shared one already.
	return ratelimit.NewLeased(s.core.store, func() time.Duration { return 0 })
}

func (c *cluster) close() {
	if c.jobs != nil {
		c.jobs.Close()
	}
}

// claimer takes runs up in the store, together with the job that brought them.
type claimer struct{ *store.Store }

// Claim implements river.Store.
func (c claimer) Claim(ctx context.Context, wake run.Wake, complete func(context.Context, pgx.Tx) error) (run.Wake, run.Claimed, error) {
	return c.Store.Claim(ctx, wake, func(ctx context.Context, conn store.Conn) error {
		tx, err := postgres.Tx(conn)
		if err != nil {
			return err
		}
		return complete(ctx, tx)
	})
}

// hands are those of this node.
type hands struct {
	server  *Server
	cluster *cluster
}

// Leases implements membership.Hands.
func (h hands) Leases() []run.Lease { return h.server.engine.Leases() }

// Has implements membership.Hands.
func (h hands) Has(runID string) bool { return h.cluster.dispatch.Has(runID) }

// Abort implements membership.Hands.
func (h hands) Abort(lease run.Lease) { h.server.engine.AbortLease(lease) }

// DropAll implements membership.Hands.
func (h hands) DropAll() {
	h.cluster.dispatch.Forget()
	h.server.engine.AbortAll()
}

// Stir implements membership.Hands.
func (h hands) Stir(runID string) { h.server.stir(runID) }

// TakeUp implements membership.Hands.
func (h hands) TakeUp(w run.Wake) { h.cluster.dispatch.TakeUp(w) }

// Watch implements membership.Hands.
func (h hands) Watch(w run.Wake) { h.cluster.dispatch.Watch(w) }

// TookOver implements membership.Hands.
func (h hands) TookOver() {
	h.server.courier.Wake()
	h.server.lookAtTriggers()
}

// PassOn implements membership.Hands.
func (h hands) PassOn(workspaceID string) { h.cluster.dispatch.Freed(workspaceID) }

// stir tells whoever has a run here that something has come for it.
func (s *Server) stir(runID string) {
	s.engine.Stir(runID)
	if s.cluster != nil {
		s.cluster.dispatch.Stir(runID)
	}
}

// hear takes in what other nodes tell. Who is told of no run in particular looks at
// those that it has to do with.
func (s *Server) hear(n postgres.News) {
	switch n.Kind {
	case postgres.RunChanged:
		tellOf(s.runNews, n.ID)
	case postgres.RunEnded:
		s.hearOfEnd(n.ID, s.engine.Works) // what is worked on here has not ended elsewhere
	case postgres.RunCancelled:
		s.engine.Abort(n.ID)
		s.lookUnless(n.ID)
		s.hearOfEnd(n.ID, nil)
	case postgres.RunStirred:
		s.stir(n.ID)
		s.lookUnless(n.ID)
	case postgres.EventRecorded:
		tellOf(s.written, n.ID)
	case postgres.Deliverable:
		s.courier.Wake()
	case postgres.WorkflowDeleted:
		s.engine.AbortWorkflow(n.ID)
		s.lookUnless(n.ID)
		s.runNews.TellAll()
	case postgres.Scheduled:
		s.lookAtTriggers()
	case postgres.Everything:
		s.lookAtTriggers()
		s.hearOfEnd("", nil)
		s.written.TellAll()
		s.courier.Wake()
	}
}

// lookUnless has this node look at all its runs unless it is known what to look at.
func (s *Server) lookUnless(id string) {
	if id == "" {
		s.cluster.member.Look()
	}
}

// hearOfEnd takes in that a run has ended on another node, or some that are not
// those of except.
func (s *Server) hearOfEnd(runID string, except func(runID string) bool) {
	if runID == "" {
		go s.lookForEnds(except)
	} else {
		s.watchers.Ended(runID, nil)
	}
	tellOf(s.runNews, runID)
}

// tellOf tells those who wait for news of one, or of any if it is not known of
// which there is.
func tellOf(hub *news.Hub, id string) {
	if id == "" {
		hub.TellAll()
	} else {
		hub.Tell(id)
	}
}

// lookAtTriggers finds out what is due and when the next one is: another node may
// have changed that.
func (s *Server) lookAtTriggers() {
	now := clock.Now()
	s.schedule.Wake(now)
	s.respond.Wake(now)
	s.poll.Wake(now)
}

// lookForEnds finds out which of the runs that somebody waits for have ended on
// another node.
func (s *Server) lookForEnds(except func(runID string) bool) {
	watched := s.watchers.Watched()
	if except != nil {
		watched = slices.DeleteFunc(watched, except)
	}
	if len(watched) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	ended, err := s.core.store.EndedOf(ctx, watched)
	if err != nil {
		s.log.Debug("cannot look for the ends of runs", "error", err)
	}
	for _, id := range ended {
		s.watchers.Ended(id, nil)
	}
}

// tell tells the other nodes.
func (s *Server) tell(kind byte, id string) {
	if s.cluster != nil {
		s.cluster.bell.Tell(kind, id)
	}
}
