package cron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/cron"
	"github.com/stepmill/stepmill/test/lane"
)

// fields are the five fields of an expression as numbers; nil for *.
type fields struct{ minute, hour, dom, month, dow []int }

func (f fields) String() string {
	var out []string
	for _, field := range [][]int{f.minute, f.hour, f.dom, f.month, f.dow} {
		if field == nil {
			out = append(out, "*")
			continue
		}
		out = append(out, strings.ReplaceAll(strings.Trim(fmt.Sprint(field), "[]"), " ", ","))
	}
	return strings.Join(out, " ")
}

func has(field []int, n int) bool { return field == nil || slices.Contains(field, n) }

// matches reports whether the fields match a wall-clock time.
func (f fields) matches(wall time.Time) bool {
	day := has(f.dom, wall.Day()) && has(f.dow, int(wall.Weekday()))
	if f.dom != nil && f.dow != nil {
		day = has(f.dom, wall.Day()) || has(f.dow, int(wall.Weekday()))
	}
	return day && has(f.minute, wall.Minute()) && has(f.hour, wall.Hour()) && has(f.month, int(wall.Month()))
}

// wallAt returns the wall-clock time in a zone, as if it were UTC.
func wallAt(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.Add(time.Duration(offset) * time.Second)
}

// fires is the model: it reports whether the schedule fires in a given minute,
// from the time clocks show, whether they showed it before, and what they skipped.
func (f fields) fires(at time.Time, zone *time.Location) bool {
	wall, before := wallAt(at, zone), wallAt(at.Add(-time.Minute), zone)
	for skipped := before.Add(time.Minute); skipped.Before(wall); skipped = skipped.Add(time.Minute) {
		if f.matches(skipped) {
			return true
		}
	}
	if !f.matches(wall) {
		return false
	}
	if f.hour == nil {
		return true
	}
	for back := 30 * time.Minute; back <= 3*time.Hour; back += 30 * time.Minute {
		if wallAt(at.Add(-back), zone).Equal(wall) {
			return false
		}
	}
	return true
}

var zones = []string{
	"UTC", "Europe/Paris", "Europe/London", "America/New_York", "America/Santiago", "America/St_Johns", "Australia/Lord_Howe", "Australia/Adelaide",
	"Asia/Kathmandu", "Asia/Tehran", "Africa/Casablanca", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll",
}

func drawField(t *rapid.T, name string, least, most, star int) []int {
	if rapid.IntRange(0, 9).Draw(t, name+" is *") < star {
		return nil
	}
	out := rapid.SliceOfNDistinct(rapid.IntRange(least, most), 1, 4, rapid.ID[int]).Draw(t, name)
	slices.Sort(out)
	return out
}

// momentNearTransition draws a time close to a transition, if the zone has any.
func momentNearTransition(t *rapid.T, zone *time.Location) time.Time {
	at := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 30*366*24*60).Draw(t, "minute")) * time.Minute)
	if _, end := at.In(zone).ZoneBounds(); !end.IsZero() && rapid.IntRange(0, 3).Draw(t, "near a change") > 0 {
		at = end.UTC().Add(time.Duration(rapid.IntRange(-1500, 200).Draw(t, "before it")) * time.Minute)
	}
	return at.Add(time.Duration(rapid.IntRange(0, 59_999).Draw(t, "milliseconds")) * time.Millisecond)
}

// Next agrees with a model that checks the clock every minute.
func TestNextMatchesMinuteByMinuteModel(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		zone, err := cron.Zone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		f := fields{
			minute: drawField(t, "minute", 0, 59, 2), hour: drawField(t, "hour", 0, 23, 4), dom: drawField(t, "day", 1, 28, 8),
			month: drawField(t, "month", 1, 12, 9), dow: drawField(t, "weekday", 0, 6, 8),
		}
		s, err := cron.Parse(f.String(), zone)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		after := momentNearTransition(t, zone)
		const looked = 2 * 24 * 60
		var want []time.Time
		for at, n := after.Truncate(time.Minute).Add(time.Minute), 0; n < looked; at, n = at.Add(time.Minute), n+1 {
			if f.fires(at, zone) {
				want = append(want, at)
			}
		}
		end, got := after.Add(looked*time.Minute), after
		for _, wanted := range want {
			was := got
			if got = s.Next(was); !got.Equal(wanted) {
				t.Fatalf("%s in %s: after %s comes %s, want %s", f, zone, was, got, wanted)
			}
			if !got.After(was) {
				t.Fatalf("%s in %s: after %s comes %s", f, zone, was, got)
			}
		}
		if next := s.Next(got); !next.IsZero() && !next.After(end.Truncate(time.Minute)) {
			t.Fatalf("%s in %s: after %s comes %s, want none", f, zone, got, next)
		}
		last := time.Time{}
		if len(want) > 0 {
			last = want[len(want)-1]
		}
		if got := s.Last(after, end.Truncate(time.Minute)); !got.Equal(last) {
			t.Fatalf("%s in %s: the last after %s is %s, want %s", f, zone, after, got, last)
		}
	})
}

// An interval is elapsed time.
func TestIntervals(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.IntRange(10, 100_000).Draw(t, "seconds")) * time.Second
		s, after := cron.Every(every), momentNearTransition(t, time.UTC)
		upTo := after.Add(time.Duration(rapid.IntRange(0, 1_000_000).Draw(t, "later")) * time.Second)
		var last time.Time
		for next := s.Next(after); !next.After(upTo); next = s.Next(next) {
			last = next
		}
		if got := s.Last(after, upTo); !got.Equal(last) {
			t.Fatalf("every %s from %s to %s: %s, want %s", every, after, upTo, got, last)
		}
	})
}

// Parse never panics, and a schedule it accepts always has a next time.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "0 3 * * *", "@every 5m", "*/5 8-18 1,15 JAN-MAR MON-FRI", "0 0 31 2 *", "59 23 31 12 7", "TZ=UTC * * * * *"} {
		f.Add(text)
	}
	paris, err := cron.Zone("Europe/Paris")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := cron.Parse(text, paris)
		if err != nil {
			return
		}
		at := time.Date(2026, 3, 28, 23, 59, 59, 999, time.UTC)
		for range 5 {
			next := s.Next(at)
			if !next.After(at) {
				t.Fatalf("%q: after %s comes %s", text, at, next)
			}
			at = next
		}
	})
}
