package webhook

import (
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/counter"
)

// Stats describes what the sender has done and is doing.
type Stats struct {
	Attempts map[string]int64
	// Duration is the distribution of response times.
	Duration counter.Snapshot
	// InFlight is the number of attempts in flight, Queued the number of due
	// deliveries queued in memory.
	InFlight, Queued int
}

type counts struct {
	attempts         *counter.Set
	took             *counter.Histogram
	inFlight, queued atomic.Int64
}

// attemptFailed is the outcome of a failed attempt that will be retried. Other
// outcomes are delivery statuses.
const attemptFailed = "failed"

func newCounts() *counts {
	return &counts{
		attempts: counter.NewSet(string(Delivered), attemptFailed, string(Exhausted)),
		took: counter.NewDurations(5*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond,
			500*time.Millisecond, time.Second, 2500*time.Millisecond, 5*time.Second, 10*time.Second, requestTimeout),
	}
}

func (c *counts) attempt(r Report) {
	outcome := string(r.Status)
	if r.Status == Pending {
		outcome = attemptFailed
	}
	c.attempts.Add(outcome)
	c.took.ObserveDuration(r.Attempt.Duration)
}

// Stats returns what the sender has done and is doing.
func (s *Sender) Stats() Stats {
	return Stats{
		Attempts: s.counts.attempts.Counts(), Duration: s.counts.took.Snapshot(),
		InFlight: int(s.counts.inFlight.Load()), Queued: int(s.counts.queued.Load()),
	}
}
