package cron_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/cron"
)

func parse(t *testing.T, text, zone string) *cron.Schedule {
	t.Helper()
	at, err := cron.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cron.Parse(text, at)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

func parseTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The expected times are in UTC.
func TestNext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, cron, zone, after string
		want                    string
	}{
		{"every minute", "* * * * *", "UTC", "2026-11-15T09:30:00Z", "2026-11-15T09:31:00Z 2026-11-15T09:32:00Z"},
		{"just before a match", "30 9 * * *", "UTC", "2026-11-15T09:29:59.999999Z", "2026-11-15T09:30:00Z 2026-11-16T09:30:00Z"},
		{"exactly at a match", "30 9 * * *", "UTC", "2026-11-15T09:30:00Z", "2026-11-16T09:30:00Z"},
		{"steps and ranges", "*/20 8-9 * * MON-fri", "UTC", "2026-11-13T09:20:00Z", "2026-11-13T09:40:00Z 2026-11-16T08:00:00Z"},
		{"a range over midnight", "0 22-1 * * *", "UTC", "2026-11-15T22:30:00Z", "2026-11-15T23:00:00Z 2026-11-16T00:00:00Z 2026-11-16T01:00:00Z 2026-11-16T22:00:00Z"},
		{"names", "0 0 1 JAN,jul THU", "UTC", "2026-06-30T00:00:00Z", "2026-07-01T00:00:00Z 2026-07-02T00:00:00Z"},
		{"Sunday is 0 and 7", "0 0 * * 7", "UTC", "2026-11-15T09:30:00Z", "2026-11-22T00:00:00Z"},
		{"either day is enough", "0 0 13 * 5", "UTC", "2026-11-10T00:00:00Z", "2026-11-13T00:00:00Z 2026-11-20T00:00:00Z 2026-11-27T00:00:00Z 2026-12-04T00:00:00Z 2026-12-11T00:00:00Z 2026-12-13T00:00:00Z"},
		{"month ends", "0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z 2026-05-31T00:00:00Z"},
		{"leap days", "0 12 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T12:00:00Z 2032-02-29T12:00:00Z"},
		{"leap days around a common century year", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"descriptors", "@monthly", "UTC", "2026-11-15T09:30:00Z", "2026-12-01T00:00:00Z"},
		{"every hour", "@hourly", "UTC", "2026-11-15T09:30:00Z", "2026-11-15T10:00:00Z"},
		{"an interval", "@every 1h30m", "UTC", "2026-11-15T09:30:00Z", "2026-11-15T11:00:00Z 2026-11-15T12:30:00Z"},
		{"a zone with an offset of 45 minutes", "0 9 * * *", "Asia/Kathmandu", "2026-11-15T00:00:00Z", "2026-11-15T03:15:00Z"},
		{"a zone far ahead", "0 0 * * *", "Pacific/Kiritimati", "2026-11-15T09:30:00Z", "2026-11-15T10:00:00Z"},
		{"a zone far behind", "0 0 * * *", "Pacific/Pago_Pago", "2026-11-15T10:30:00Z", "2026-11-15T11:00:00Z"},

		{"Paris, forward: 02:30 does not exist", "30 2 * * *", "Europe/Paris", "2026-03-28T00:00:00Z",
			"2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"Paris, forward: skipped times collapse into one", "0,30 2-3 * * *", "Europe/Paris", "2026-03-28T12:00:00Z",
			"2026-03-29T01:00:00Z 2026-03-29T01:30:00Z 2026-03-30T00:00:00Z"},
		{"Paris, back: 02:30 occurs twice and fires once", "30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z",
			"2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"Paris, back: an hourly schedule does not pause", "0 * * * *", "Europe/Paris", "2026-10-24T23:30:00Z",
			"2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z"},
		{"Paris, back: a half-hourly schedule does not pause", "*/30 * * * *", "Europe/Paris", "2026-10-25T00:00:00Z",
			"2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z 2026-10-25T02:00:00Z"},
		{"New York, forward", "15 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			"2026-03-08T07:00:00Z 2026-03-09T06:15:00Z"},
		{"New York, back", "15 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			"2026-11-01T05:15:00Z 2026-11-02T06:15:00Z"},
		{"Lord Howe, forward by half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00Z",
			"2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"Lord Howe, back by half an hour", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z",
			"2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		{"Santiago: midnight does not exist", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z",
			"2026-09-06T04:00:00Z 2026-09-07T03:00:00Z"},
		{"St. John's, back at one minute past midnight", "* * * * *", "America/St_Johns", "2001-10-28T02:29:00Z",
			"2001-10-28T02:30:00Z 2001-10-28T02:31:00Z 2001-10-28T02:32:00Z"},
		{"Samoa: a day does not exist", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z 2012-12-29T22:00:00Z"},
		{"an interval ignores transitions", "@every 24h", "Europe/Paris", "2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, at := parse(t, tc.cron, tc.zone), parseTime(t, tc.after)
			for want := range strings.FieldsSeq(tc.want) {
				at = s.Next(at)
				if got := at.Format(time.RFC3339); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		})
	}
}

func TestRejectsInvalidSchedules(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "*", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 * ", "* * * * 8",
		"a * * * *", "*/0 * * * *", "1-2-3 * * * *", "@never", "@every", "@every soon", "@every 0s", "@every -5m", "@reboot",
		"TZ=Europe/Paris * * * * *", "CRON_TZ=UTC 0 0 * * *", "0 0 L * *", "0 0 * * MON#1", "H * * * *",
	} {
		if _, err := cron.Parse(text, time.UTC); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	for _, text := range []string{"0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"} {
		if _, err := cron.Parse(text, time.UTC); !errors.Is(err, cron.ErrNever) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, name := range []string{"Local", "Paris", "europe/nowhere", " UTC", "../../etc/passwd", "+02:00"} {
		if _, err := cron.Zone(name); err == nil {
			t.Errorf("the zone %q was accepted", name)
		}
	}
}
