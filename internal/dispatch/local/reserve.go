package local

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// reservationTime is after which a place that was reserved and not taken is
// free again.
const reservationTime = 10 * time.Second

// places are those in the queue that are kept for runs about to start.
type places struct {
	runs        map[string]place
	byWorkspace map[string]int
}

type place struct {
	workspaceID string
	until       time.Time
}

func newPlaces() places {
	return places{runs: map[string]place{}, byWorkspace: map[string]int{}}
}

func (p *places) take(workspaceID, runID string, until time.Time) {
	p.free(runID) // the run of a step may be asked for twice
	p.runs[runID] = place{workspaceID, until}
	p.byWorkspace[workspaceID]++
}

func (p *places) free(runID string) {
	taken, ok := p.runs[runID]
	if !ok {
		return
	}
	delete(p.runs, runID)
	if p.byWorkspace[taken.workspaceID]--; p.byWorkspace[taken.workspaceID] == 0 {
		delete(p.byWorkspace, taken.workspaceID)
	}
}

func (p *places) expire(now time.Time) {
	for runID, taken := range p.runs {
		if taken.until.Before(now) {
			p.free(runID)
		}
	}
}

// Reserve keeps a place for a run that is about to start, unless the workspace
// has that many queued or about to be. The wake-up of the run takes the place.
func (d *Dispatcher) Reserve(workspaceID, runID string, atMost int) (node string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	full := func() bool { return d.queue.queued(workspaceID)+d.reserved.byWorkspace[workspaceID] >= atMost }
	now := clock.Now()
	if full() {
		d.reserved.expire(now)
	}
	if full() {
		return "", false
	}
	d.reserved.take(workspaceID, runID, now.Add(reservationTime))
	return d.node, true
}

// Unreserve gives back the place of a run that did not start.
func (d *Dispatcher) Unreserve(runID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reserved.free(runID)
}

// Queued tells whether a run waits to be executed.
func (d *Dispatcher) Queued(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, queued := d.queue.wakes[runID]
	return queued
}
