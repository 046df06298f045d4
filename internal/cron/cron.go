// Package cron owns recurring schedules: cron expressions with a time zone,
// fixed intervals, and how both behave at daylight saving transitions. A library
// parses the expressions. The package computes the times itself, because the
// library fires twice at a time that occurs twice and does not support
// transitions of half an hour.
package cron

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // the same time zones on every machine

	parser "github.com/netresearch/go-cron"

	"github.com/stepmill/stepmill/internal/clock"
)

// Schedule is a recurring schedule. It is immutable and safe to share.
type Schedule struct {
	every time.Duration // the interval; the other fields are those of an expression

	minute, hour, dom, month, dow uint64
	zone                          *time.Location
}

// starred is the bit that marks a field written as *.
const starred = 1 << 63

// ErrNever means that a schedule never fires, for example on February 31.
var ErrNever = errors.New("there is no such day: it would never fire")

// Every returns a schedule with a fixed interval.
func Every(d time.Duration) *Schedule { return &Schedule{every: d} }

// Zone returns the time zone with a name in the IANA database; "" is UTC.
func Zone(name string) (*time.Location, error) {
	// A workflow must not depend on the time zone of the machine.
	if name == "Local" || strings.TrimSpace(name) != name {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Paris", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Paris", name)
	}
	return zone, nil
}

// Parse parses a cron expression of five fields, or a descriptor such as @hourly
// or @every 15m. Names of months and days are case-insensitive.
func Parse(text string, zone *time.Location) (*Schedule, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if length, found := strings.CutPrefix(text, "@every "); found {
		every, err := clock.ParseDuration(strings.TrimSpace(length))
		if err != nil {
			return nil, err
		}
		return Every(every), nil
	}
	if strings.Contains(text, "=") {
		return nil, errors.New("must have five fields: minute, hour, day, month and weekday")
	}
	const fields = parser.Minute | parser.Hour | parser.Dom | parser.Month | parser.Dow | parser.Descriptor | parser.DowOrDom
	parsed, err := parser.MustNewParser(fields).Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*parser.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is not a cron expression", text)
	}
	s := &Schedule{minute: spec.Minute, hour: spec.Hour, dom: spec.Dom, month: spec.Month, dow: parser.NormalizeDOW(spec.Dow), zone: zone}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, ErrNever
	}
	return s, nil
}

// Interval returns the interval of a schedule made by Every, and zero for a cron
// expression.
func (s *Schedule) Interval() time.Duration { return s.every }

// searchDays is how many days Next searches: leap days can be eight years apart.
const searchDays = 9 * 366

// Next returns the first time after the given one, or the zero time if there is
// none. An interval counts from the given time.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.every > 0 {
		return after.Add(s.every)
	}
	// A time that does not exist may move to the next day, so start a day early.
	day := dayOf(after.In(s.zone)).AddDate(0, 0, -1)
	for range searchDays {
		next := s.firstOn(day, after)
		day = day.AddDate(0, 0, 1)
		if !next.IsZero() {
			return s.orMidnight(next, day, after).UTC()
		}
	}
	return time.Time{}
}

// orMidnight returns next, which is a time on the day before the given one, or the
// first time on the given day if it comes earlier: where clocks are set back shortly
// after midnight, the day begins before the last hour of the previous one is repeated.
func (s *Schedule) orMidnight(next, day, after time.Time) time.Time {
	if changed, _ := next.In(s.zone).ZoneBounds(); !changed.After(after) {
		return next
	}
	if earlier := s.firstOn(day, after); !earlier.IsZero() && earlier.Before(next) {
		return earlier
	}
	return next
}

// Last returns the last time after one moment and not after another, or the zero
// time if there is none.
func (s *Schedule) Last(after, upTo time.Time) time.Time {
	if s.every > 0 {
		passed := upTo.Sub(after)
		if passed < s.every {
			return time.Time{}
		}
		return after.Add(passed.Truncate(s.every))
	}
	const day = 24 * time.Hour
	for _, back := range []time.Duration{time.Hour, day, 32 * day, 366 * day, searchDays * day} {
		from := upTo.Add(-back)
		if from.Before(after) {
			from = after
		}
		var last time.Time
		for next := s.Next(from); !next.IsZero() && !next.After(upTo); next = s.Next(next) {
			last = next
		}
		if !last.IsZero() || from.Equal(after) {
			return last
		}
	}
	return time.Time{}
}

