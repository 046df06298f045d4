// Package clock owns time as the product stores and shows it: UTC, kept to the
// microsecond, shown to the millisecond. It is the only place that asks the
// machine for the time.
package clock

import "time"

const layout = "2006-01-02T15:04:05.000Z"

// Now is the current time in UTC, to the microsecond.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

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
