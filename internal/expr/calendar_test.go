package expr_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/test/lane"
)

// Clocks in Berlin went forward on 2026-03-29 at 01:00 UTC and back on 2026-10-25,
// those in New York on 2026-03-08 and 2026-11-01. Apia had no 2011-12-30, and
// Havana has no midnight on 2026-03-08.
func TestTimesAcrossClockChanges(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`date("2026-03-29 02:30:00", "Europe/Berlin")`:                                     `"2026-03-29T01:30:00.000Z"`, // skipped: 03:30
		`date("2026-10-25 02:30:00", "Europe/Berlin")`:                                     `"2026-10-25T00:30:00.000Z"`, // the first of two
		`date("2026-10-25T02:30:00+01:00", "Europe/Berlin")`:                               `"2026-10-25T01:30:00.000Z"`,
		`date(0, "Europe/Berlin")`:                                                         `"1970-01-01T00:00:00.000Z"`,
		`date("2026-07-01", "America/New_York")`:                                           `"2026-07-01T04:00:00.000Z"`,
		`date("2026-12-01", "America/New_York")`:                                           `"2026-12-01T05:00:00.000Z"`,
		`addDays("2026-10-24T16:00:00Z", 1, "Europe/Berlin")`:                              `"2026-10-25T17:00:00.000Z"`,
		`addDays("2026-03-07T12:00:00Z", 1, "America/New_York")`:                           `"2026-03-08T11:00:00.000Z"`,
		`addDays("2026-03-28T01:30:00Z", 1, "Europe/Berlin")`:                              `"2026-03-29T01:30:00.000Z"`,
		`addDays("2011-12-29T22:00:00Z", 1, "Pacific/Apia")`:                               `"2011-12-30T22:00:00.000Z"`,
		`formatDate("2011-12-30T09:59:59Z", "YYYY-MM-DD HH:mm Z", "Pacific/Apia")`:         `"2011-12-29 23:59 -10:00"`,
		`formatDate("2011-12-30T10:00:00Z", "YYYY-MM-DD HH:mm Z", "Pacific/Apia")`:         `"2011-12-31 00:00 +14:00"`,
		`endOf("2011-12-30T09:00:00Z", "day", "Pacific/Apia")`:                             `"2011-12-30T09:59:59.999Z"`,
		`startOf("2011-12-31T00:00:00Z", "day", "Pacific/Apia")`:                           `"2011-12-30T10:00:00.000Z"`,
		`startOf("2026-03-08T12:00:00Z", "day", "America/Havana")`:                         `"2026-03-08T05:00:00.000Z"`, // 01:00
		`endOf("2026-03-07T12:00:00Z", "day", "America/Havana")`:                           `"2026-03-08T04:59:59.999Z"`,
		`endOf("2026-03-29T10:00:00Z", "day", "Europe/Berlin")`:                            `"2026-03-29T21:59:59.999Z"`,
		`startOf("2026-10-25T01:30:00Z", "hour", "Europe/Berlin")`:                         `"2026-10-25T01:00:00.000Z"`,
		`startOf("2026-10-25T00:30:00Z", "hour", "Europe/Berlin")`:                         `"2026-10-25T00:00:00.000Z"`,
		`startOf("2026-11-15T09:50:00Z", "hour", "Asia/Kathmandu")`:                        `"2026-11-15T09:15:00.000Z"`, // +05:45
		`startOf("2026-11-15T09:30:00Z", "week")`:                                          `"2026-11-09T00:00:00.000Z"`, // a Sunday
		`startOf("2026-11-15T09:30:00Z", "week", "UTC", "sunday")`:                         `"2026-11-15T00:00:00.000Z"`,
		`startOf("2026-01-01T00:30:00Z", "month", "America/New_York")`:                     `"2025-12-01T05:00:00.000Z"`,
		`startOf("2026-08-15", "quarter", "Europe/Berlin")`:                                `"2026-06-30T22:00:00.000Z"`,
		`endOf("2026-08-15", "quarter")`:                                                   `"2026-09-30T23:59:59.999Z"`,
		`startOf("2026-08-15", "year")`:                                                    `"2026-01-01T00:00:00.000Z"`,
		`endOf("2024-08-15", "year", "Europe/Berlin")`:                                     `"2024-12-31T22:59:59.999Z"`,
		`dateDiff("2026-03-28T12:00:00Z", "2026-03-29T11:00:00Z", "day", "Europe/Berlin")`: `1`,
		`dateDiff("2026-03-28T12:00:00Z", "2026-03-29T11:00:00Z", "day")`:                  `0`,
		`dateDiff("2026-03-29T11:00:00Z", "2026-03-28T12:00:00Z", "day", "Europe/Berlin")`: `-1`,
		`dateParts("2026-07-15T22:30:00Z", "Europe/Berlin").offset`:                        `"+02:00"`,
		`dateParts("2026-11-15T09:30:00.250Z").millisecond`:                                `250`,
		`dateParts("2026-11-15").weekday`:                                                  `7`,
	})
}

