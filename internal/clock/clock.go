// Package clock owns time as the product stores and shows it: UTC, kept to the
// microsecond, shown to the millisecond. It is the only place that asks the
// machine for the time.
package clock

import (
	"sync/atomic"
	"time"
)

const layout = "2006-01-02T15:04:05.000Z"

// ahead is how far the clock that is followed is ahead of the machine's own.
var ahead atomic.Int64

// Now is the current time in UTC, to the microsecond.
func Now() time.Time {
	return time.Now().Add(time.Duration(ahead.Load())).UTC().Truncate(time.Microsecond)
}

// Reading is the current time with what the machine needs to measure durations
// by it. Now is for what is kept and shown.
func Reading() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }

// Until is how long it is until t.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }

// Follow makes Now go by another clock from here on: nodes that share a database
// go by that of the database, whatever their own ones show. It answers by how
// much the two differ.
func Follow(now time.Time) time.Duration {
	offset := time.Until(now)
	// Less than that is the way of the answer, not a difference of clocks.
	if diff := offset - time.Duration(ahead.Load()); diff.Abs() > tolerated {
		ahead.Store(int64(offset))
	}
	return offset
}

// Ahead is how far the clock that is followed is ahead of the machine's own.
func Ahead() time.Duration { return time.Duration(ahead.Load()) }

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
