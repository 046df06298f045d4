package trigger

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

const (
	// batch is how many triggers that are due are read at once, width how many of
	// them are worked on at a time.
	batch = 500
	width = 32
	// lookAnyway is when the store is looked into although nothing is expected:
	// clocks are set, and other nodes arm triggers too.
	lookAnyway = time.Minute
	// lookAgain is when what failed is tried again.
	lookAgain = time.Second
)

// work is what a ticker does: things that are due at a time, how to read them
// and what to do with one.
type work[T any] struct {
	name string
	due  func(ctx context.Context, now time.Time, limit int) ([]T, error)
	next func(ctx context.Context) (*time.Time, error)
	// handle does what is to be done for one. After an error it is as it was, and
	// its turn comes again.
	handle func(ctx context.Context, item T, now time.Time) error
}

// Ticker works on things when their time comes. However many there are, it waits
// with one timer, set to the earliest. Several nodes may do the same: it is the
// write that moves a thing on that decides who was first.
type Ticker[T any] struct {
	work[T]
	log *slog.Logger

	mu      sync.Mutex
	nextAt  time.Time
	earlier chan struct{}
}

func newTicker[T any](w work[T], log *slog.Logger) *Ticker[T] {
	return &Ticker[T]{work: w, log: log, earlier: make(chan struct{}, 1)}
}

// ofType is the work on triggers of one type.
func ofType(store Store, kind string, handle func(ctx context.Context, t Trigger, now time.Time) error) work[Trigger] {
	return work[Trigger]{
		name: kind,
		due: func(ctx context.Context, now time.Time, limit int) ([]Trigger, error) {
			return store.DueTriggers(ctx, kind, now, limit)
		},
		next:   func(ctx context.Context) (*time.Time, error) { return store.NextTrigger(ctx, kind) },
		handle: handle,
	}
}

// Wake says that a trigger is due at a time, maybe before all others.
func (k *Ticker[T]) Wake(at time.Time) {
	if !k.lookBy(at) {
		return
	}
	select {
	case k.earlier <- struct{}{}:
	default:
	}
}

// Run works until the context ends.
func (k *Ticker[T]) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			k.round(ctx)
		case <-k.earlier:
		}
		timer.Reset(k.untilNext())
	}
}

// round works on all that is due and finds out when to look again. From its
// first moment on, Wake moves nextAt: nothing falls between the look into the
// store and the setting of the timer.
func (k *Ticker[T]) round(ctx context.Context) {
	now := clock.Now()
	k.mu.Lock()
	k.nextAt = now.Add(lookAnyway)
	k.mu.Unlock()
	for ctx.Err() == nil {
		due, err := k.due(ctx, now, batch)
		if err != nil {
			k.failed(ctx, now, err)
			return
		}
		if failures := k.handleAll(ctx, due, now); failures > 0 {
			k.lookBy(now.Add(lookAgain))
			return
		}
		if len(due) < batch {
			break
		}
	}
	switch next, err := k.next(ctx); {
	case err != nil:
		k.failed(ctx, now, err)
	case next != nil:
		k.lookBy(*next)
	}
}

// handleAll handles what is due, several at a time so that they share commits. It
// answers how many failed.
func (k *Ticker[T]) handleAll(ctx context.Context, due []T, now time.Time) int {
	var (
		failures atomic.Int64
		workers  sync.WaitGroup
	)
	places := make(chan struct{}, width)
	for _, item := range due {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			if err := k.handle(ctx, item, now); err != nil {
				failures.Add(1)
				if ctx.Err() == nil {
					k.log.Error("cannot fire a trigger", "type", k.name, "error", err)
				}
			}
		})
	}
	workers.Wait()
	return int(failures.Load())
}

func (k *Ticker[T]) failed(ctx context.Context, now time.Time, err error) {
	if ctx.Err() == nil {
		k.log.Error("cannot read the triggers that are due", "type", k.name, "error", err)
	}
	k.lookBy(now.Add(lookAgain))
}

// lookBy makes sure that the store is looked into by a time. It answers whether
// that is sooner than before.
func (k *Ticker[T]) lookBy(at time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	sooner := k.nextAt.IsZero() || at.Before(k.nextAt)
	if sooner {
		k.nextAt = at
	}
	return sooner
}

func (k *Ticker[T]) untilNext() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(0, clock.Until(k.nextAt))
}