func TestMonthsAndYears(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`addMonths("2024-01-31T10:00:00Z", 1)`:                              `"2024-02-29T10:00:00.000Z"`,
		`addMonths("2026-03-31", -1)`:                                       `"2026-02-28T00:00:00.000Z"`,
		`addMonths("2026-12-15", 13)`:                                       `"2028-01-15T00:00:00.000Z"`,
		`addMonths("2026-01-31T23:30:00Z", 1, "Asia/Tokyo")`:                `"2026-02-28T23:30:00.000Z"`, // February 1 in Tokyo
		`addYears("2024-02-29", 4)`:                                         `"2028-02-29T00:00:00.000Z"`,
		`addYears("2026-11-15", -2026)`:                                     `"0000-11-15T00:00:00.000Z"`,
		`dateDiff("2026-01-31", "2026-02-28", "month")`:                     `1`, // as addMonths
		`dateDiff("2026-01-30", "2026-03-29", "month")`:                     `1`,
		`dateDiff("2024-02-29", "2025-02-27", "year")`:                      `0`,
		`dateDiff("2000-01-01", "2026-11-15", "year")`:                      `26`,
		`dateDiff("2026-01-01", "2026-12-31", "quarter")`:                   `3`,
		`dateDiff("2026-11-01", "2026-11-15", "week")`:                      `2`,
		`dateDiff("0001-01-01", "9999-12-31", "day")`:                       `3652058`,
		`dateDiff("2026-11-15", "2026-11-15T00:00:01.999Z", "second")`:      `1`,
		`dateDiff("2026-11-15", "2026-11-15T00:00:01.999Z", "millisecond")`: `1999`,
		`dateDiff("2026-11-15T01:00:00Z", "2026-11-15", "minute")`:          `-60`,
	})
}

func TestParseDate(t *testing.T) {
	t.Parallel()
	evalTable(t, map[string]string{
		`parseDate("2026-11-05T09:30:00.250+0130", "YYYY-MM-DD[T]HH:mm:ss.SSSZ")`:   `"2026-11-05T08:00:00.250Z"`,
		`parseDate("2026-11-05T09:30:00Z", "YYYY-MM-DD[T]HH:mm:ssZ", "Asia/Tokyo")`: `"2026-11-05T09:30:00.000Z"`,
		`parseDate("Thursday, 5 november 26, 12:05 AM", "dddd, D MMMM YY, h:mm A")`: `"2026-11-05T00:05:00.000Z"`,
		`parseDate("12:05 pm 1/2/70", "hh:mm a M/D/YY")`:                            `"1970-01-02T12:05:00.000Z"`,
		`parseDate("20261105", "YYYYMMDD", "America/New_York")`:                     `"2026-11-05T05:00:00.000Z"`,
		`parseDate("um 9 Uhr, 2026", "[um] H [Uhr], YYYY")`:                         `"2026-01-01T09:00:00.000Z"`,
	})
	const mismatch = "argument 1 of parseDate does not have the layout in argument 2"
	failTable(t, map[string]string{
		`parseDate("2026-02-30", "YYYY-MM-DD")`:           mismatch,
		`parseDate("2026-13-01", "YYYY-MM-DD")`:           mismatch,
		`parseDate("2026-11-05 ", "YYYY-MM-DD")`:          mismatch,
		`parseDate("2026-11-5", "YYYY-MM-DD")`:            mismatch,
		`parseDate("24:00 2026", "HH:mm YYYY")`:           mismatch,
		`parseDate("13 pm 2026", "h a YYYY")`:             mismatch,
		`parseDate("2026 +99:00", "YYYY Z")`:              mismatch,
		`parseDate("2026 +", "YYYY Z")`:                   mismatch,
		`parseDate("", "A YYYY")`:                         mismatch,
		`parseDate("5 Nov", "D MMM")`:                     "argument 2 of parseDate needs the year: YYYY or YY",
		`parseDate("2026", "YYYY", "Berlin")`:             "argument 3 of parseDate is not a time zone such as Europe/Paris",
		`date("2026-11-15", "../../etc/passwd")`:          "argument 2 of date is not a time zone such as Europe/Paris",
		`date("2026-11-15", "Local")`:                     "argument 2 of date is not a time zone such as Europe/Paris",
		`date("2026-11-15", "Europe//Paris")`:             "argument 2 of date is not a time zone such as Europe/Paris",
		`date("2026-11-15", "")`:                          "argument 2 of date is not a time zone such as Europe/Paris",
		`startOf(now(), "decade")`:                        `argument 2 of startOf must be "hour", "day", "week", "month", "quarter" or "year"`,
		`startOf(now(), "week", "UTC", "friday")`:         `argument 4 of startOf must be "monday" or "sunday"`,
		`dateDiff(now(), now(), "days")`:                  `argument 3 of dateDiff must be "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter" or "year"`,
		`addDays(now(), 9223372036854775807)`:             "the time is outside of the years 0 to 9999",
		`addMonths(now(), -9223372036854775807)`:          "the time is outside of the years 0 to 9999",
		`addYears(now(), 1.5)`:                            "argument 2 of addYears must be a whole number, got float",
		`endOf("9999-12-31", "year", "America/New_York")`: "the time is outside of the years 0 to 9999",
	})
}

