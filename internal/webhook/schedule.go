package webhook

import (
	"math/rand/v2"
	"time"
)

// delays are the times between the attempts of a delivery: the second attempt
// comes after the first of them. All in all about 75 hours.
var delays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is how often a delivery is tried.
var MaxAttempts = len(delays) + 1

const (
	// spread is how much a delay varies in either direction, so that what failed
	// together does not come back together.
	spread = 0.2
	// breather is the least delay after an endpoint said that it is too much, or
	// did not answer in time.
	breather = time.Minute
)

// nextDelay is how long to wait after an attempt failed; false when it was the
// last. What the endpoint asked for, zero when nothing, counts between the
// planned delay and twice that.
func nextDelay(attempt int, overloaded bool, asked time.Duration) (time.Duration, bool) {
	if attempt < 1 || attempt > len(delays) {
		return 0, false
	}
	base := delays[attempt-1]
	delay := time.Duration(float64(base) * (1 - spread + 2*spread*rand.Float64()))
	if asked > 0 {
		delay = min(max(asked, base), 2*base)
	}
	if overloaded && delay < breather {
		delay = time.Duration(float64(breather) * (1 + spread*rand.Float64()))
	}
	return delay, true
}
