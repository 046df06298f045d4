package engine

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	// shortest keeps a repetition from being no pause at all.
	shortest = 10 * time.Millisecond
	// longestAsked bounds what the other side can ask for.
	longestAsked = time.Hour
)

// backoff is how long to wait after an attempt failed: a random time up to a
// bound that grows with each attempt, so that many steps that failed together
// do not come back together. What the other side asked for is honoured, within
// reason. The result is always positive and never more than a day.
func backoff(p workflow.Policy, attempt int, asked time.Duration) time.Duration {
	bound := float64(p.Initial) * math.Pow(p.Factor, float64(max(0, attempt-1)))
	if math.IsNaN(bound) || bound > float64(p.MaxDelay) {
		bound = float64(p.MaxDelay)
	}
	delay := time.Duration(rand.Float64() * bound)
	if asked > delay {
		delay = min(asked, longestAsked)
	}
	return min(max(delay, shortest), workflow.MaxDelay)
}
