package webhook

import (
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/tally"
)

// Stats is what a courier has done so far, and what it is busy with.
type Stats struct {
	// Attempts counts those that were made by what came of them.
	Attempts map[string]int64
	// Duration is how long endpoints took.
	Duration tally.Snapshot
	// InFlight is how many attempts are under way, Queued how many deliveries
	// that are due wait in memory.
	InFlight, Queued int
}

// counts is what the courier counts.
type counts struct {
	attempts         *tally.Set
	took             *tally.Histogram
	inFlight, queued atomic.Int64
}

// attemptFailed is the outcome of an attempt after which another follows. The
// others are those of the delivery.
const attemptFailed = "failed"

func newCounts() *counts {
	return &counts{
		attempts: tally.NewSet(string(Delivered), attemptFailed, string(Exhausted)),
		took: tally.NewTimes(5*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond,
			500*time.Millisecond, time.Second, 2500*time.Millisecond, 5*time.Second, 10*time.Second, patience),
	}
}

func (c *counts) attempt(r Report) {
	outcome := string(r.Status)
	if r.Status == Pending {
		outcome = attemptFailed
	}
	c.attempts.Add(outcome)
	c.took.Took(r.Attempt.Duration)
}

// Stats tells what the courier has done.
func (c *Courier) Stats() Stats {
	return Stats{
		Attempts: c.counts.attempts.Counts(), Duration: c.counts.took.Snapshot(),
		InFlight: int(c.counts.inFlight.Load()), Queued: int(c.counts.queued.Load()),
	}
}
