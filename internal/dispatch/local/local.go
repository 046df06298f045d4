// Package local delivers wake-ups inside one process: a queue that is fair
// between workspaces, and one timer that is set to the next time in the store.
// Waiting runs are rows, not memory.
package local

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// batch is how many due runs are taken from the store at once.
	batch = 1000
	// low is the queue length below which more due runs are taken. A workspace
	// that has more queued by itself is passed over.
	low = 500
	// lookAgain is when runs that were due are looked for once more, in case one
	// of them could not be taken up.
	lookAgain = 5 * time.Second
	// lookAnyway is when the store is looked into although nothing is expected.
	lookAnyway = time.Hour
)

// Store knows the runs that wait.
type Store interface {
	Due(ctx context.Context, now time.Time, except []string, limit int) ([]run.Wake, error)
	NextDue(ctx context.Context, after time.Time) (*time.Time, error)
	// Blame counts a crash against the runs that another node was executing.
	Blame(ctx context.Context, node string) error
	Orphans(ctx context.Context, node, after string, limit int) ([]run.Wake, error)
}

// Dispatcher is a dispatch.Source.
type Dispatcher struct {
	store Store
	node  string
	log   *slog.Logger

	mu       sync.Mutex
	queue    fair
	reserved places
	nextAt   time.Time       // when to look into the store again
	more     bool            // the store has more that is due than was taken
	resumed  int64           // runs of processes that are gone
	passed   map[string]bool // lines that were passed over: there may be more of them
	earlier  chan struct{}   // tells the timer to look sooner
	ready    chan struct{}   // tells Next that there may be something to take
}

// New makes a dispatcher for the runs of one node.
func New(store Store, node string, log *slog.Logger) *Dispatcher {
	return &Dispatcher{
		store: store, node: node, log: log, queue: newFair(), reserved: newPlaces(), passed: map[string]bool{},
		earlier: make(chan struct{}, 1), ready: make(chan struct{}, 1),
	}
}

// Wake takes a wake-up: now, or when its time has come.
func (d *Dispatcher) Wake(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reserved.free(w.RunID)
	now := clock.Now()
	if w.At.After(now) {
		if d.nextAt.IsZero() || w.At.Before(d.nextAt) {
			d.nextAt = w.At
			signal(d.earlier)
		}
		return
	}
	if d.queue.push(w, now) {
		signal(d.ready)
	}
}

// Stats tells what waits and what was done.
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
			signal(d.ready)
		}
		if d.hungry(lineOf(w)) {
			signal(d.earlier)
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
		signal(d.ready)
	}
}

// hungry tells whether the store should be looked into for more: a line has
// become short that was passed over, or the whole queue.
func (d *Dispatcher) hungry(name string) bool {
	if d.passed[name] && d.queue.queued(name) < low/2 {
		delete(d.passed, name)
		d.nextAt = clock.Now()
		return true
	}
	return d.more && d.short()
}

// short tells whether little is queued, apart from the workspaces that have
// enough by themselves.
func (d *Dispatcher) short() bool {
	length := d.queue.length
	for name := range d.queue.lines {
		if d.enough(name) {
			length -= d.queue.queued(name)
		}
	}
	return length < low
}

// enough tells whether a workspace has so much queued that nothing more of it
// need be taken from the store.
func (d *Dispatcher) enough(name string) bool {
	return name != suspects && d.queue.queued(name) >= low
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
