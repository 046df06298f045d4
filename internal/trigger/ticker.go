package trigger

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/pubsub"
)

const (
	// batchSize is the number of due triggers that are read at once, concurrency
	// the number that is handled at a time.
	batchSize   = 500
	concurrency = 32
	// maxSleep is the longest time between two reads of the store: clocks can
	// change, and other nodes arm triggers too.
	maxSleep = time.Minute
	// RetryDelay is the delay after a failure, fullDelay the one while the disk has no
	// space for new runs.
	RetryDelay = time.Second
	fullDelay  = 10 * time.Second
)

// DueWork defines the work of a ticker: how to read due items and how to handle
// one.
type DueWork[T any] struct {
	Name string
	// Clock returns the time that items are due by: clock.Now, or clock.Steady if they
	// are due after a duration.
	Clock func() time.Time
	Due   func(ctx context.Context, now time.Time, limit int) ([]T, error)
	Next  func(ctx context.Context) (*time.Time, error)
	// Handle handles one item at a time of day. After an error the item is unchanged and
	// due again.
	Handle func(ctx context.Context, item T, now time.Time) error
}

// Ticker handles items when they are due. It uses one timer, set to the earliest
// item. Several nodes may run the same ticker: the conditional write that moves an
// item to its next time lets only one of them win.
type Ticker[T any] struct {
	work DueWork[T]
	log  *slog.Logger

	mu     sync.Mutex
	nextAt time.Time
	woken  chan struct{}
}

// NewTicker returns a ticker that does some work.
func NewTicker[T any](w DueWork[T], log *slog.Logger) *Ticker[T] {
	return &Ticker[T]{work: w, log: log, woken: make(chan struct{}, 1)}
}

// OfType returns the work for triggers of one type, with their due times in
// NextAt.
func OfType(store Store, kind string, now func() time.Time, handle func(ctx context.Context, t Trigger, now time.Time) error) DueWork[Trigger] {
	return DueWork[Trigger]{
		Name: kind, Clock: now,
		Due: func(ctx context.Context, now time.Time, limit int) ([]Trigger, error) {
			return store.DueTriggers(ctx, kind, now, limit)
		},
		Next:   func(ctx context.Context) (*time.Time, error) { return store.NextTrigger(ctx, kind) },
		Handle: handle,
	}
}

// Wake announces that an item is due at a time, possibly before all others.
func (k *Ticker[T]) Wake(at time.Time) {
	if !k.wakeBy(at) {
		return
	}
	pubsub.Signal(k.woken)
}

// Run handles due items until the context ends.
func (k *Ticker[T]) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			k.runDue(ctx)
		case <-k.woken:
		}
		timer.Reset(k.untilNext())
	}
}

// runDue handles everything that is due and determines when to read again. It
// resets nextAt first: a Wake between reading the store and setting the timer is
// not lost.
func (k *Ticker[T]) runDue(ctx context.Context) {
	now := k.work.Clock()
	k.mu.Lock()
	k.nextAt = now.Add(maxSleep)
	k.mu.Unlock()
	for ctx.Err() == nil {
		due, err := k.work.Due(ctx, now, batchSize)
		if err != nil {
			k.readFailed(ctx, now, err)
			return
		}
		switch failures, full := k.handleAll(ctx, due); {
		case failures > 0:
			k.wakeBy(now.Add(RetryDelay))
			return
		case full:
			k.log.Warn("triggers are postponed because the disk is full", "type", k.work.Name)
			k.wakeBy(now.Add(fullDelay))
			return
		}
		if len(due) < batchSize {
			break
		}
	}
	switch next, err := k.work.Next(ctx); {
	case err != nil:
		k.readFailed(ctx, now, err)
	case next != nil:
		k.wakeBy(*next)
	}
}

// handleAll handles due items concurrently, so that they share commits. It returns
// the number of failures, and whether items are postponed because the disk is full.
func (k *Ticker[T]) handleAll(ctx context.Context, due []T) (failed int, full bool) {
	now := clock.Now()
	var (
		failures  atomic.Int64
		postponed atomic.Bool
		workers   sync.WaitGroup
	)
	slots := make(chan struct{}, concurrency)
	for _, item := range due {
		slots <- struct{}{}
		workers.Go(func() {
			defer func() { <-slots }()
			err := k.work.Handle(ctx, item, now)
			switch {
			case fault.Is(err, fault.StorageFull):
				postponed.Store(true)
			case err != nil:
				failures.Add(1)
				if ctx.Err() == nil {
					k.log.Error("cannot fire a trigger", "type", k.work.Name, "error", err)
				}
			}
		})
	}
	workers.Wait()
	return int(failures.Load()), postponed.Load()
}

func (k *Ticker[T]) readFailed(ctx context.Context, now time.Time, err error) {
	if ctx.Err() == nil {
		k.log.Error("cannot read the due triggers", "type", k.work.Name, "error", err)
	}
	k.wakeBy(now.Add(RetryDelay))
}

// wakeBy makes sure that the store is read by the given time. It reports whether
// that is earlier than planned before.
func (k *Ticker[T]) wakeBy(at time.Time) bool {
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
	return min(max(0, k.nextAt.Sub(k.work.Clock())), maxSleep) // the clock may have been set back
}
