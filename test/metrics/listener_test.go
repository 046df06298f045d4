package metrics_test

import (
	"bufio"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
)

// The exported metrics are exactly those in the documentation.
func TestMetricsMatchDocumentation(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.call(t, s.Key, "GET", "/v1/workflows", nil)
	if diff := cmp.Diff(documented(t, "PostgreSQL"), s.metricNames(t)); diff != "" {
		t.Errorf("metrics (-documented +exported):\n%s", diff)
	}
	for _, part := range []string{"go_goroutines ", "process_cpu_seconds_total ", `stepmill_build_info{go_version="go`, `role="serve"} 1`} {
		if !strings.Contains(s.text(t), part) {
			t.Errorf("the metrics do not contain %s", part)
		}
	}
}

// metricNames returns the names and types of the exported metrics.
func (s *service) metricNames(t *testing.T) (names []string) {
	t.Helper()
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (stepmill_\w+) (\w+)$`).FindAllStringSubmatch(s.text(t), -1) {
		names = append(names, match[1]+" "+match[2])
	}
	return names
}

// documented returns the metrics in the documentation, without those of another
// database.
func documented(t *testing.T, without string) (names []string) {
	t.Helper()
	file, err := os.Open("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	row := regexp.MustCompile("^\\| `(stepmill_\\w+)` \\| (\\w+) \\|.*?\\| (.*) \\|$")
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if match := row.FindStringSubmatch(lines.Text()); len(match) == 4 && !strings.HasPrefix(match[3], without+": ") {
			names = append(names, match[1]+" "+match[2])
		}
	}
	slices.Sort(names)
	return names
}

// Metrics expose nothing of a workspace: no names, ids, paths or values.
func TestMetricsExposeNoTenantData(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	r := newReceiver(t)
	key := s.tenant(t, "pro")
	const canary = "canary7c1f"
	s.expect(t, key, 201, "PUT", "/v1/secrets/"+canary, map[string]any{"value": canary + "-value"}, "")
	broken := step(canary, "data.set", map[string]any{"values": map[string]any{"x": "${{ trigger.payload." + canary + ".x + 1 }}"}})
	broken["on_error"] = "continue"
	wf := s.workflow(t, key, canary, broken, fetch(canary+"2", r.URL+"/"+canary+"?secret=${{ secrets."+canary+" }}"),
		step("stop", "flow.stop", map[string]any{"status": "failed", "message": canary}))
	hook := s.expect(t, key, 201, "POST", "/v1/webhooks", map[string]any{"url": r.URL + "/" + canary, "events": []string{"run.failed"}}, "id")
	s.run(t, key, wf)
	s.call(t, key, "GET", "/v1/"+canary, nil)
	s.call(t, key, strings.ToUpper(canary), "/v1/workflows/"+wf, nil)
	s.eventually(t, sample{`stepmill_webhook_attempts_total{outcome="delivered"}`: 1, `stepmill_run_failures_total{code="stopped"}`: 1})
	text := strings.ToLower(s.text(t))
	for _, forbidden := range []string{canary, "canary tenant", wf, hook, "wf_", "run_0", "ws_", "key_0", "evt_", "dlv_", strings.ToLower(key), strings.TrimPrefix(r.URL, "http://")} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the metrics contain %q", forbidden)
		}
	}
}

// The listener serves metrics and health checks, and nothing else.
func TestMetricsListener(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	for path, status := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200, "/debug/pprof/": 404, "/debug/pprof/heap": 404, "/": 404, "/v1/workflows": 404, "/v1/openapi.json": 404,
	} {
		s.metrics.Expect(t, status, "GET", path, nil)
	}
	s.Expect(t, 404, "GET", "/metrics", nil)
	s.Expect(t, 404, "GET", "/debug/pprof/", nil)

	profiled := start(t, t.TempDir(), "--metrics-pprof")
	if body := profiled.metrics.Expect(t, 200, "GET", "/debug/pprof/goroutine?debug=1", nil).Body; !strings.Contains(string(body), "goroutine profile") {
		t.Errorf("%s", body)
	}
	profiled.metrics.Expect(t, 404, "GET", "/debug/pprof/cmdline", nil)
	profiled.Expect(t, 404, "GET", "/debug/pprof/", nil)
}

// During shutdown the metrics are still served and report that the service is not
// ready.
func TestMetricsDuringShutdown(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--drain-delay", "1h")
	s.Signal(t, syscall.SIGTERM)
	s.eventually(t, sample{"stepmill_ready": 0})
	response := s.metrics.Expect(t, http.StatusServiceUnavailable, "GET", "/readyz", nil)
	if !strings.Contains(string(response.Body), "shutting down") {
		t.Errorf("%s", response.Body)
	}
	s.Signal(t, syscall.SIGTERM) // the second signal ends it at once
	s.Wait(t)
}

// In safe mode runs are accepted and stay queued, as the metrics show.
func TestSafeModeMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	wf := first.workflow(t, first.Key, "one", set("a"))
	first.Stop(t)
	for range 5 {
		harness.StartProcess(t, harness.Options{Dir: dir, Failpoint: "at_start:exit"}).Wait(t)
	}
	s := harness.StartProcess(t, harness.Options{Dir: dir, Args: withMetrics})
	s.AwaitListening(t)
	safe := watch(t, s)
	safe.expect(t, first.Key, 201, "POST", "/v1/workflows/"+wf+"/runs", map[string]any{}, "id")
	safe.eventually(t, sample{"stepmill_ready": 0, "stepmill_runs_queued": 1, "stepmill_runs_active": 0})
	if age := safe.scrape(t)["stepmill_runs_oldest_ready_seconds"]; age <= 0 {
		t.Errorf("age of the oldest ready run is %v, want more than 0", age)
	}
}

// An open stream is counted as a stream, not as a slow request.
func TestStreamMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	response, err := s.Open(t.Context(), "GET", "/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.eventually(t, sample{"stepmill_http_streams": 1})
	if n := s.scrape(t)["stepmill_http_connections"]; n < 1 {
		t.Errorf("%v connections, want at least 1", n)
	}
	response.Body.Close()
	s.eventually(t, sample{
		"stepmill_http_streams": 0,
		`stepmill_http_requests_total{method="GET",route="/v1/events/stream",status="2xx"}`:    1,
		`stepmill_http_request_duration_seconds_count{method="GET",route="/v1/events/stream"}`: 0,
	})
}