// dayOf returns the calendar day of local, as midnight in UTC.
func dayOf(local time.Time) time.Time {
	year, month, day := local.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// matchesDay reports whether the schedule fires on a day. If both the day of the
// month and the day of the week are given, either is enough.
func (s *Schedule) matchesDay(day time.Time) bool {
	if s.month&(1<<uint(day.Month())) == 0 {
		return false
	}
	dom, dow := s.dom&(1<<uint(day.Day())) != 0, s.dow&(1<<uint(day.Weekday())) != 0
	if (s.dom|s.dow)&starred != 0 {
		return dom && dow
	}
	return dom || dow
}

// firstOn returns the first time on a day that is after the given one, or the zero
// time if there is none.
func (s *Schedule) firstOn(day, after time.Time) time.Time {
	if !s.matchesDay(day) {
		return time.Time{}
	}
	before, later := s.offset(day.Add(-15*time.Hour)), s.offset(day.Add(39*time.Hour))
	if before == later { // no transition is near
		return s.firstRegular(day, before, after)
	}
	return s.firstNearTransition(day, min(before, later), max(before, later), after)
}

// firstNearTransition is firstOn for a day near a transition. The instant of a
// time of day lies between those that the two offsets give.
func (s *Schedule) firstNearTransition(day time.Time, least, most time.Duration, after time.Time) (first time.Time) {
	eachValue(s.hour, func(hour int) bool {
		start := day.Add(time.Duration(hour) * time.Hour)
		if !start.Add(time.Hour - least).After(after) {
			return true
		}
		eachValue(s.minute, func(minute int) bool {
			wall := start.Add(time.Duration(minute) * time.Minute)
			if !first.IsZero() && !wall.Add(-most).Before(first) {
				return false
			}
			if !wall.Add(-least).After(after) {
				return true
			}
			for _, at := range s.instants(wall) {
				if at.After(after) && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
			return true
		})
		return first.IsZero() || start.Add(-most).Before(first)
	})
	return first
}

// firstRegular is firstOn for a day with a constant offset.
func (s *Schedule) firstRegular(day time.Time, offset time.Duration, after time.Time) (first time.Time) {
	start := day.Add(-offset)
	eachValue(s.hour, func(hour int) bool {
		if !start.Add(time.Duration(hour+1) * time.Hour).After(after) {
			return true
		}
		eachValue(s.minute, func(minute int) bool {
			if at := start.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute); at.After(after) {
				first = at
			}
			return first.IsZero()
		})
		return first.IsZero()
	})
	return first
}

// eachValue calls fn with each value of a field, in order, until it returns false.
func eachValue(field uint64, fn func(int) bool) {
	for field &^= starred; field != 0; field &= field - 1 {
		if !fn(bits.TrailingZeros64(field)) {
			return
		}
	}
}

const allHours = 1<<24 - 1

// instants returns the instants of a wall-clock time, usually one. A skipped
// time maps to the instant at which clocks are set forward. Of a time that occurs
// twice only the first counts, unless the schedule fires every hour: then both
// count, because it would otherwise pause while the hour repeats.
func (s *Schedule) instants(wall time.Time) []time.Time {
	early, late := wall.Add(-s.offset(wall.Add(-24*time.Hour))), wall.Add(-s.offset(wall.Add(24*time.Hour)))
	if early.After(late) && !s.shows(early, wall) && !s.shows(late, wall) {
		jump, _ := early.In(s.zone).ZoneBounds()
		return []time.Time{jump}
	}
	var out []time.Time
	if s.shows(early, wall) {
		out = append(out, early)
	}
	if !late.Equal(early) && s.shows(late, wall) && (len(out) == 0 || s.hour&allHours == allHours) {
		out = append(out, late)
	}
	return out
}

// shows reports whether clocks show the wall-clock time at the given instant.
func (s *Schedule) shows(at, wall time.Time) bool { return at.Add(s.offset(at)).Equal(wall) }

func (s *Schedule) offset(at time.Time) time.Duration {
	_, seconds := at.In(s.zone).Zone()
	return time.Duration(seconds) * time.Second
}
