package webhook

import (
	"math/rand/v2"
	"time"
)

// delays are the delays between the attempts of a delivery, about 75 hours in
// total.
var delays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is the number of attempts of a delivery.
var MaxAttempts = len(delays) + 1

const (
	// jitter varies delays in both directions, so that deliveries that failed together
	// are not retried together.
	jitter = 0.2
	// overloadDelay is the minimum delay after a 429 or a timeout.
	overloadDelay = time.Minute
)

// nextDelay returns how long to wait after a failed attempt, or false if it was the
// last. A delay that the endpoint asked for is honored between the scheduled delay
// and twice that.
func nextDelay(attempt int, overloaded bool, asked time.Duration) (time.Duration, bool) {
	if attempt < 1 || attempt > len(delays) {
		return 0, false
	}
	base := delays[attempt-1]
	delay := time.Duration(float64(base) * (1 - jitter + 2*jitter*rand.Float64()))
	if asked > 0 {
		delay = min(max(asked, base), 2*base)
	}
	if overloaded && delay < overloadDelay {
		delay = time.Duration(float64(overloadDelay) * (1 + jitter*rand.Float64()))
	}
	return delay, true
}
