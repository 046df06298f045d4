// Package membership owns the life of a node among those that share a database:
// its heartbeat, for how long it may trust that its runs are its own, and what
// becomes of the runs of nodes that are gone. It goes by the clock of the
// database and by durations, never by the clock of the machine.
package membership

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/run"
)

// Registry knows the nodes.
type Registry interface {
	Beat(ctx context.Context, n node.Node, capacity int, life time.Duration) (node.Beat, error)
	// Expired marks the nodes whose time has run out as dead, and lists them.
	Expired(ctx context.Context) ([]string, error)
	// Strays lists nodes that hold something and are not known.
	Strays(ctx context.Context) ([]string, error)
	Forget(ctx context.Context, id string) error
	// Serve tells whether this node is the one that does what one does for all.
	Serve(ctx context.Context, term, id string, life time.Duration) (bool, error)
	// Tidy removes what nobody needs any more of the hand-over of runs.
	Tidy(ctx context.Context) error
}

// Queue has the runs of nodes.
type Queue interface {
	TakeFrom(ctx context.Context, node string, died bool) (count int, more bool, err error)
	Held(ctx context.Context, node string) ([]run.Held, error)
	Sweep(ctx context.Context) (found int, more bool, parked []string, err error)
	Recount(ctx context.Context, workspaceID string) (wrong bool, err error)
}

// Hands are those of this node: they work on its runs.
type Hands interface {
	// Leases are those that are worked on.
	Leases() []run.Lease
	// Has tells whether a run waits here to be worked on.
	Has(runID string) bool
	// Abort stops working on a run under a lease that is void.
	Abort(run.Lease)
	// DropAll stops working on every run: none may be ours any more.
	DropAll()
	// Stir tells that something has come for a run.
	Stir(runID string)
	// TakeUp works on a run that is ours and that nobody works on.
	TakeUp(run.Wake)
	// Watch makes sure that the time of a run that is ours is watched.
	Watch(run.Wake)
	// PassOn gives slots of a workspace that are free to runs that are parked.
	PassOn(workspaceID string)
	// TookOver tells that there may be something to do that another node did.
	TookOver()
}

// Member is this node.
type Member struct {
	node     node.Node
	capacity int
	life     time.Duration
	told     func(node.Beat)
	registry Registry
	queue    Queue
	hands    Hands
	log      *slog.Logger

	mu      sync.Mutex
	trusted time.Time // until then, by the monotonic clock
	beat    node.Beat
	lost    bool           // its time ran out, and it has not been seen since
	dropped bool           // it has let go of its runs, and not looked since which are its own
	seen    chan node.Beat // the last one, for whoever looks after what follows
	missing map[string]bool
	stats   Stats
}

// Stats count what has happened.
type Stats struct {
	// TakenOver counts runs of dead nodes, Lost the times that this node could
	// not trust itself any more, Found runs that were nowhere on their way.
	TakenOver, Lost, Found int64
}

// Config says how long a node lives without being seen.
type Config struct {
	Node     node.Node
	Capacity int
	Life     time.Duration
	// Told is called with what each heartbeat learns.
	Told func(node.Beat)
}

// New makes the member for a node.
func New(config Config, registry Registry, queue Queue, hands Hands, log *slog.Logger) *Member {
	return &Member{
		node: config.Node, capacity: config.Capacity, life: config.Life, told: config.Told, registry: registry, queue: queue, hands: hands, log: log,
		missing: map[string]bool{}, seen: make(chan node.Beat, 1),
	}
}

// Join makes the node known, before it does anything.
func (m *Member) Join(ctx context.Context) error {
	if _, err := m.pulse(ctx); err != nil {
		return err
	}
	return nil
}

// Trusted tells whether this node may still take its runs for its own: if it
// was not seen for too long, others may have them.
func (m *Member) Trusted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.trusted)
}

// Cluster tells how many runs all nodes execute at a time, and how many nodes
// there are.
func (m *Member) Cluster() (capacity, nodes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beat.Capacity, m.beat.Nodes
}

// Stats tells what has happened.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// every is how often a node shows that it is alive, and margin how long before
// its end it stops to trust itself.
func (m *Member) every() time.Duration  { return m.life * 3 / 10 }
func (m *Member) margin() time.Duration { return m.life * 3 / 10 }

// pulse is one heartbeat. What it learns counts from the moment it was sent. A
// node that has not been seen in time lets go of its runs before it trusts
// itself again, however late it notices.
func (m *Member) pulse(ctx context.Context) (node.Beat, error) {
	sent := time.Now()
	limit, cancel := context.WithTimeout(ctx, m.every())
	defer cancel()
	beat, err := m.registry.Beat(limit, m.node, m.capacity, m.life)
	if err != nil {
		return beat, err
	}
	clock.Follow(beat.Now.Add(time.Since(sent) / 2))
	m.told(beat)
	m.mu.Lock()
	late := beat.Dead || !m.trusted.IsZero() && !time.Now().Before(m.trusted)
	m.mu.Unlock()
	if late {
		m.drop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beat = beat
	if !beat.Dead {
		m.trusted, m.lost = sent.Add(m.life-m.margin()), false
	}
	return beat, nil
}

// Run shows that the node is alive until the context ends, takes over the runs
// of nodes that are gone, and looks after what was lost on the way. Nothing of
// the latter holds up the heartbeat.
func (m *Member) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { m.guard(ctx) })
	parts.Go(func() { m.tend(ctx) })
	parts.Go(func() { m.care(ctx) })
	defer parts.Wait()
	pulse := time.NewTicker(m.every())
	defer pulse.Stop()
	for {
		select {
		case <-pulse.C:
			m.live(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// live shows once that the node is alive.
func (m *Member) live(ctx context.Context) {
	beat, err := m.pulse(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("the database did not hear the heartbeat of this node", "error", err)
		}
		return
	}
	select { // who is still busy with an earlier one looks at this one next
	case <-m.seen:
	default:
	}
	m.seen <- beat
}

// care does what follows from heartbeats.
func (m *Member) care(ctx context.Context) {
	reap := time.NewTimer(m.life)
	defer reap.Stop()
	for {
		select {
		case beat := <-m.seen:
			if beat.Dead {
				m.log.Warn("this node was not seen for too long: its runs go to others")
				m.reap(ctx)
				continue
			}
			m.compare(ctx)
			if beat.NextExpiry != nil {
				// Not all at the same moment: one is enough.
				reap.Reset(max(0, beat.NextExpiry.Sub(clock.Now())) + 50*time.Millisecond + rand.N(m.life/20))
			}
		case <-reap.C:
			m.reap(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Leave hands everything to the others and goes.
func (m *Member) Leave(ctx context.Context) error {
	if _, err := m.takeFrom(ctx, m.node.ID, false); err != nil {
		return err
	}
	return m.registry.Forget(ctx, m.node.ID)
}
