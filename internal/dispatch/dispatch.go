// Package dispatch is the seam between the store, which knows which runs have
// something to do, and the engine, which does it. How a wake-up travels from
// one to the other is the business of the packages below.
package dispatch

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

// Source hands out runs that have something to do.
type Source interface {
	// Next waits for the next run. It returns an error only when the context
	// has ended.
	Next(ctx context.Context) (run.Wake, error)
	// Done says that a run that was handed out is not worked on any more.
	Done(run.Wake)
}

// Stats is what a dispatcher has done so far, and what waits in its memory.
type Stats struct {
	// Queued is how many runs wait to be handed out, and Oldest since when the
	// first of them does; zero when there is none.
	Queued int
	Oldest time.Time
	// Resumed is how many runs were taken over from nodes that are gone.
	Resumed int64
}
