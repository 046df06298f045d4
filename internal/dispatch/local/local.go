// Package local dispatches runs inside one process. It has a queue that is fair
// between workspaces, and one timer for the next due run in the store. Runs that wait
// for a later time are only stored as rows, not held in memory.
package local

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// batch is the number of due runs that are read from the store at once.
	batch = 1000
	// refillBelow is the queue length below which more due runs are read. Workspaces
	// that have at least as many runs queued are skipped.
	refillBelow = 500
	// recheckDue is when due runs are read again, in case one of them could not be
	// executed.
	recheckDue = 5 * time.Second
	// maxPollInterval is when the store is polled even if no run is due.
	maxPollInterval = time.Hour
	// minReserve is the minimum number of slots that one workspace leaves to others.
	minReserve = 8
)

// Store reads the runs that are due or orphaned.
type Store interface {
	Due(ctx context.Context, now time.Time, except []string, limit int) ([]run.Wake, error)
	NextDue(ctx context.Context, after time.Time) (*time.Time, error)
	// RecordCrash counts a crash for the runs that another node was executing.
	RecordCrash(ctx context.Context, node string) error
	Orphans(ctx context.Context, node, after string, limit int) ([]run.Wake, error)
}

// Dispatcher is a dispatch.Source.
type Dispatcher struct {
	store Store
	node  string
	slots int
	log   *slog.Logger

	mu         sync.Mutex
	queue      fairQueue
	reserved   reservations
	nextPoll   time.Time       // when to poll the store again
	more       bool            // the store has more due runs
	resumed    int64           // runs of dead processes
	skipped    map[string]bool // workspaces that the last poll skipped
	pollSooner chan struct{}   // nextPoll may be earlier
	ready      chan struct{}   // there may be a run for Next
}

// New returns a dispatcher for the runs of one node, which executes as many at the
// same time as it has slots.
func New(store Store, node string, slots int, log *slog.Logger) *Dispatcher {
	return &Dispatcher{
		store: store, node: node, slots: slots, log: log, skipped: map[string]bool{},
		queue:      fairQueue{share: slots, subqueues: map[string]*subqueue{}, wakes: map[string]run.Wake{}, inFlight: map[string]int{}},
		reserved:   reservations{runs: map[string]reservation{}, byWorkspace: map[string]int{}},
		pollSooner: make(chan struct{}, 1), ready: make(chan struct{}, 1),
	}
}

// Share keeps a reserve of an eighth of the slots that no workspace can use alone, so
// that runs which hang do not block other workspaces. Until it is called, a workspace
// can use all slots. Runs in flight are not affected.
func (d *Dispatcher) Share() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue.share = max(1, d.slots-max(d.slots/8, minReserve))
}

// Wake queues a run now, or when it is due.
func (d *Dispatcher) Wake(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reserved.release(w.RunID)
	now := clock.Steady()
	if w.At.After(now) {
		if d.nextPoll.IsZero() || w.At.Before(d.nextPoll) {
			d.nextPoll = w.At
			pubsub.Signal(d.pollSooner)
		}
		return
	}
	if d.queue.push(w, now) {
		pubsub.Signal(d.ready)
	}
}

// Nudge implements dispatch.Dispatcher. The store wakes a run that nothing executes.
func (d *Dispatcher) Nudge(string) {}

// Stats returns the current statistics.
func (d *Dispatcher) Stats() dispatch.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return dispatch.Stats{Queued: d.queue.length, Oldest: d.queue.oldest(), Resumed: d.resumed}
}

// Next implements dispatch.Source.
func (d *Dispatcher) Next(ctx context.Context) (run.Wake, error) {
	for {
		d.mu.Lock()
		w, ok := d.queue.pop()
		if ok && d.queue.length > 0 {
			pubsub.Signal(d.ready)
		}
		if d.needsRefill(subqueueOf(w)) {
			pubsub.Signal(d.pollSooner)
		}
		d.mu.Unlock()
		if ok {
			return w, nil
		}
		select {
		case <-d.ready:
		case <-ctx.Done():
			return run.Wake{}, ctx.Err()
		}
	}
}

// Done implements dispatch.Source.
func (d *Dispatcher) Done(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue.done(w)
	if d.queue.length > 0 {
		pubsub.Signal(d.ready)
	}
}

// needsRefill reports whether the store should be polled for more runs: a skipped
// workspace, or the whole queue, runs low.
func (d *Dispatcher) needsRefill(name string) bool {
	if d.skipped[name] && d.queue.queued(name) < refillBelow/2 {
		delete(d.skipped, name)
		d.nextPoll = clock.Steady()
		return true
	}
	return d.more && d.isLow()
}

// isLow reports whether few runs are queued, not counting the workspaces that have
// enough.
func (d *Dispatcher) isLow() bool {
	length := d.queue.length
	for name := range d.queue.subqueues {
		if d.hasEnough(name) {
			length -= d.queue.queued(name)
		}
	}
	return length < refillBelow
}

func (d *Dispatcher) hasEnough(name string) bool {
	return name != isolatedQueue && d.queue.queued(name) >= refillBelow
}
