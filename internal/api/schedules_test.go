package api_test

import (
	"net/url"
	"testing"
	"time"
)

func TestPreviewSchedule(t *testing.T) {
	path := func(query ...string) string {
		values := url.Values{}
		for i := 0; i < len(query); i += 2 {
			values.Set(query[i], query[i+1])
		}
		return "GET /v1/schedules/preview?" + values.Encode()
	}
	runScenarios(t, []scenario{
		{
			name: "five times in the time zone", request: path("cron", "30 3 * * *", "timezone", "Asia/Kolkata"), scope: "read", status: 200,
			after: func(w *testWorkspace, a *response) {
				times := previewed(w.t, a)
				if len(times) != 5 {
					w.t.Fatalf("%d times", len(times))
				}
				for i, at := range times {
					if at.Hour() != 22 || at.Minute() != 0 { // 03:30 in Kolkata
						w.t.Errorf("it fires at %s", at)
					}
					if i > 0 && at.Sub(times[i-1]) != 24*time.Hour {
						w.t.Errorf("%s comes after %s", at, times[i-1])
					}
				}
			},
		},
		{
			name: "as many as requested", request: path("cron", "@hourly", "count", "20"), status: 200,
			after: func(w *testWorkspace, a *response) {
				if times := previewed(w.t, a); len(times) != 20 || !times[0].After(time.Now()) {
					w.t.Errorf("%v", times)
				}
			},
		},
		{name: "an interval", request: path("cron", "@every 15m", "count", "1"), status: 200},
		{name: "cron is required", request: "GET /v1/schedules/preview", status: 400, code: "invalid_request", message: "cron"},
		{name: "an invalid expression", request: path("cron", "60 * * * *"), status: 400, code: "invalid_request", message: "cron"},
		{name: "a day that does not exist", request: path("cron", "0 0 31 2 *"), status: 400, code: "invalid_request", message: "cron"},
		{name: "an unknown time zone", request: path("cron", "@daily", "timezone", "Moon/Base"), status: 400, code: "invalid_request", message: "timezone"},
		{name: "too many", request: path("cron", "@daily", "count", "21"), status: 400, code: "invalid_request", message: "count"},
		{name: "none", request: path("cron", "@daily", "count", "0"), status: 400, code: "invalid_request", message: "count"},
	})
}

func previewed(t *testing.T, a *response) []time.Time {
	t.Helper()
	var out []time.Time
	for _, text := range a.object()["times"].([]any) {
		at, err := time.Parse(time.RFC3339, text.(string))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, at)
	}
	return out
}
