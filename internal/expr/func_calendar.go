package expr

import "time"

func calendarFunctions() []function {
	return []function{
		fn("addDays", "addDays(time, days[, zone]) time", "The time plus a number of days. In the zone, UTC by default, the time of day stays the same when the clocks change.", 2, 3, addUnits("day"),
			`addDays("2026-03-28T08:00:00Z", 1)`, `"2026-03-29T08:00:00.000Z"`,
			`addDays("2026-03-28T08:00:00Z", 1, "Europe/Berlin")`, `"2026-03-29T07:00:00.000Z"`),
		fn("addMonths", "addMonths(time, months[, zone]) time", "The time plus a number of months, on the last day of the month if the month is too short.", 2, 3, addUnits("month"),
			`addMonths("2026-01-31", 1)`, `"2026-02-28T00:00:00.000Z"`, `addMonths("2026-01-31", -2)`, `"2025-11-30T00:00:00.000Z"`),
		fn("addYears", "addYears(time, years[, zone]) time", "The time plus a number of years; February 29 becomes February 28 in other years.", 2, 3, addUnits("year"),
			`addYears("2024-02-29", 1)`, `"2025-02-28T00:00:00.000Z"`),
		fn("startOf", "startOf(time, unit[, zone[, weekStart]]) time", `The first moment of the "hour", "day", "week", "month", "quarter" or "year" in the zone, UTC by default. A week starts on "monday" or "sunday"; Monday is the default.`, 2, 4, startOf,
			`startOf("2026-11-18T09:30:00Z", "week")`, `"2026-11-16T00:00:00.000Z"`,
			`startOf("2026-11-18T09:30:00Z", "day", "America/New_York")`, `"2026-11-18T05:00:00.000Z"`),
		fn("endOf", "endOf(time, unit[, zone[, weekStart]]) time", "The last millisecond of the unit; see startOf.", 2, 4, endOf,
			`endOf("2026-02-10", "month")`, `"2026-02-28T23:59:59.999Z"`,
			`endOf("2026-11-18", "week", "UTC", "sunday")`, `"2026-11-21T23:59:59.999Z"`),
		fn("dateDiff", "dateDiff(from, to, unit[, zone]) int", `The number of whole units between two times, negative if the second is earlier. The unit is "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter" or "year"; days and longer units are counted in the zone, UTC by default.`, 3, 4, dateDiff,
			`dateDiff("2026-01-31", "2026-03-01", "month")`, `1`,
			`dateDiff("2026-11-15T12:00:00Z", "2026-11-14T11:59:00Z", "hour")`, `-24`),
		fn("dateParts", "dateParts(time[, zone]) map", "The parts of the time in the zone, UTC by default: year, quarter, month, day, hour, minute, second and millisecond; weekday from 1 for Monday to 7, yearDay, the ISO week with its weekYear, and offset, such as +01:00.", 1, 2, dateParts,
			`dateParts("2026-11-15T23:30:00Z", "Europe/Berlin").day`, `16`,
			`dateParts("2027-01-01")`, `{"day":1,"hour":0,"millisecond":0,"minute":0,"month":1,"offset":"+00:00","quarter":1,"second":0,"week":53,"weekYear":2026,"weekday":5,"year":2027,"yearDay":1}`),
	}
}

// maxUnits bounds how many days, months or years can be added: more than all that
// RFC 3339 can represent.
const maxUnits = 4_000_000

func addUnits(unit string) func(*evaluation, args) (any, error) {
	return func(m *evaluation, a args) (any, error) {
		if err := m.spend(2 * timeSteps); err != nil {
			return nil, err
		}
		t, err := a.time(0)
		if err != nil {
			return nil, err
		}
		n, err := a.whole(1)
		if err != nil {
			return nil, err
		}
		zone, err := a.zone(m, 2)
		if err != nil {
			return nil, err
		}
		n = max(-maxUnits, min(n, maxUnits))
		return valid(civilOf(t, zone).add(n, unit).in(zone))
	}
}

// valid rejects a computed time that RFC 3339 cannot represent.
func valid(t time.Time) (any, error) {
	t, ok := inRange(t)
	if !ok {
		return nil, failf("the time is outside of the years 0 to %d", maxYear)
	}
	return t, nil
}

