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
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// batch is how many due runs are taken from the store at once.
	batch = 1000
	// low is the queue length below which more due runs are taken.
	low = 500
	// lookAgain is when runs that were due are looked for once more, in case one
	// of them could not be taken up.
	lookAgain = 5 * time.Second
	// lookAnyway is when the store is looked into although nothing is expected.
	lookAnyway = time.Hour
)

// Store knows the runs that wait.
type Store interface {
	Due(ctx context.Context, now time.Time, limit int) ([]run.Wake, error)
	NextDue(ctx context.Context, after time.Time) (*time.Time, error)
	Orphans(ctx context.Context, node, after string, limit int) ([]run.Wake, error)
}

// Dispatcher is a dispatch.Source.
type Dispatcher struct {
	store Store
	node  string
	log   *slog.Logger

	mu      sync.Mutex
	queue   fair
	nextAt  time.Time     // when to look into the store again
	more    bool          // the store has more that is due than was taken
	earlier chan struct{} // tells the timer to look sooner
	ready   chan struct{} // tells Next that the queue is not empty
}

// New makes a dispatcher for the runs of one node.
func New(store Store, node string, log *slog.Logger) *Dispatcher {
	return &Dispatcher{
		store: store, node: node, log: log, queue: newFair(),
		earlier: make(chan struct{}, 1), ready: make(chan struct{}, 1),
	}
}

// Wake takes a wake-up: now, or when its time has come.
func (d *Dispatcher) Wake(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.At.After(clock.Now()) {
		if d.nextAt.IsZero() || w.At.Before(d.nextAt) {
			d.nextAt = w.At
			signal(d.earlier)
		}
		return
	}
	if d.queue.push(w) {
		signal(d.ready)
	}
}

// Next implements dispatch.Source.
func (d *Dispatcher) Next(ctx context.Context) (run.Wake, error) {
	for {
		d.mu.Lock()
		w, ok := d.queue.pop()
		if d.queue.length > 0 {
			signal(d.ready)
		}
		if d.more && d.queue.length < low {
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

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
