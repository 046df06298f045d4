// Package membership owns the life of a node among those that share a database:
// its heartbeat, for how long it may trust that its runs are its own, and what
// becomes of the runs of nodes that are gone. It goes by the clock of the
// database and by durations, never by the clock of the machine.
package membership

import (
	"context"
	"errors"
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
	// Retire marks a node as dead before its time: it takes up nothing more.
	Retire(ctx context.Context, id string) error
	// Sever ends what a node that is dead has open in the database, and locked.
	Sever(ctx context.Context, id string) error
	// Forget removes a node that is dead. One that is alive again stays: several
	// may take over from it, and not all of them are done at the same moment.
	// It answers whether there was something to remove.
	Forget(ctx context.Context, id string) (bool, error)
	// Serve tells whether this node is the one that does what one does for all.
	Serve(ctx context.Context, term, id string, life time.Duration) (bool, error)
	// Tidy removes what nobody needs any more of the hand-over of runs.
	Tidy(ctx context.Context) error
}

// Queue has the runs of nodes.
type Queue interface {
	// TakeFrom takes the runs of a node away from it, unless it is alive.
	TakeFrom(ctx context.Context, node string, died bool) (count int, more bool, err error)
	Held(ctx context.Context, node string) ([]run.Held, error)
	Sweep(ctx context.Context) (found int, more bool, parked []string, err error)
	// Strays lists nodes that are not known and hold something.
	Strays(ctx context.Context) ([]string, error)
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
	// Watch makes sure that the time is watched that a run of ours waits for.
	Watch(run.Wake)
	// TookOver tells that there may be something to do that another node did.
	TookOver()
	// PassOn gives slots of a workspace that are free to runs that are parked.
	PassOn(workspaceID string)
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

	beating sync.Mutex // one heartbeat at a time
	gone    bool       // it has left, and is not seen any more
	unheard bool       // the last heartbeat was not heard

	mu      sync.Mutex
	trusted time.Time // until then, by the monotonic clock
	lapsed  bool      // its time ran out, and it has not been seen since
	lost    bool      // it let go of its runs, and has not looked for them since
	beat    node.Beat
	missing map[string]bool
	stats   Stats

	seen   chan struct{}      // a heartbeat was heard
	asked  chan struct{}      // somebody wants it to look at its runs
	hurry  chan struct{}      // the next one is wanted at once
	expiry chan time.Duration // until the time of another node runs out
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
		missing: map[string]bool{}, seen: make(chan struct{}, 1), asked: make(chan struct{}, 1), hurry: make(chan struct{}, 1), expiry: make(chan time.Duration, 1),
	}
}

// Join makes the node known, before it does anything.
func (m *Member) Join(ctx context.Context) error {
	_, err := m.pulse(ctx)
	return err
}

// Trusted tells whether this node may still take its runs for its own: if it
// was not seen for too long, others may have them.
func (m *Member) Trusted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return clock.Mark().Before(m.trusted)
}

// Cluster tells how many runs all nodes execute at a time, and how many nodes
// there are.
func (m *Member) Cluster() (capacity, nodes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beat.Capacity, m.beat.Nodes
}

// Others tells what is known of the other nodes.
func (m *Member) Others() node.Others {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beat.Others
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

// errGone says that a node that has left is not to be seen again.
var errGone = errors.New("this node has left")

// pulse is one heartbeat. What it learns counts from the moment it was sent.
func (m *Member) pulse(ctx context.Context) (node.Beat, error) {
	m.beating.Lock()
	defer m.beating.Unlock()
	if m.gone {
		return node.Beat{}, errGone
	}
	sent := clock.Mark()
	limit, cancel := context.WithTimeout(ctx, m.every())
	defer cancel()
	beat, err := m.registry.Beat(limit, m.node, m.capacity, m.life)
	if err != nil {
		return beat, err
	}
	clock.Follow(beat.Now.Add(time.Since(sent) / 2))
	m.told(beat)
	if beat.Dead || m.overdue() { // others may have had its runs
		m.drop()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if beat.Others.URL == "" { // who was there may be back soon
		beat.Others.URL = m.beat.Others.URL
	}
	m.beat = beat
	if !beat.Dead {
		m.trusted, m.lapsed = sent.Add(m.life-m.margin()), false
	}
	return beat, nil
}

// overdue tells that trust has run out and nobody has noticed: the process may
// have been stopped for a while.
func (m *Member) overdue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.trusted.IsZero() && !clock.Mark().Before(m.trusted)
}

// Run shows that the node is alive until the context ends, takes over the runs
// of nodes that are gone, and looks after what was lost on the way.
func (m *Member) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { m.guard(ctx) })
	parts.Go(func() { m.tend(ctx) })
	parts.Go(func() { m.look(ctx) })
	parts.Go(func() { m.bury(ctx) })
	defer parts.Wait()
	// Nothing but heartbeats is done here: they wait for nothing else.
	pulse := time.NewTimer(m.every())
	defer pulse.Stop()
	for {
		select {
		case <-pulse.C:
		case <-m.hurry:
		case <-ctx.Done():
			return nil
		}
		began := clock.Mark()
		next := m.live(ctx)
		pulse.Reset(max(0, next-time.Since(began)))
	}
}

// Look has this node look whether all that it works on is still its own, and for
// what has come for it, without waiting for the next heartbeat.
func (m *Member) Look() {
	select {
	case m.asked <- struct{}{}:
	default: // it is about to
	}
}

// live is what happens with every heartbeat. It answers after which time the next
// one is due: one that was not heard is tried again soon, so that a database that
// was away for a moment costs no more than that moment.
func (m *Member) live(ctx context.Context) time.Duration {
	beat, err := m.pulse(ctx)
	switch {
	case errors.Is(err, errGone):
	case err != nil:
		if ctx.Err() == nil && !m.unheard {
			m.log.Warn("the database does not hear the heartbeat of this node", "error", err)
		}
		m.unheard = true
		return m.every() / 10
	case beat.Dead:
		m.log.Warn("this node was not seen for too long: its runs go to others")
		tell(m.expiry, 0)
	default:
		tell(m.seen, struct{}{})
		if beat.NextExpiry != nil {
			// Not all at the same moment: one is enough.
			tell(m.expiry, max(0, beat.NextExpiry.Sub(beat.Now))+50*time.Millisecond+rand.N(m.life/20))
		}
	}
	m.unheard = false
	return m.every()
}

// tell leaves a message, in the place of one that was not read yet. One goroutine
// at a time does.
func tell[T any](c chan T, message T) {
	select {
	case <-c:
	default:
	}
	c <- message
}

// Leave hands everything to the others and goes.
func (m *Member) Leave(ctx context.Context) error {
	m.beating.Lock()
	m.gone = true
	m.beating.Unlock()
	if err := m.registry.Retire(ctx, m.node.ID); err != nil {
		return err
	}
	if _, err := m.takeFrom(ctx, m.node.ID, false); err != nil {
		return err
	}
	_, err := m.registry.Forget(ctx, m.node.ID)
	return err
}
