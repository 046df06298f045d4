package account

import (
	"fmt"
	"testing"
	"time"
)

// At most maxFailures are recorded per user and window, and the last one says
// until when others are omitted.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	f, now := newFailures(), time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for range 3 * maxFailures {
		f.add("usr_a", ClientInfo{}, now)
	}
	f.add("usr_b", ClientInfo{}, now)
	f.add("usr_a", ClientInfo{}, now.Add(failureWindow-1))
	taken := f.take(now)
	if len(taken) != maxFailures+1 {
		t.Fatalf("%d failures are recorded", len(taken))
	}
	for i, failed := range taken[:maxFailures] {
		if want := i == maxFailures-1; failed.omittedUntil.Equal(now.Add(failureWindow)) != want || failed.omittedUntil.IsZero() == want {
			t.Errorf("failure %d: others are omitted until %v", i, failed.omittedUntil)
		}
	}
	next := now.Add(failureWindow)
	f.add("usr_a", ClientInfo{}, next)
	if taken := f.take(next); len(taken) != 1 {
		t.Errorf("%d failures are recorded in the next window", len(taken))
	}
	if len(f.windows) != 1 {
		t.Errorf("windows that are over are kept: %v", f.windows)
	}
	for i := range 2 * maxPendingFailures {
		f.add(fmt.Sprint("usr_", i), ClientInfo{}, next)
	}
	if taken := f.take(next); len(taken) != maxPendingFailures {
		t.Errorf("%d failures are pending", len(taken))
	}
}
