package engine

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/test/lane"
)

func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		p := workflow.Policy{
			MaxAttempts: 20,
			Initial:     time.Duration(rapid.Int64Range(1, int64(workflow.MaxDelay)).Draw(t, "initial")),
			Factor:      rapid.Float64Range(1, 10).Draw(t, "factor"),
			MaxDelay:    time.Duration(rapid.Int64Range(1, int64(workflow.MaxDelay)).Draw(t, "max")),
		}
		attempt := rapid.IntRange(-5, 10_000).Draw(t, "attempt")
		retryAfter := time.Duration(rapid.Int64Range(math.MinInt64, math.MaxInt64).Draw(t, "asked"))
		delay := backoff(p, attempt, retryAfter)
		if delay < minBackoff || delay > workflow.MaxDelay {
			t.Fatalf("%s", delay)
		}
		if retryAfter <= 0 && delay > max(p.MaxDelay, minBackoff) {
			t.Fatalf("%s is more than the bound %s", delay, p.MaxDelay)
		}
		if wanted := min(retryAfter, maxRetryAfter); delay < wanted {
			t.Fatalf("%s is less than the requested %s", delay, wanted)
		}
	})
}

// TestBackoffOfEveryAttempt checks all possible attempts, with hostile Retry-After values
// and extreme policies.
func TestBackoffOfEveryAttempt(t *testing.T) {
	t.Parallel()
	policies := []workflow.Policy{
		{Initial: time.Second, Factor: 2, MaxDelay: 5 * time.Minute},
		{Initial: 1, Factor: 1, MaxDelay: 1},
		{Initial: workflow.MaxDelay, Factor: 10, MaxDelay: workflow.MaxDelay},
		{Initial: math.MaxInt64, Factor: math.MaxFloat64, MaxDelay: math.MaxInt64},
		{Initial: time.Second, Factor: math.Inf(1), MaxDelay: time.Hour},
		{Initial: time.Second, Factor: math.NaN(), MaxDelay: time.Hour},
		{Initial: 0, Factor: math.Inf(1), MaxDelay: time.Hour},
	}
	retryAfter := []time.Duration{0, 1, -1, math.MinInt64, math.MaxInt64, time.Minute, -time.Hour, 366 * 24 * time.Hour}
	for _, p := range policies {
		for attempt := 1; attempt <= 10_000; attempt++ {
			for _, a := range retryAfter {
				if delay := backoff(p, attempt, a); delay < minBackoff || delay > workflow.MaxDelay || delay < min(a, maxRetryAfter) {
					t.Fatalf("%+v, attempt %d, requested %s: %s", p, attempt, a, delay)
				}
			}
		}
	}
}

// TestBackoffSpreadsRetries draws a thousand pauses.
func TestBackoffSpreadsRetries(t *testing.T) {
	t.Parallel()
	p := workflow.Policy{MaxAttempts: 5, Initial: 16 * time.Second, Factor: 2, MaxDelay: 5 * time.Minute}
	perSecond := make([]int, 16)
	for range 16_000 {
		perSecond[min(15, int(backoff(p, 1, 0)/time.Second))]++
	}
	for second, count := range perSecond {
		if count > 3000 || count < 300 {
			t.Errorf("%d of 16000 retry in second %d", count, second)
		}
	}
}
