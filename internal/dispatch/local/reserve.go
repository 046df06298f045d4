package local

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

const reservationTime = 10 * time.Second

// reservations are slots in the queue for runs that are about to start.
type reservations struct {
	runs        map[string]reservation
	byWorkspace map[string]int
}

type reservation struct {
	workspaceID string
	until       time.Time
}

func (r *reservations) add(workspaceID, runID string, until time.Time) {
	r.release(runID) // a step may request its run twice
	r.runs[runID] = reservation{workspaceID, until}
	r.byWorkspace[workspaceID]++
}

func (r *reservations) release(runID string) {
	reserved, ok := r.runs[runID]
	if !ok {
		return
	}
	delete(r.runs, runID)
	if r.byWorkspace[reserved.workspaceID]--; r.byWorkspace[reserved.workspaceID] == 0 {
		delete(r.byWorkspace, reserved.workspaceID)
	}
}

func (r *reservations) expire(now time.Time) {
	for runID, reserved := range r.runs {
		if reserved.until.Before(now) {
			r.release(runID)
		}
	}
}

// Reserve reserves a slot for a run that is about to start, unless the workspace
// already has atMost runs queued or reserved. The wake-up of the run takes the slot.
func (d *Dispatcher) Reserve(workspaceID, runID string, atMost int) (node string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := func() bool { return d.queue.queued(workspaceID)+d.reserved.byWorkspace[workspaceID] >= atMost }
	now := clock.Steady()
	if full() {
		d.reserved.expire(now)
	}
	if full() {
		return "", false
	}
	d.reserved.add(workspaceID, runID, now.Add(reservationTime))
	return d.node, true
}

// Unreserve releases the slot of a run that did not start.
func (d *Dispatcher) Unreserve(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reserved.release(runID)
}

// Queued reports whether a run waits to be executed.
func (d *Dispatcher) Queued(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, queued := d.queue.wakes[runID]
	return queued
}
