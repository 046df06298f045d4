package expr

import (
	"math"
	"strconv"
	"strings"
	"time"
)

func timeFunctions() []function {
	return []function{
		fn("now", "now() time", "The time of the evaluation.", 0, 0, now,
			`now()`, `"2026-11-15T09:30:00.000Z"`),
		fn("date", "date(value[, zone]) time", `A time from a string, "2026-11-15", "2026-11-15 09:30:00" or RFC 3339, or from Unix seconds. A string without an offset is in the zone, UTC by default.`, 1, 2, date,
			`date("2026-11-15T10:30:00+01:00")`, `"2026-11-15T09:30:00.000Z"`, `date("2026-11-15 09:30:00", "Europe/Berlin")`, `"2026-11-15T08:30:00.000Z"`),
		fn("parseDate", "parseDate(text, layout[, zone]) time", "A time from text in a layout of formatDate. Text without an offset is in the zone, UTC by default.", 2, 3, parseDate,
			`parseDate("05.11.2026 9:30", "DD.MM.YYYY H:mm", "Europe/Berlin")`, `"2026-11-05T08:30:00.000Z"`,
			`parseDate("Nov 5, 2026", "MMM D, YYYY")`, `"2026-11-05T00:00:00.000Z"`),
		fn("formatDate", "formatDate(time[, layout[, zone]]) string", "The time as text, by default in RFC 3339 and in UTC. A layout can have YYYY YY MMMM MMM MM M DD D dddd ddd HH H hh h mm m ss s SSS A a Z, and [text] for literal text.", 1, 3, formatDate,
			`formatDate("2026-11-05T09:30:00Z", "YYYY-MM-DD HH:mm:ss")`, `"2026-11-05 09:30:00"`,
			`formatDate("2026-11-05T21:30:00Z", "dddd, D MMMM [at] h a")`, `"Thursday, 5 November at 9 pm"`,
			`formatDate("2026-11-05T21:30:00Z", "YYYY-MM-DD[T]HH:mm:ssZ", "Europe/Berlin")`, `"2026-11-05T22:30:00+01:00"`),
		fn("addDuration", "addDuration(time, duration) time", `The time plus a duration in w, d, h, m, s and ms, such as "3d", "1h30m" or "-90s".`, 2, 2, addDuration,
			`addDuration("2026-11-15T09:30:00Z", "3d")`, `"2026-11-18T09:30:00.000Z"`,
			`addDuration("2026-11-15", "-90s")`, `"2026-11-14T23:58:30.000Z"`),
	}
}

const timeSteps = 10 // to parse or format a time

func now(m *evaluation, _ args) (any, error) {
	if m.env.Now.IsZero() {
		return nil, failf("now() is not available here")
	}
	return m.env.Now, nil
}

func date(m *evaluation, a args) (any, error) {
	if err := m.spend(timeSteps); err != nil {
		return nil, err
	}
	zone, err := a.zone(m, 1)
	if err != nil {
		return nil, err
	}
	t, err := a.time(0)
	if err != nil {
		return nil, err
	}
	if s, ok := a.values[0].(string); ok && zone != time.UTC && timeLayout(s) != time.RFC3339 {
		return valid(civilOf(t, time.UTC).in(zone))
	}
	return t, nil
}

// toTime converts a value to a time in UTC.
func toTime(v any) (time.Time, bool) {
	switch v := v.(type) {
	case time.Time:
		return inRange(v)
	case string:
		return parseTime(v)
	case int, float64:
		f, _ := float(v)
		if math.Abs(f) >= unixLimit*1000 {
			return time.Time{}, false
		}
		seconds := math.Floor(f)
		return inRange(time.Unix(int64(seconds), int64((f-seconds)*1e9)))
	}
	return time.Time{}, false
}

func parseTime(s string) (time.Time, bool) {
	layout := timeLayout(s)
	if layout == "" {
		return time.Time{}, false
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return time.Time{}, false
	}
	return inRange(t)
}

// timeLayout returns the only layout that s can have, judging by its form, or "".
func timeLayout(s string) string {
	n := len(s)
	switch {
	case n == len(time.DateOnly):
		return time.DateOnly
	case n < len("2006-01-02T15:04") || n > 64:
		return ""
	case s[n-1] == 'Z' || s[n-6] == '+' || s[n-6] == '-':
		return time.RFC3339
	case s[10] == ' ':
		return time.DateTime
	case n == len("2006-01-02T15:04"):
		return "2006-01-02T15:04"
	}
	return "2006-01-02T15:04:05"
}

// inRange rejects years that RFC 3339 cannot represent.
func inRange(t time.Time) (time.Time, bool) {
	t = t.UTC()
	return t, t.Year() >= 0 && t.Year() <= maxYear
}

func addDuration(m *evaluation, a args) (any, error) {
	if err := m.spend(timeSteps); err != nil {
		return nil, err
	}
	t, err := a.time(0)
	if err != nil {
		return nil, err
	}
	text, err := a.text(1)
	if err != nil {
		return nil, err
	}
	d, ok := parseDuration(text)
	if !ok {
		return nil, failf(`argument 2 of addDuration is not a duration such as "3d" or "1h30m"`)
	}
	return valid(t.Add(d))
}

// parseDuration parses Go's durations, and days and weeks.
func parseDuration(s string) (time.Duration, bool) {
	if len(s) > 64 {
		return 0, false
	}
	s, negative := strings.CutPrefix(s, "-")
	total, found := 0.0, false
	for s != "" {
		n := 0
		for n < len(s) && (s[n] == '.' || s[n] >= '0' && s[n] <= '9') {
			n++
		}
		unit := n
		for unit < len(s) && s[unit] >= 'a' && s[unit] <= 'z' {
			unit++
		}
		part, ok := durationPart(s[:n], s[n:unit])
		if !ok {
			return 0, false
		}
		total, s, found = total+part, s[unit:], true
	}
	if negative {
		total = -total
	}
	// Counting milliseconds keeps a float64 exact over the range of a Duration.
	return time.Duration(total) * time.Millisecond, found && math.Abs(total) < math.MaxInt64/1e6
}

func durationPart(digits, unit string) (float64, bool) {
	n, err := strconv.ParseFloat(digits, 64)
	scale := 0.0
	switch unit {
	case "ms":
		scale = 1
	case "s":
		scale = 1e3
	case "m":
		scale = 60e3
	case "h":
		scale = 3600e3
	case "d":
		scale = 24 * 3600e3
	case "w":
		scale = 7 * 24 * 3600e3
	}
	return n * scale, err == nil && scale > 0
}
