package local

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// Run queues the runs whose time comes, until the context ends.
func (d *Dispatcher) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			d.collect(ctx)
		case <-d.earlier:
		}
		timer.Reset(d.untilNext())
	}
}

// Recover queues every run that another process held, before Run: on one machine
// that process is gone.
func (d *Dispatcher) Recover(ctx context.Context) error {
	if err := d.blame(ctx); err != nil {
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
		d.log.Info("resuming runs of the last process", "count", count)
	}
	return nil
}

// blame counts the crash of the last process. A store that is busy just now is
// asked again.
func (d *Dispatcher) blame(ctx context.Context) error {
	const pause, attempts = 100 * time.Millisecond, 300
	for n := 1; ; n++ {
		err := d.store.Blame(ctx, d.node)
		if err == nil || ctx.Err() != nil || n == attempts {
			return err
		}
		d.log.Warn("cannot note which runs the last process was executing; trying again", "error", err)
		time.Sleep(pause)
	}
}

// collect queues what is due and works out when to look again. From its first
// moment on, wake-ups for later times move nextAt: none falls between the look
// into the store and the setting of the timer.
func (d *Dispatcher) collect(ctx context.Context) {
	d.mu.Lock()
	d.nextAt, d.more = time.Time{}, false
	except := d.passOver()
	d.mu.Unlock()

	now := clock.Now()
	due, err := d.store.Due(ctx, now, except, batch)
	if err != nil {
		d.failed(ctx, now, err)
		return
	}
	for _, w := range due {
		d.Wake(w)
	}
	if len(due)+len(except) > 0 {
		d.lookAt(now.Add(lookAgain))
	}
	d.lookAt(now.Add(lookAnyway))
	switch next, err := d.store.NextDue(ctx, now); {
	case err != nil:
		d.failed(ctx, now, err)
	case next != nil:
		d.lookAt(*next)
	}
	if len(due) == batch {
		d.mu.Lock()
		d.more = true
		d.mu.Unlock()
	}
}

// failed looks again soon: the store did not answer.
func (d *Dispatcher) failed(ctx context.Context, now time.Time, err error) {
	if ctx.Err() == nil {
		d.log.Error("cannot read the runs that are due", "error", err)
	}
	d.lookAt(now.Add(time.Second))
}

// passOver notes the workspaces that have enough queued: nothing of theirs is
// taken until that has become less.
func (d *Dispatcher) passOver() []string {
	clear(d.passed)
	var names []string
	for name := range d.queue.lines {
		if d.enough(name) {
			d.passed[name] = true
			names = append(names, name)
		}
	}
	return names
}

// lookAt makes sure that the store is looked into by that time.
func (d *Dispatcher) lookAt(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nextAt.IsZero() || at.Before(d.nextAt) {
		d.nextAt = at
	}
}

func (d *Dispatcher) untilNext() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.more && d.short() {
		return 0
	}
	return max(0, clock.Until(d.nextAt))
}
