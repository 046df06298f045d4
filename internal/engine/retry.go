package engine

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stepmill/stepmill/internal/workflow"
)

const (
	// minBackoff is the minimum pause before a retry.
	minBackoff = 10 * time.Millisecond
	// maxRetryAfter limits the pause that a server can request.
	maxRetryAfter = time.Hour
)

// backoff returns the pause after a failed attempt: a random time up to a bound that
// grows with each attempt, so that steps that failed together do not retry together.
// A pause that the server requested is respected up to maxRetryAfter. The result is
// positive and at most a day.
func backoff(p workflow.Policy, attempt int, retryAfter time.Duration) time.Duration {
	bound := float64(p.Initial) * math.Pow(p.Factor, float64(max(0, attempt-1)))
	if math.IsNaN(bound) || bound > float64(p.MaxDelay) {
		bound = float64(p.MaxDelay)
	}
	delay := time.Duration(rand.Float64() * bound)
	if retryAfter > delay {
		delay = min(retryAfter, maxRetryAfter)
	}
	return min(max(delay, minBackoff), workflow.MaxDelay)
}
