// Package cron owns times that repeat: the five fields of cron with a time
// zone, plain intervals, and what becomes of both where clocks are set forward
// and back. Fields are read by a library. The times are worked out here, because
// it fires twice what exists twice and knows no change of half an hour.
package cron

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // time zones are those of the program, whatever the machine has

	parser "github.com/netresearch/go-cron"

	"github.com/stepmill/stepmill/internal/duration"
)

// Schedule is a sequence of times. It does not change and can be shared.
type Schedule struct {
	every time.Duration // an interval; the rest is that of fields

	minute, hour, dom, month, dow uint64
	zone                          *time.Location
}

// starred marks a field that was written as *.
const starred = 1 << 63

// ErrNever says that a schedule has no times, such as that of a 31st of
// February.
var ErrNever = errors.New("there is no such day: it would never fire")

// Every makes a schedule of an interval.
func Every(d time.Duration) *Schedule { return &Schedule{every: d} }

// Zone finds a time zone by its name in the IANA database; "" is UTC.
func Zone(name string) (*time.Location, error) {
	// The zone of the machine is none that a workflow can depend on.
	if name == "Local" || strings.TrimSpace(name) != name {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Paris", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Paris", name)
	}
	return zone, nil
}

// Parse reads the five fields of cron, or a descriptor such as @hourly or
// @every 15m. Names of months and days may be written in any case.
func Parse(text string, zone *time.Location) (*Schedule, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if length, found := strings.CutPrefix(text, "@every "); found {
		every, err := duration.Parse(strings.TrimSpace(length))
		if err != nil {
			return nil, err
		}
		return Every(every), nil
	}
	if strings.Contains(text, "=") {
		return nil, errors.New("has five fields: minute, hour, day, month, day of the week")
	}
	const fields = parser.Minute | parser.Hour | parser.Dom | parser.Month | parser.Dow | parser.Descriptor | parser.DowOrDom
	parsed, err := parser.MustNewParser(fields).Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*parser.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is not understood", text)
	}
	s := &Schedule{minute: spec.Minute, hour: spec.Hour, dom: spec.Dom, month: spec.Month, dow: parser.NormalizeDOW(spec.Dow), zone: zone}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, ErrNever
	}
	return s, nil
}

// Interval is the length of time between two times of a plain interval, zero
// for a schedule of fields.
func (s *Schedule) Interval() time.Duration { return s.every }

// searched is how many days are looked at: leap days can be eight years apart.
const searched = 9 * 366

// Next is the first time after a moment. An interval counts from that moment.
// The zero time means that there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.every > 0 {
		return after.Add(s.every)
	}
	// A time that does not exist may move to a later day, hence the day before.
	day := dayOf(after.In(s.zone)).AddDate(0, 0, -1)
	for range searched {
		if s.onDay(day) {
			if next := s.firstOn(day, after); !next.IsZero() {
				return next.UTC()
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return time.Time{}
}

// Last is the last time after a moment up to another, which counts. The zero
// time means that there is none.
func (s *Schedule) Last(after, upTo time.Time) time.Time {
	if s.every > 0 {
		passed := upTo.Sub(after)
		if passed < s.every {
			return time.Time{}
		}
		return after.Add(passed.Truncate(s.every))
	}
	const day = 24 * time.Hour
	for _, back := range []time.Duration{time.Hour, day, 32 * day, 366 * day, searched * day} {
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

// dayOf is the day on the calendar, as its midnight in UTC.
func dayOf(local time.Time) time.Time {
	year, month, day := local.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// onDay tells whether a day is one of the schedule. Where both the day of the
// month and that of the week are given, either is enough.
func (s *Schedule) onDay(day time.Time) bool {
	if s.month&(1<<uint(day.Month())) == 0 {
		return false
	}
	dom, dow := s.dom&(1<<uint(day.Day())) != 0, s.dow&(1<<uint(day.Weekday())) != 0
	if (s.dom|s.dow)&starred != 0 {
		return dom && dow
	}
	return dom || dow
}

// firstOn is the first time of a day that is after a moment.
func (s *Schedule) firstOn(day, after time.Time) time.Time {
	before, later := s.offset(day.Add(-15*time.Hour)), s.offset(day.Add(39*time.Hour))
	if before == later { // no change of the clock comes near
		return s.firstPlain(day, before, after)
	}
	return s.firstOdd(day, min(before, later), max(before, later), after)
}

// firstOdd is firstOn for a day near a change of the clock. A time of day comes
// no earlier and no later than the two offsets say.
func (s *Schedule) firstOdd(day time.Time, least, most time.Duration, after time.Time) (first time.Time) {
	each(s.hour, func(hour int) bool {
		start := day.Add(time.Duration(hour) * time.Hour)
		if !start.Add(time.Hour - least).After(after) {
			return true
		}
		each(s.minute, func(minute int) bool {
			wall := start.Add(time.Duration(minute) * time.Minute)
			if !first.IsZero() && !wall.Add(-most).Before(first) {
				return false
			}
			if !wall.Add(-least).After(after) {
				return true
			}
			for _, at := range s.moments(wall) {
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

// firstPlain is firstOn for a day on which all clocks go on as usual.
func (s *Schedule) firstPlain(day time.Time, offset time.Duration, after time.Time) (first time.Time) {
	start := day.Add(-offset)
	each(s.hour, func(hour int) bool {
		if !start.Add(time.Duration(hour+1) * time.Hour).After(after) {
			return true
		}
		each(s.minute, func(minute int) bool {
			if at := start.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute); at.After(after) {
				first = at
			}
			return first.IsZero()
		})
		return first.IsZero()
	})
	return first
}

// each calls fn with each number of a field, in order, until it answers false.
func each(field uint64, fn func(int) bool) {
	for field &^= starred; field != 0; field &= field - 1 {
		if !fn(bits.TrailingZeros64(field)) {
			return
		}
	}
}

const everyHour = 1<<24 - 1

// moments are when clocks show a time of day: one moment as a rule. A time that
// is skipped is taken for the moment at which clocks are set forward. Of a time
// that comes twice the first counts, unless the schedule is for every hour: then
// both do, since it would else rest for as long as clocks were set back.
func (s *Schedule) moments(wall time.Time) []time.Time {
	early, late := wall.Add(-s.offset(wall.Add(-24*time.Hour))), wall.Add(-s.offset(wall.Add(24*time.Hour)))
	if early.After(late) && !s.shows(early, wall) && !s.shows(late, wall) {
		jump, _ := early.In(s.zone).ZoneBounds()
		return []time.Time{jump}
	}
	var out []time.Time
	if s.shows(early, wall) {
		out = append(out, early)
	}
	if !late.Equal(early) && s.shows(late, wall) && (len(out) == 0 || s.hour&everyHour == everyHour) {
		out = append(out, late)
	}
	return out
}

// shows tells whether clocks show a time of day at a moment.
func (s *Schedule) shows(at, wall time.Time) bool { return at.Add(s.offset(at)).Equal(wall) }

// offset is how far clocks are ahead of UTC at a moment.
func (s *Schedule) offset(at time.Time) time.Duration {
	_, seconds := at.In(s.zone).Zone()
	return time.Duration(seconds) * time.Second
}