func startOf(m *evaluation, a args) (any, error) {
	begin, _, err := a.period(m)
	if err != nil {
		return nil, err
	}
	return valid(begin)
}

func endOf(m *evaluation, a args) (any, error) {
	_, next, err := a.period(m)
	if err != nil {
		return nil, err
	}
	return valid(next.Add(-time.Millisecond))
}

// period returns the beginning of the unit in the arguments of startOf and endOf,
// and that of the next one.
func (a args) period(m *evaluation) (begin, next time.Time, err error) {
	if err := m.spend(2 * timeSteps); err != nil {
		return begin, next, err
	}
	t, err := a.time(0)
	if err != nil {
		return begin, next, err
	}
	unit, err := a.choice(1, "hour", "day", "week", "month", "quarter", "year")
	if err != nil {
		return begin, next, err
	}
	zone, err := a.zone(m, 2)
	if err != nil {
		return begin, next, err
	}
	name, err := a.choice(3, "monday", "sunday")
	if err != nil {
		return begin, next, err
	}
	weekStart := time.Monday
	if name == "sunday" {
		weekStart = time.Sunday
	}
	if unit == "hour" {
		begin = startOfHour(t, zone)
		return begin, begin.Add(time.Hour), nil
	}
	first := civilOf(t, zone).startOf(unit, weekStart)
	return first.firstIn(zone), first.add(1, unit).firstIn(zone), nil
}

// startOfHour does not go by the time of day, because an hour can occur twice.
func startOfHour(t time.Time, zone *time.Location) time.Time {
	shift := offset(t, zone)
	return t.Add(shift).Truncate(time.Hour).Add(-shift)
}

func dateDiff(m *evaluation, a args) (any, error) {
	if err := m.spend(4 * timeSteps); err != nil {
		return nil, err
	}
	from, err := a.time(0)
	if err != nil {
		return nil, err
	}
	to, err := a.time(1)
	if err != nil {
		return nil, err
	}
	unit, err := a.choice(2, "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
	if err != nil {
		return nil, err
	}
	zone, err := a.zone(m, 3)
	if err != nil {
		return nil, err
	}
	if to.Before(from) {
		return -countUnits(to, from, unit, zone), nil
	}
	return countUnits(from, to, unit, zone), nil
}

// countUnits returns the whole units from one time to a later one.
func countUnits(from, to time.Time, unit string, zone *time.Location) int {
	millis := int(to.UnixMilli() - from.UnixMilli())
	switch unit {
	case "millisecond":
		return millis
	case "second":
		return millis / 1000
	case "minute":
		return millis / 60_000
	case "hour":
		return millis / 3_600_000
	}
	first, last := civilOf(from, zone), civilOf(to, zone)
	days := last.dayNumber() - first.dayNumber()
	months := (last.year-first.year)*12 + int(last.month-first.month)
	n := map[string]int{"day": days, "week": days / 7, "month": months, "quarter": months / 3, "year": months / 12}[unit]
	if n > 0 && first.add(n, unit).in(zone).After(to) {
		n-- // the last unit is not over
	}
	return n
}

func dateParts(m *evaluation, a args) (any, error) {
	if err := m.spend(4 * timeSteps); err != nil {
		return nil, err
	}
	t, err := a.time(0)
	if err != nil {
		return nil, err
	}
	zone, err := a.zone(m, 1)
	if err != nil {
		return nil, err
	}
	if err := m.growObject(13); err != nil {
		return nil, err
	}
	t = t.In(zone)
	weekYear, week := t.ISOWeek()
	return map[string]any{
		"year": t.Year(), "quarter": (int(t.Month())-1)/3 + 1, "month": int(t.Month()), "day": t.Day(),
		"hour": t.Hour(), "minute": t.Minute(), "second": t.Second(), "millisecond": t.Nanosecond() / 1e6,
		"weekday": (int(t.Weekday())+6)%7 + 1, "yearDay": t.YearDay(), "week": week, "weekYear": weekYear,
		"offset": t.Format("-07:00"),
	}, nil
}
