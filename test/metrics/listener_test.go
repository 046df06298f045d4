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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
)

// What is shown is what the documentation lists, and all of it.
func TestNames(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.call(t, s.Key, "GET", "/v1/workflows", nil)
	if diff := cmp.Diff(documented(t, "PostgreSQL"), s.shown(t)); diff != "" {
		t.Errorf("(-documented +shown):\n%s", diff)
	}
	for _, part := range []string{"go_goroutines ", "process_cpu_seconds_total ", `stepmill_build_info{go_version="go`, `role="serve"} 1`} {
		if !strings.Contains(s.text(t), part) {
			t.Errorf("there is no %s", part)
		}
	}
}

// shown are the names and kinds of what is told.
func (s *service) shown(t *testing.T) (names []string) {
	t.Helper()
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (stepmill_\w+) (\w+)$`).FindAllStringSubmatch(s.text(t), -1) {
		names = append(names, match[1]+" "+match[2])
	}
	return names
}

// documented are those of the documentation, without what only another database
// has.
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

// Nothing that belongs to a workspace is shown: no name, no id, no path, no
// value.
func TestNothingOfAWorkspaceIsShown(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	r := newReceiver(t)
	key := s.tenant(t, "pro")
	const canary = "canary7c1f"
	s.must(t, key, 201, "PUT", "/v1/secrets/"+canary, map[string]any{"value": canary + "-value"}, "")
	broken := step(canary, "data.set", map[string]any{"values": map[string]any{"x": "${{ trigger.payload." + canary + ".x + 1 }}"}})
	broken["on_error"] = "continue"
	wf := s.workflow(t, key, canary, broken, fetch(canary+"2", r.URL+"/"+canary+"?secret=${{ secrets."+canary+" }}"),
		step("stop", "flow.stop", map[string]any{"status": "failed", "message": canary}))
	hook := s.must(t, key, 201, "POST", "/v1/webhooks", map[string]any{"url": r.URL + "/" + canary, "events": []string{"run.failed"}}, "id")
	s.run(t, key, wf)
	s.call(t, key, "GET", "/v1/"+canary, nil)
	s.call(t, key, strings.ToUpper(canary), "/v1/workflows/"+wf, nil)
	s.eventually(t, sample{`stepmill_webhook_attempts_total{outcome="delivered"}`: 1, `stepmill_run_failures_total{code="stopped"}`: 1})
	text := strings.ToLower(s.text(t))
	for _, tabu := range []string{canary, "canary tenant", wf, hook, "wf_", "run_0", "ws_", "key_0", "evt_", "dlv_", strings.ToLower(key), strings.TrimPrefix(r.URL, "http://")} {
		if strings.Contains(text, tabu) {
			t.Errorf("the metrics show %q", tabu)
		}
	}
}

// The listener shows what it is there for, and nothing else.
func TestTheListener(t *testing.T) {
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

// While the service stops, its metrics can still be watched, and say that it is
// not ready.
func TestAStopCanBeWatched(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir(), "--drain-delay", "2s")
	s.Signal(t, syscall.SIGTERM)
	s.eventually(t, sample{"stepmill_ready": 0})
	answer := s.metrics.Expect(t, http.StatusServiceUnavailable, "GET", "/readyz", nil)
	if !strings.Contains(string(answer.Body), "shutting down") {
		t.Errorf("%s", answer.Body)
	}
	if exit := s.Wait(t, 30*time.Second); exit.Code != 0 {
		t.Errorf("exit code %d", exit.Code)
	}
	if _, err := s.metrics.Do(t.Context(), "GET", "/healthz", nil); err == nil {
		t.Error("the listener has outlived the service")
	}
}

// In safe mode runs are accepted and wait, and that shows.
func TestSafeMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	wf := first.workflow(t, first.Key, "one", set("a"))
	first.Stop(t)
	for range 5 {
		s, err := harness.Spawn(harness.Options{Dir: dir, Fail: "at_start:exit"})
		if err != nil {
			t.Fatal(err)
		}
		<-s.Gone()
	}
	s, err := harness.Spawn(harness.Options{Dir: dir, Args: withMetrics})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t)
	if err := s.AwaitReadyLine(); err != nil {
		t.Fatal(err)
	}
	safe := &service{Server: s, codes: map[string]float64{}, classes: map[string]float64{}}
	safe.metrics = harness.NewClient("http://"+s.AwaitLog(t, `"msg":"metrics are served","address":"([^"]+)"`), "")
	safe.must(t, first.Key, 201, "POST", "/v1/workflows/"+wf+"/runs", map[string]any{}, "id")
	safe.eventually(t, sample{"stepmill_ready": 0, "stepmill_runs_queued": 1, "stepmill_runs_active": 0})
	if age := safe.scrape(t)["stepmill_runs_oldest_ready_seconds"]; age <= 0 {
		t.Errorf("the run has waited for %v", age)
	}
}

// A stream is open for as long as its client wants, and is no slow request.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	response, err := s.Open(t.Context(), "GET", "/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.eventually(t, sample{"stepmill_http_streams": 1})
	if n := s.scrape(t)["stepmill_http_connections"]; n < 1 {
		t.Errorf("%v connections", n)
	}
	response.Body.Close()
	s.eventually(t, sample{
		"stepmill_http_streams": 0,
		`stepmill_http_requests_total{method="GET",route="/v1/events/stream",status="2xx"}`:    1,
		`stepmill_http_request_duration_seconds_count{method="GET",route="/v1/events/stream"}`: 0,
	})
}
