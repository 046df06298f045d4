// Package clock owns time as the product stores and shows it: UTC, stored with
// microsecond and shown with millisecond precision, and durations as people
// write them. It is the only package that reads the machine's clock.
package clock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/txn"
)

const layout = "2006-01-02T15:04:05.000Z"

// observation is a reading of the followed clock and the local time at which it
// was taken.
type observation struct{ remote, local time.Time }

// followed is the last accepted observation of the followed clock, nil until
// the first call of Follow. It is process-wide on purpose: a process has one
// notion of the current time, and passing a clock to everything that stores a
// timestamp would let two parts of one process disagree. Only Follow writes it.
// Observations are immutable and replaced atomically, so any goroutine may call
// Now at any time.
var followed atomic.Pointer[observation]

// Now returns the current time in UTC with microsecond precision.
func Now() time.Time { return current().UTC().Truncate(time.Microsecond) }

// current returns the time of the followed clock. Between observations it adds
// the monotonic time that has passed, so setting the machine's clock has no
// effect.
func current() time.Time {
	if m := followed.Load(); m != nil {
		return m.remote.Add(time.Since(m.local))
	}
	return machine()
}

// Monotonic returns a starting point for time.Since, or for a deadline inside
// this process. Do not use it as a time of day: the machine's clock may be wrong.
func Monotonic() time.Time { return time.Now() }

// Sleep waits for d. It reports false if the context ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	txn.MustBeOutside(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Follow makes Now follow another clock. Nodes that share a database follow the
// clock of the database, so their own clocks may differ. The other clock showed
// now at an unknown moment between asked, a Monotonic time, and this call. As long
// as Now is consistent with any such moment, Follow leaves it unchanged: a slow
// response must not set it back.
func Follow(now, asked time.Time) {
	took := time.Since(asked)
	diff := current().Sub(now)
	if followed.Load() == nil || diff < -maxDrift || diff > took+maxDrift {
		followed.Store(&observation{remote: now.Add(took / 2), local: Monotonic()})
	}
}

// Offset returns how far the followed clock is ahead of the machine's clock.
func Offset() time.Duration { return current().Sub(machine()) }

// maxDrift is the difference between the clocks that Follow ignores.
const maxDrift = 50 * time.Millisecond

// Format formats a time as it appears in responses and events.
func Format(t time.Time) string { return t.UTC().Format(layout) }

// FormatPtr is like Format for a time that may be absent.
func FormatPtr(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := Format(*t)
	return &s
}

// Millis returns the whole milliseconds from start to end, never less than 0.
func Millis(start, end time.Time) int64 { return max(0, end.Sub(start).Milliseconds()) }

// NowAfter returns the current time, or the microsecond after t if the clock has
// not advanced past t. An update time set this way also distinguishes versions
// of a row.
func NowAfter(t time.Time) time.Time {
	if now := Now(); now.After(t) {
		return now
	}
	return t.Add(time.Microsecond)
}
