package telemetry_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/telemetry"
)

// serve starts a listener with the metrics of the sources.
func serve(t *testing.T, o telemetry.Options, sources ...telemetry.Source) *httptest.Server {
	t.Helper()
	shown, err := telemetry.New(slog.New(slog.DiscardHandler), sources...)
	if err != nil {
		t.Fatal(err)
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.Warnings == nil {
		o.Warnings = func() []string { return []string{"the log is large"} }
	}
	server := httptest.NewServer(shown.HTTP(o).Handler)
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, server *httptest.Server, method, path string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// ours returns the lines of the stepmill metrics, without comments.
func ours(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "stepmill_") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func TestValues(t *testing.T) {
	t.Parallel()
	times := counter.NewDurations(time.Second, time.Minute)
	times.ObserveDuration(time.Second)
	times.ObserveDuration(2 * time.Second)
	times.ObserveDuration(time.Hour)
	now := time.Now()
	since := now.Add(-90 * time.Second)
	server := serve(t, telemetry.Options{}, func(_ context.Context, s *telemetry.Scrape) {
		s.Set(telemetry.RunsActive, 3)
		s.SetAll(telemetry.RunsEnded, map[string]int64{"failed": 1, "succeeded": 2})
		s.Age(telemetry.RunsOldest, &since, now)
		s.Age(telemetry.WebhookOldest, nil, now)
		s.Age(telemetry.WebhookLate, &now, since)
	}, func(_ context.Context, s *telemetry.Scrape) {
		s.SetHistogram(telemetry.StepDuration, times.Snapshot(), "http.request")
	})
	_, text := get(t, server, "GET", "/metrics")
	want := []string{
		`stepmill_runs_active 3`,
		`stepmill_runs_ended_total{status="failed"} 1`,
		`stepmill_runs_ended_total{status="succeeded"} 2`,
		`stepmill_runs_oldest_ready_seconds 90`,
		`stepmill_scrape_errors_total 0`,
		`stepmill_step_duration_seconds_bucket{action="http.request",le="1"} 1`,
		`stepmill_step_duration_seconds_bucket{action="http.request",le="60"} 2`,
		`stepmill_step_duration_seconds_bucket{action="http.request",le="+Inf"} 3`,
		`stepmill_step_duration_seconds_sum{action="http.request"} 3603`,
		`stepmill_step_duration_seconds_count{action="http.request"} 3`,
		`stepmill_webhook_oldest_due_seconds 0`,
		`stepmill_webhook_oldest_undelivered_seconds 0`,
	}
	if diff := cmp.Diff(want, ours(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, part := range []string{"\ngo_goroutines ", "\n# TYPE stepmill_runs_ended_total counter\n", "\n# TYPE stepmill_runs_active gauge\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("missing %q", part)
		}
	}
}

// A failing source affects only its own values, and the failure is counted.
func TestFailingSource(t *testing.T) {
	t.Parallel()
	server := serve(t, telemetry.Options{},
		func(context.Context, *telemetry.Scrape) { panic("scripted") },
		func(_ context.Context, s *telemetry.Scrape) { s.Failed(errors.New("the store does not respond")) },
		func(_ context.Context, s *telemetry.Scrape) { s.Set("stepmill_unknown", 1) },
		func(_ context.Context, s *telemetry.Scrape) { s.Set(telemetry.RunsActive, 1, "a label too many") },
		func(_ context.Context, s *telemetry.Scrape) {
			s.SetHistogram(telemetry.StepDuration, counter.Snapshot{})
		},
		func(_ context.Context, s *telemetry.Scrape) { s.Set(telemetry.RunsQueued, 1) },
	)
	for _, times := range []string{"1", "2"} {
		response, text := get(t, server, "GET", "/metrics")
		want := []string{`stepmill_runs_queued 1`, `stepmill_scrape_errors_total ` + times}
		if diff := cmp.Diff(want, ours(text)); diff != "" || response.StatusCode != http.StatusOK {
			t.Errorf("%d (-want +got):\n%s", response.StatusCode, diff)
		}
	}
}

func TestSourcesHaveADeadline(t *testing.T) {
	t.Parallel()
	server := serve(t, telemetry.Options{}, func(ctx context.Context, s *telemetry.Scrape) {
		limit, ok := ctx.Deadline()
		if left := time.Until(limit); !ok || left <= 0 || left > 5*time.Second {
			s.Failed(errors.New("there is no deadline"))
		}
	})
	if _, text := get(t, server, "GET", "/metrics"); !strings.Contains(text, "stepmill_scrape_errors_total 0") {
		t.Error(text)
	}
}

func TestListener(t *testing.T) {
	t.Parallel()
	reason := errors.New("the store does not respond")
	ready := serve(t, telemetry.Options{})
	unready := serve(t, telemetry.Options{Ready: func(context.Context) error { return reason }})
	profiles := serve(t, telemetry.Options{Profiles: true})
	for _, tc := range []struct {
		server       *httptest.Server
		method, path string
		status       int
		body         string
	}{
		{ready, "GET", "/metrics", 200, "go_goroutines"},
		{ready, "HEAD", "/metrics", 200, ""},
		{ready, "GET", "/healthz", 200, `{"status":"ok"}`},
		{ready, "GET", "/readyz", 200, `{"status":"ready","warnings":["the log is large"]}`},
		{unready, "GET", "/healthz", 200, `{"status":"ok"}`},
		{unready, "GET", "/readyz", 503, `{"error":{"code":"unavailable","message":"not ready: the store does not respond"}}`},
		{unready, "GET", "/metrics", 200, "go_goroutines"},
		{ready, "POST", "/metrics", 405, ""},
		{ready, "GET", "/", 404, ""},
		{ready, "GET", "/v1/workflows", 404, ""},
		{ready, "GET", "/debug/pprof/", 404, ""},
		{ready, "GET", "/debug/pprof/heap", 404, ""},
		{profiles, "GET", "/debug/pprof/", 200, "goroutine"},
		{profiles, "GET", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{profiles, "GET", "/debug/pprof/profile?seconds=1", 200, ""},
		{profiles, "GET", "/debug/pprof/cmdline", 404, ""}, // it may contain the master key
	} {
		response, body := get(t, tc.server, tc.method, tc.path)
		if response.StatusCode != tc.status || !strings.Contains(body, tc.body) {
			t.Errorf("%s %s: %d %.200s, want %d %s", tc.method, tc.path, response.StatusCode, body, tc.status, tc.body)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q", tc.method, tc.path, name, got)
			}
		}
		if strings.HasPrefix(body, "{") && !json.Valid([]byte(body)) {
			t.Errorf("%s is not JSON", body)
		}
	}
}

// Names and help texts pass promlint.
func TestMetricsLint(t *testing.T) {
	t.Parallel()
	server := serve(t, telemetry.Options{}, func(_ context.Context, s *telemetry.Scrape) {
		for _, m := range telemetry.Metrics() {
			labels := make([]string, len(m.Labels))
			if m.Kind == telemetry.Histogram {
				s.SetHistogram(m.Name, counter.NewSizes(1).Snapshot(), labels...)
			} else if m.Name != telemetry.ScrapeErrors {
				s.Set(m.Name, 1, labels...)
			}
		}
	})
	_, text := get(t, server, "GET", "/metrics")
	if !strings.Contains(text, "stepmill_scrape_errors_total 0") {
		t.Error("some metrics could not be set")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "stepmill_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}

// The table in the documentation lists exactly the metrics.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	row := regexp.MustCompile("^\\| `(stepmill_\\w+)` \\| (\\w+) \\|(.*?)\\| (.+) \\|$")
	label := regexp.MustCompile("`(\\w+)`")
	type line struct {
		Name, Kind string
		Labels     []string
	}
	var documented, known []line
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if match := row.FindStringSubmatch(lines.Text()); match != nil {
			l := line{Name: match[1], Kind: match[2]}
			for _, found := range label.FindAllStringSubmatch(match[3], -1) {
				l.Labels = append(l.Labels, found[1])
			}
			documented = append(documented, l)
		}
	}
	for _, m := range telemetry.Metrics() {
		known = append(known, line{string(m.Name), string(m.Kind), m.Labels})
	}
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("docs/operations.md and the metrics differ (-metrics +docs):\n%s", diff)
	}
}
