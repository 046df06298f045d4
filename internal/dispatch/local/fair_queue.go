package local

import (
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

// fairQueue is a round-robin queue over workspaces: a workspace with one run does not
// wait for the ten thousand of another, and none has more runs in flight than its
// plan and its share of the slots allow. Within a workspace it is first in, first out.
// A run is queued at most once, with its latest wake-up.
type fairQueue struct {
	// share is how many runs of one workspace may be in flight, whatever its plan.
	share      int
	subqueues  map[string]*subqueue
	roundRobin []string            // names of subqueues, next first
	wakes      map[string]run.Wake // by run id
	length     int
	inFlight   map[string]int // number of runs by subqueue
}

type subqueue struct {
	runs []queued
	head int
}

type queued struct {
	runID string
	since time.Time
}

// isolatedQueue is the subqueue of all runs that are executed in isolation.
const isolatedQueue = "isolated"

func subqueueOf(w run.Wake) string {
	if w.Isolated() {
		return isolatedQueue
	}
	return w.WorkspaceID
}

// concurrencyLimit returns how many runs of that subqueue may be in flight.
func (f *fairQueue) concurrencyLimit(w run.Wake) int {
	if w.Isolated() {
		return 1
	}
	return min(w.Plan.Limits().ConcurrentRuns, f.share)
}

// push queues a wake-up. It returns false if the run is already queued.
func (f *fairQueue) push(w run.Wake, now time.Time) bool {
	if previous, ok := f.wakes[w.RunID]; ok {
		switch {
		case w.Epoch <= previous.Epoch:
			return false
		case subqueueOf(w) == subqueueOf(previous):
			f.wakes[w.RunID] = w
			return false
		}
		f.remove(previous)
	}
	f.wakes[w.RunID] = w
	f.length++
	name := subqueueOf(w)
	l := f.subqueues[name]
	if l == nil {
		l = &subqueue{}
		f.subqueues[name] = l
		f.roundRobin = append(f.roundRobin, name)
	}
	l.runs = append(l.runs, queued{w.RunID, now})
	return true
}

// pop removes the next run of the first subqueue below its concurrency limit.
func (f *fairQueue) pop() (run.Wake, bool) {
	for i, name := range f.roundRobin {
		l := f.subqueues[name]
		w := f.wakes[l.runs[l.head].runID]
		if f.inFlight[name] >= f.concurrencyLimit(w) {
			continue
		}
		f.roundRobin = append(f.roundRobin[:i], f.roundRobin[i+1:]...)
		l.head++
		if l.head == len(l.runs) {
			delete(f.subqueues, name)
		} else {
			f.roundRobin = append(f.roundRobin, name)
			l.compact()
		}
		delete(f.wakes, w.RunID)
		f.length--
		f.inFlight[name]++
		return w, true
	}
	return run.Wake{}, false
}

// remove removes a run from its subqueue. It is linear, but rarely needed.
func (f *fairQueue) remove(w run.Wake) {
	name := subqueueOf(w)
	l := f.subqueues[name]
	l.runs = slices.DeleteFunc(l.runs[l.head:], func(q queued) bool { return q.runID == w.RunID })
	l.head = 0
	if len(l.runs) == 0 {
		delete(f.subqueues, name)
		f.roundRobin = slices.DeleteFunc(f.roundRobin, func(other string) bool { return other == name })
	}
	delete(f.wakes, w.RunID)
	f.length--
}

func (f *fairQueue) done(w run.Wake) {
	name := subqueueOf(w)
	if f.inFlight[name]--; f.inFlight[name] <= 0 {
		delete(f.inFlight, name)
	}
}

func (f *fairQueue) queued(name string) int {
	l := f.subqueues[name]
	if l == nil {
		return 0
	}
	return len(l.runs) - l.head
}

// oldest returns the time at which the oldest run was queued; zero if the queue is
// empty. The first run of a subqueue is its oldest.
func (f *fairQueue) oldest() time.Time {
	var oldest time.Time
	for _, l := range f.subqueues {
		if since := l.runs[l.head].since; oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// compact frees the memory of removed runs once they are the majority.
func (l *subqueue) compact() {
	if l.head > 64 && l.head*2 > len(l.runs) {
		l.runs = append([]queued(nil), l.runs[l.head:]...)
		l.head = 0
	}
}
