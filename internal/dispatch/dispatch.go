// Package dispatch defines the interface between the store, which knows which runs
// are due, and the engine, which executes them. Package local implements it for one
// process, cluster/river for one of several nodes.
package dispatch

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

// Dispatcher brings runs that have work to do to the engine.
type Dispatcher interface {
	Source
	run.Queue
	// Wake passes on a run that has work to do, now or later.
	Wake(run.Wake)
	// Nudge is called when an answer has arrived for a run.
	Nudge(runID string)
	// Recover queues the runs of the previous process. It is called before Run.
	Recover(ctx context.Context) error
	// Share keeps one workspace from using all slots of this process.
	Share()
	// Queued reports whether a run is queued in memory and the store does not know.
	Queued(runID string) bool
	// Run dispatches runs until the context ends.
	Run(ctx context.Context) error
	Stats() Stats
}

// Source returns runs to execute.
type Source interface {
	// Next waits for the next run. It only returns an error if the context has ended.
	Next(ctx context.Context) (run.Wake, error)
	// Done tells the source that a run returned by Next is no longer executing.
	Done(run.Wake)
}

// Stats are statistics of a dispatcher.
type Stats struct {
	// Queued is the number of runs queued in memory. Oldest is when the oldest of them
	// was queued; zero if there is none.
	Queued int
	Oldest time.Time
	// Resumed counts the runs that were taken over from dead processes.
	Resumed int64
}