// What formatDate writes, parseDate reads, in any zone and across clock changes.
func TestParseDateReadsFormatDate(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(-2e12, 4e12).Draw(rt, "at")).UTC()
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu"}).Draw(rt, "zone")
		layout := rapid.SampledFrom([]string{"YYYY-MM-DD HH:mm:ss.SSS Z", "dddd, D MMMM YYYY h:m:s.SSS a Z", "ddd D MMM YYYY H:mm:ss.SSS Z"}).Draw(rt, "layout")
		location, err := time.LoadLocation(zone)
		if err != nil {
			rt.Fatal(err)
		}
		if _, seconds := at.In(location).Zone(); seconds%60 != 0 {
			rt.Skip("an offset with seconds cannot be written")
		}
		text := at.Format("2006-01-02T15:04:05.000Z")
		source := fmt.Sprintf("parseDate(formatDate(%q, %q, %q), %q, %q)", text, layout, zone, layout, zone)
		if got := eval(t, source); got != `"`+text+`"` {
			rt.Fatalf("%s = %s", source, got)
		}
	})
}

// Every moment lies between the start and the end of its unit, and adding what
// dateDiff counts never passes the second time.
func TestUnitsContainTheirMoments(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(rt *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(-2e12, 4e12).Draw(rt, "at")).UTC().Format("2006-01-02T15:04:05.000Z")
		then := time.UnixMilli(rapid.Int64Range(-2e12, 4e12).Draw(rt, "then")).UTC().Format("2006-01-02T15:04:05.000Z")
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/Havana", "Pacific/Apia", "Australia/Lord_Howe", "America/Toronto"}).Draw(rt, "zone")
		unit := rapid.SampledFrom([]string{"hour", "day", "week", "month", "quarter", "year"}).Draw(rt, "unit")
		source := fmt.Sprintf(`let t = date(%q); let a = startOf(t, %q, %q); let b = endOf(t, %q, %q); a <= t && t <= b && startOf(b, %q, %q) == a && startOf(a, %q, %q) == a`,
			at, unit, zone, unit, zone, unit, zone, unit, zone)
		if got := eval(t, source); got != "true" {
			rt.Fatalf("%s = %s", source, got)
		}
		source = fmt.Sprintf(`let a = date(%q); let b = date(%q); let n = dateDiff(a, b, "month", %q); b < a || addMonths(a, n, %q) <= b && addMonths(a, n + 1, %q) > b`,
			at, then, zone, zone, zone)
		if got := eval(t, source); got != "true" {
			rt.Fatalf("%s = %s", source, got)
		}
	})
}
