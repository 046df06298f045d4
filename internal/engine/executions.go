package engine

import (
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// executions are the steps of a run that execute actions with effects, and the time
// that they take.
type executions struct {
	pending   []stepRef             // start after the next commit
	inFlight  map[*run.Step]stepRef // currently executing
	results   chan result
	busySince time.Time     // since when inFlight is not empty, by the monotonic clock
	ran       time.Duration // execution time before busySince
	limit     time.Duration // of the execution time
}

func newExecutions(ran, limit time.Duration) executions {
	return executions{inFlight: map[*run.Step]stepRef{}, results: make(chan result), ran: ran, limit: limit}
}

// add makes a step start after the next commit.
func (x *executions) add(p stepRef) {
	if !slices.Contains(x.pending, p) {
		x.pending = append(x.pending, p)
	}
}

// begin marks a step as executing.
func (x *executions) begin(p stepRef) {
	if len(x.inFlight) == 0 {
		x.busySince = clock.Monotonic()
	}
	x.inFlight[p.step()] = p
}

// end removes a step that is no longer executing.
func (x *executions) end(step *run.Step) {
	if !x.has(step) {
		return
	}
	x.ran = x.time()
	x.busySince = clock.Monotonic()
	delete(x.inFlight, step)
}

// has reports whether a step is executing.
func (x *executions) has(step *run.Step) bool {
	_, inFlight := x.inFlight[step]
	return inFlight
}

// paths lists the paths of the steps that execute after the next commit.
func (x *executions) paths() []string {
	var paths []string
	for _, p := range x.pending {
		paths = append(paths, p.step().Path)
	}
	for step := range x.inFlight {
		paths = append(paths, step.Path)
	}
	slices.Sort(paths)
	return paths
}

// time returns the total time for which steps have been executed.
func (x *executions) time() time.Duration {
	if len(x.inFlight) == 0 {
		return x.ran
	}
	return x.ran + time.Since(x.busySince)
}

// limitReached reports whether the run has steps to execute but no time left.
func (x *executions) limitReached() bool {
	return len(x.pending)+len(x.inFlight) > 0 && x.time() >= x.limit
}

// remaining returns how long the steps in flight may take before the run exceeds its
// timeout.
func (x *executions) remaining() time.Duration {
	if len(x.inFlight) == 0 {
		return x.limit
	}
	return x.limit - x.time()
}
