// Package clock owns time as the product stores and shows it: UTC, kept to the
// microsecond, shown to the millisecond. It is the only place that asks the
// machine for the time.
package clock

import (
	"context"
	"sync/atomic"
	"time"
)

const layout = "2006-01-02T15:04:05.000Z"

// moment is one by a clock that is followed, and the same by the machine's own.
type moment struct{ theirs, ours time.Time }

var followed atomic.Pointer[moment]

// Now is the current time in UTC, to the microsecond.
func Now() time.Time { return current().UTC().Truncate(time.Microsecond) }

// current goes by the clock that is followed, and from one look at it to the
// next by the time that has passed: that the machine's own is set to another
// time meanwhile changes nothing.
func current() time.Time {
	if m := followed.Load(); m != nil {
		return m.theirs.Add(time.Since(m.ours))
	}
	return machine()
}

// Reading is the current time with what the machine needs to measure durations
// by it. Now is for what is kept and shown.
func Reading() time.Time { return machine().Add(Ahead()) }

// Mark is a moment to measure from with time.Since, or to set the end of
// something in this process by. It is no time of day: the clock of the machine
// may be wrong.
func Mark() time.Time { return time.Now() }

// Until is how long it is until t.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }

// Sleep waits for that long. It answers false when the context has ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Follow makes Now go by another clock from here on: nodes that share a database
// go by that of the database, whatever their own ones show. It answers by how
// much the two differ.
func Follow(now time.Time) time.Duration {
	// Less than that is the way of the answer, not a difference of clocks.
	if diff := now.Sub(current()); followed.Load() == nil || diff.Abs() > tolerated {
		followed.Store(&moment{theirs: now, ours: Mark()})
	}
	return now.Sub(machine())
}

// Ahead is how far the clock that is followed is ahead of the machine's own.
func Ahead() time.Duration { return current().Sub(machine()) }

const tolerated = 50 * time.Millisecond

// Format writes a time the way every answer and event does.
func Format(t time.Time) string { return t.UTC().Format(layout) }

// FormatPtr writes a time that may be absent.
func FormatPtr(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := Format(*t)
	return &s
}

// Millis is the whole number of milliseconds from start to end, never negative.
func Millis(start, end time.Time) int64 { return max(0, end.Sub(start).Milliseconds()) }

// After is now, or a moment after t when the clock has not moved on: the time
// of the last change then also tells versions of a row apart.
func After(t time.Time) time.Time {
	if now := Now(); now.After(t) {
		return now
	}
	return t.Add(time.Microsecond)
}
