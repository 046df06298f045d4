package river

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
)

const reservationTime = 15 * time.Second

// Wake queues a run that this node owns, or sets a local timer for it.
func (d *Dispatcher) Wake(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reserved, w.RunID)
	if !w.Owned { // not due yet
		d.timers.add(w)
		pubsub.Signal(d.timerChanged)
		return
	}
	d.queue(w)
}

// Watch makes sure that a run has a local timer for the time in the store.
func (d *Dispatcher) Watch(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claiming[w.RunID] || d.timers.has(w.RunID, w.At) {
		return
	}
	d.timers.add(w)
	pubsub.Signal(d.timerChanged)
}

// Resume queues a run that this node owns but does not execute. Activating the run
// checks whether the node still owns it.
func (d *Dispatcher) Resume(w run.Wake) {
	w.Owned = false
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue(w)
}

func (d *Dispatcher) queue(w run.Wake) {
	if w.Isolated() {
		d.isolated++
	}
	d.ready = append(d.ready, w)
	pubsub.Signal(d.available)
}

// Next implements dispatch.Source.
func (d *Dispatcher) Next(ctx context.Context) (run.Wake, error) {
	for {
		d.mu.Lock()
		if len(d.ready) > 0 && !d.draining {
			w := d.ready[0]
			d.ready[0] = run.Wake{}
			if d.ready = d.ready[1:]; len(d.ready) > 0 {
				pubsub.Signal(d.available)
			}
			d.inFlight++
			d.mu.Unlock()
			return w, nil
		}
		d.mu.Unlock()
		select {
		case <-d.available:
		case <-ctx.Done():
			return run.Wake{}, ctx.Err()
		}
	}
}

// Done implements dispatch.Source.
func (d *Dispatcher) Done(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight--
	if w.Isolated() {
		d.isolated--
	}
	pubsub.Signal(d.capacityFreed)
}

func (d *Dispatcher) used() int { return d.inFlight + len(d.ready) + len(d.reserved) }

// isolatedRuns returns how many of these slots are for isolated runs.
func (d *Dispatcher) isolatedRuns() int {
	n := d.isolated
	for _, p := range d.reserved {
		if p.isolated {
			n++
		}
	}
	return n
}

// reserve reserves a slot for a run if fewer than below are used. Only one slot at a
// time is for an isolated run.
func (d *Dispatcher) reserve(runID string, below int, isolated bool) bool {
	if d.Draining() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := clock.Steady()
	if d.used() >= below || isolated {
		maps.DeleteFunc(d.reserved, func(_ string, p reservation) bool { return p.until.Before(now) })
	}
	if d.used() >= below || isolated && d.isolatedRuns() > 0 {
		return false
	}
	d.reserved[runID] = reservation{now.Add(reservationTime), isolated}
	return true
}

// Reserve reserves a slot on this node for a run that is about to start. If there is
// none, any node may execute the run. The store enforces the limit of queued runs.
func (d *Dispatcher) Reserve(_, runID string, _ int) (node string, ok bool) {
	if d.reserve(runID, d.config.Capacity, false) {
		return d.config.Node, true
	}
	return "", true
}

// ReserveShared reserves a slot for a throttled run of a workspace. It leaves the last
// quarter of the slots to other workspaces.
func (d *Dispatcher) ReserveShared(w run.Wake) bool {
	return d.reserve(w.RunID, d.config.Capacity*3/4, false)
}

// Unreserve releases the slot of a run that does not arrive.
func (d *Dispatcher) Unreserve(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reserved, runID)
	pubsub.Signal(d.capacityFreed)
}

// Has reports whether a run is on this node and not executing.
func (d *Dispatcher) Has(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A run with a reservation may already be owned, before Wake is called for it.
	if p, ok := d.reserved[runID]; ok && p.until.After(clock.Steady()) {
		return true
	}
	return d.claiming[runID] || slices.ContainsFunc(d.ready, func(w run.Wake) bool { return w.RunID == runID })
}

// Nudge makes a run with a local timer due, because an answer has arrived for it.
func (d *Dispatcher) Nudge(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timers.makeDue(runID) {
		pubsub.Signal(d.timerChanged)
	}
}

// Recover implements dispatch.Dispatcher. Other nodes take over the runs of a dead one.
func (d *Dispatcher) Recover(context.Context) error { return nil }

// Share implements dispatch.Dispatcher. The queue limits the runs of a workspace.
func (d *Dispatcher) Share() {}

// Queued implements dispatch.Dispatcher. The store knows which runs are queued.
func (d *Dispatcher) Queued(string) bool { return false }

// Stats returns statistics of this node. The store knows the other queued runs.
func (d *Dispatcher) Stats() dispatch.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	stats := dispatch.Stats{Queued: len(d.ready)}
	for _, w := range d.ready {
		if !w.At.IsZero() && (stats.Oldest.IsZero() || w.At.Before(stats.Oldest)) {
			stats.Oldest = w.At
		}
	}
	return stats
}

// Draining reports whether this node claims no more runs, because it stops or
// because its last heartbeat is too old.
func (d *Dispatcher) Draining() bool {
	if !d.config.HoldsLease() {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}

// Forget drops all queued runs and timers, because other nodes own the runs now.
func (d *Dispatcher) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
}

func (d *Dispatcher) forget() {
	for _, w := range d.ready {
		if w.Isolated() {
			d.isolated--
		}
	}
	d.ready, d.timers = nil, timers{}
	clear(d.reserved)
}
