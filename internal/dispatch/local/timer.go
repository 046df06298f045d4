package local

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// Run queues runs when they become due, until the context ends.
func (d *Dispatcher) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			d.poll(ctx)
		case <-d.pollSooner:
		}
		timer.Reset(d.untilNextPoll())
	}
}

// Recover queues the runs that the previous process owned. It must be called before
// Run. There is only one process at a time, so the previous one is dead.
func (d *Dispatcher) Recover(ctx context.Context) error {
	if err := d.recordCrash(ctx); err != nil {
		return err
	}
	after, count := "", 0
	for {
		wakes, err := d.store.Orphans(ctx, d.node, after, batch)
		if err != nil {
			return err
		}
		for _, w := range wakes {
			d.Wake(w)
			after = w.RunID
		}
		count += len(wakes)
		if len(wakes) < batch {
			break
		}
	}
	d.mu.Lock()
	d.resumed += int64(count)
	d.mu.Unlock()
	if count > 0 {
		d.log.Info("resuming runs of the previous process", "count", count)
	}
	return nil
}

// recordCrash counts the crash of the previous process. It retries while the store is
// busy, but not on a full disk, which may last.
func (d *Dispatcher) recordCrash(ctx context.Context) error {
	const pause, attempts = 100 * time.Millisecond, 300
	for n := 1; ; n++ {
		err := d.store.RecordCrash(ctx, d.node)
		if err == nil || ctx.Err() != nil || n == attempts || fault.Is(err, fault.StorageFull) {
			return err
		}
		d.log.Warn("cannot record which runs the previous process was executing; retrying", "error", err)
		time.Sleep(pause)
	}
}

// poll queues the runs that are due and sets the time of the next poll. It resets
// nextPoll before it reads the store, so that a wake-up that arrives in between is
// not lost.
func (d *Dispatcher) poll(ctx context.Context) {
	d.mu.Lock()
	d.nextPoll, d.more = time.Time{}, false
	except := d.skipFull()
	d.mu.Unlock()

	now := clock.Steady()
	due, err := d.store.Due(ctx, now, except, batch)
	if err != nil {
		d.pollFailed(ctx, now, err)
		return
	}
	for _, w := range due {
		d.Wake(w)
	}
	if len(due)+len(except) > 0 {
		d.pollBy(now.Add(recheckDue))
	}
	d.pollBy(now.Add(maxPollInterval))
	switch next, err := d.store.NextDue(ctx, now); {
	case err != nil:
		d.pollFailed(ctx, now, err)
	case next != nil:
		d.pollBy(*next)
	}
	if len(due) == batch {
		d.mu.Lock()
		d.more = true
		d.mu.Unlock()
	}
}

// pollFailed logs the error and polls again soon.
func (d *Dispatcher) pollFailed(ctx context.Context, now time.Time, err error) {
	if ctx.Err() == nil {
		d.log.Error("cannot read the runs that are due", "error", err)
	}
	d.pollBy(now.Add(time.Second))
}

// skipFull returns the workspaces that have enough runs queued, and marks them as
// skipped.
func (d *Dispatcher) skipFull() []string {
	clear(d.skipped)
	var names []string
	for name := range d.queue.subqueues {
		if d.hasEnough(name) {
			d.skipped[name] = true
			names = append(names, name)
		}
	}
	return names
}

// pollBy makes sure that the store is polled by the given time.
func (d *Dispatcher) pollBy(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nextPoll.IsZero() || at.Before(d.nextPoll) {
		d.nextPoll = at
	}
}

func (d *Dispatcher) untilNextPoll() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.more && d.isLow() {
		return 0
	}
	return max(0, clock.UntilSteady(d.nextPoll))
}
