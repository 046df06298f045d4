package river

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/run"
)

// reservationTime is after which a place that was kept and not taken is free
// again.
const reservationTime = 15 * time.Second

// Wake takes a run that is in the hands of this node: to be worked on, or to be
// watched until its time has come.
func (d *Dispatcher) Wake(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, w.RunID)
	if !w.Owned { // its time is still to come
		d.timers.add(w)
		signal(d.earlier)
		return
	}
	d.queue(w)
}

// Watch makes sure that a run is watched that this node has to watch, by the time
// that the store knows.
func (d *Dispatcher) Watch(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taking[w.RunID] || d.timers.has(w.RunID, w.At) {
		return
	}
	d.timers.add(w)
	signal(d.earlier)
}

// TakeUp works on a run that is ours and that nobody works on: whether it still
// is ours is found out when it is activated.
func (d *Dispatcher) TakeUp(w run.Wake) {
	w.Owned = false
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue(w)
}

// queue has a run worked on.
func (d *Dispatcher) queue(w run.Wake) {
	if w.Isolated() {
		d.suspect++
	}
	d.ready = append(d.ready, w)
	signal(d.more)
}

// Next implements dispatch.Source.
func (d *Dispatcher) Next(ctx context.Context) (run.Wake, error) {
	for {
		d.mu.Lock()
		if len(d.ready) > 0 && !d.leaving {
			w := d.ready[0]
			d.ready[0] = run.Wake{}
			if d.ready = d.ready[1:]; len(d.ready) > 0 {
				signal(d.more)
			}
			d.out++
			d.mu.Unlock()
			return w, nil
		}
		d.mu.Unlock()
		select {
		case <-d.more:
		case <-ctx.Done():
			return run.Wake{}, ctx.Err()
		}
	}
}

// Done implements dispatch.Source.
func (d *Dispatcher) Done(w run.Wake) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out--
	if w.Isolated() {
		d.suspect--
	}
	signal(d.room)
}

// used is how many places of this node are taken or kept.
func (d *Dispatcher) used() int { return d.out + len(d.ready) + len(d.kept) }

// suspects is how many of them are for runs under suspicion.
func (d *Dispatcher) suspects() int {
	n := d.suspect
	for _, p := range d.kept {
		if p.suspect {
			n++
		}
	}
	return n
}

// reserve keeps a place for a run, if fewer than that many are taken. Of those
// under suspicion there is one at a time.
func (d *Dispatcher) reserve(runID string, below int, suspect bool) bool {
	if d.Leaving() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := clock.Now()
	if d.used() >= below || suspect {
		maps.DeleteFunc(d.kept, func(_ string, p place) bool { return p.until.Before(now) })
	}
	if d.used() >= below || suspect && d.suspects() > 0 {
		return false
	}
	d.kept[runID] = place{now.Add(reservationTime), suspect}
	return true
}

// Reserve keeps a place on this node for a run that is about to start. Without
// room here, the run goes to another node; how many may wait is the store's to
// say.
func (d *Dispatcher) Reserve(_, runID string, _ int) (node string, ok bool) {
	if d.reserve(runID, d.config.Capacity, false) {
		return d.config.Node, true
	}
	return "", true
}

// Room keeps a place for a run that this node may take over from the queue of
// its workspace. The last places are for those of others.
func (d *Dispatcher) Room(w run.Wake) bool {
	return d.reserve(w.RunID, d.config.Capacity*3/4, false)
}

// Unreserve gives back the place of a run that does not come.
func (d *Dispatcher) Unreserve(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, runID)
	signal(d.room)
}

// Queued tells whether a run waits here to be executed. Those that wait for room
// are known to the store.
func (d *Dispatcher) Queued(string) bool { return false }

// Has tells whether a run is here and not being worked on.
func (d *Dispatcher) Has(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	// What a place is kept for may have come without anybody being told.
	if p, ok := d.kept[runID]; ok && p.until.After(clock.Now()) {
		return true
	}
	return d.taking[runID] || slices.ContainsFunc(d.ready, func(w run.Wake) bool { return w.RunID == runID })
}

// Stir takes up a run that is watched, at once: something has come for it.
func (d *Dispatcher) Stir(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timers.hurry(runID) {
		signal(d.earlier)
	}
}

// Stats tells what waits here. Runs that wait elsewhere are known to the store.
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

// Leaving tells that this node takes up nothing more: it stops, or it was not
// seen for too long and others take what it has.
func (d *Dispatcher) Leaving() bool {
	if !d.config.Trusted() {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.leaving
}

// Forget drops everything that was to be worked on here: others have it now.
func (d *Dispatcher) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
}

func (d *Dispatcher) forget() {
	for _, w := range d.ready {
		if w.Isolated() {
			d.suspect--
		}
	}
	d.ready, d.timers = nil, timers{}
	clear(d.kept)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
