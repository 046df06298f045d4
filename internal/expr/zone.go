package expr

import (
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/cron"
)

const (
	zoneSteps = 20 // to look up a time zone and convert to it
	maxZone   = 64 // bytes of the name of a time zone
)

// zones caches the time zones that were used, by name. Reading one takes much
// longer than using it. There are about 600, and they never change.
var zones sync.Map

// zone returns the time zone that argument i names, by default UTC.
func (a args) zone(m *evaluation, i int) (*time.Location, error) {
	if !a.has(i) {
		return time.UTC, nil
	}
	name, err := a.text(i)
	if err != nil {
		return nil, err
	}
	if err := m.spend(zoneSteps); err != nil {
		return nil, err
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if isZoneName(name) {
		if zone, err := cron.Zone(name); err == nil {
			zones.Store(name, zone)
			return zone, nil
		}
	}
	return nil, failf("argument %d of %s is not a time zone such as Europe/Paris", i+1, a.name)
}

// isZoneName reports whether name has the form of a time zone. Without dots and
// repeated slashes, each zone has one name only, which bounds the cache.
func isZoneName(name string) bool {
	if name == "" || len(name) > maxZone {
		return false
	}
	slash := true
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '+':
			slash = false
		case c == '/' && !slash:
			slash = true
		default:
			return false
		}
	}
	return !slash
}

// civil is a date and a time of day in no particular zone. Fields beyond their
// range count on, as in time.Date.
type civil struct {
	year              int
	month             time.Month
	day               int
	hour, minute, sec int
	nano              int
}

func civilOf(t time.Time, zone *time.Location) civil {
	t = t.In(zone)
	year, month, day := t.Date()
	hour, minute, sec := t.Clock()
	return civil{year, month, day, hour, minute, sec, t.Nanosecond()}
}

func (c civil) utc() time.Time {
	return time.Date(c.year, c.month, c.day, c.hour, c.minute, c.sec, c.nano, time.UTC)
}

// dayNumber counts days from 1970-01-01.
func (c civil) dayNumber() int {
	return int(civil{year: c.year, month: c.month, day: c.day}.utc().Unix() / (24 * 60 * 60))
}

// in returns the moment at which clocks in the zone show c. If they do so twice,
// it is the first one. If they skip c, it is as much later as they were moved
// forward.
func (c civil) in(zone *time.Location) time.Time {
	t, _ := c.resolve(zone)
	return t
}

// firstIn is like in, except that if clocks skip c, it is the moment at which they
// were moved. So a day without midnight begins at its first moment.
func (c civil) firstIn(zone *time.Location) time.Time {
	t, skipped := c.resolve(zone)
	if skipped {
		if begin, _ := t.In(zone).ZoneBounds(); !begin.IsZero() {
			return begin
		}
	}
	return t
}

func (c civil) resolve(zone *time.Location) (t time.Time, skipped bool) {
	utc := c.utc()
	// No offset is longer than a day, and no zone changes twice within two days.
	before, after := offset(utc.AddDate(0, 0, -1), zone), offset(utc.AddDate(0, 0, 1), zone)
	t = utc.Add(-before)
	if offset(t, zone) == before {
		return t, false
	}
	if late := utc.Add(-after); offset(late, zone) == after {
		return late, false
	}
	return t, true
}

// offset returns how far ahead of UTC clocks in the zone are.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// addMonths adds months and keeps the day, or takes the last one of a shorter month.
func (c civil) addMonths(n int) civil {
	first := time.Date(c.year, c.month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	c.year, c.month, c.day = first.Year(), first.Month(), min(c.day, last)
	return c
}

// startOf returns the first moment of the unit that contains c.
func (c civil) startOf(unit string, weekStart time.Weekday) civil {
	day := civil{year: c.year, month: c.month, day: c.day}
	switch unit {
	case "hour":
		day.hour = c.hour
	case "week":
		day.day -= (int(day.utc().Weekday()) - int(weekStart) + 7) % 7
	case "month":
		day.day = 1
	case "quarter":
		day.month, day.day = (day.month-1)/3*3+1, 1
	case "year":
		day.month, day.day = time.January, 1
	}
	return day
}

func (c civil) add(n int, unit string) civil {
	switch unit {
	case "day":
		c.day += n
	case "week":
		c.day += 7 * n
	case "month":
		return c.addMonths(n)
	case "quarter":
		return c.addMonths(3 * n)
	case "year":
		return c.addMonths(12 * n)
	}
	return c
}
