package metrics_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunAndStepMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	r := newReceiver(t)
	s.eventually(t, sample{"stepmill_runs_started_total": 0, `stepmill_runs_ended_total{status="succeeded"}`: 0, "stepmill_ready": 1})

	three := s.workflow(t, s.Key, "three", set("a"), set("b"), set("c"))
	for range 5 {
		if status := s.run(t, s.Key, three); status != "succeeded" {
			t.Fatal(status)
		}
	}
	failing := fetch("a", r.URL+"/500")
	failing["retry"] = map[string]any{"max_attempts": 3, "initial": "10ms", "max_delay": "20ms"}
	s.run(t, s.Key, s.workflow(t, s.Key, "failing", failing, set("never")))
	s.run(t, s.Key, s.workflow(t, s.Key, "denied", fetch("a", "http://192.0.2.1:22/")))
	// A step reaches neither of the listeners, although loopback is allowed.
	api, metrics := fetch("api", s.URL+"/healthz"), fetch("metrics", s.metrics.URL+"/metrics")
	api["on_error"] = "continue"
	s.run(t, s.Key, s.workflow(t, s.Key, "own", api, metrics))
	s.run(t, s.Key, s.workflow(t, s.Key, "script", step("a", "code.js", map[string]any{"code": "return 1"})))
	s.run(t, s.Key, s.workflow(t, s.Key, "stopped", step("a", "flow.stop", map[string]any{"status": "failed"})))
	waits := s.workflow(t, s.Key, "waits", step("a", "flow.wait", map[string]any{"for": "1h"}))
	id := s.expect(t, s.Key, 201, "POST", "/v1/workflows/"+waits+"/runs", map[string]any{}, "id")
	s.eventually(t, sample{`stepmill_steps_total{action="flow.wait",outcome="waiting"}`: 1, "stepmill_runs_active": 0})
	s.expect(t, s.Key, 200, "POST", "/v1/runs/"+id+"/cancel", nil, "")

	s.eventually(t, sample{
		"stepmill_runs_started_total":                                        11,
		`stepmill_runs_ended_total{status="succeeded"}`:                      6,
		`stepmill_runs_ended_total{status="failed"}`:                         4,
		`stepmill_runs_ended_total{status="cancelled"}`:                      1,
		`stepmill_run_failures_total{code="http_error"}`:                     1,
		`stepmill_run_failures_total{code="egress_denied"}`:                  2,
		`stepmill_run_failures_total{code="stopped"}`:                        1,
		`stepmill_steps_total{action="data.set",outcome="succeeded"}`:        15,
		`stepmill_steps_total{action="data.set",outcome="failed"}`:           0,
		`stepmill_steps_total{action="http.request",outcome="retried"}`:      2,
		`stepmill_steps_total{action="http.request",outcome="failed"}`:       4,
		`stepmill_steps_total{action="code.js",outcome="succeeded"}`:         1,
		`stepmill_step_failures_total{code="http_error"}`:                    3,
		`stepmill_step_failures_total{code="egress_denied"}`:                 3,
		`stepmill_step_duration_seconds_count{action="data.set"}`:            15,
		`stepmill_step_duration_seconds_count{action="http.request"}`:        6,
		`stepmill_egress_calls_total{outcome="answered"}`:                    3,
		`stepmill_egress_calls_total{outcome="egress_denied"}`:               3,
		`stepmill_engine_leases_lost_total`:                                  0,
		`stepmill_engine_actions_stuck`:                                      0,
		"stepmill_sandbox_processes":                                         1,
		"stepmill_sandbox_processes_started_total":                           1,
		"stepmill_sandbox_scripts_running":                                   0,
		"stepmill_sandbox_scripts_waiting":                                   0,
		"stepmill_runs_queued":                                               0,
		"stepmill_runs_oldest_ready_seconds":                                 0,
		`stepmill_step_duration_seconds_bucket{action="data.set",le="+Inf"}`: 15,
	})
}

// Runs beyond the concurrency limit are queued, and the metrics show for how long.
func TestQueueMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	r := newReceiver(t)
	key := s.tenant(t, "free")
	held := s.workflow(t, key, "held", fetch("a", r.URL+"/held"))
	for range 7 {
		s.expect(t, key, 201, "POST", "/v1/workflows/"+held+"/runs", map[string]any{}, "id")
	}
	s.eventually(t, sample{"stepmill_runs_active": 5, "stepmill_runs_queued": 2, `stepmill_egress_calls_total{outcome="answered"}`: 0})
	const oldest = "stepmill_runs_oldest_ready_seconds"
	before := s.scrape(t)[oldest]
	if before <= 0 {
		t.Errorf("age of the oldest ready run is %v, want more than 0", before)
	}
	s.await(t, func(got sample) []string {
		if got[oldest] < before+0.5 {
			return []string{fmt.Sprintf("age of the oldest ready run was %v, then %v", before, got[oldest])}
		}
		return nil
	})
	r.release()
	s.eventually(t, sample{
		"stepmill_runs_active": 0, "stepmill_runs_queued": 0, "stepmill_runs_oldest_ready_seconds": 0,
		`stepmill_runs_ended_total{status="succeeded"}`: 7, `stepmill_egress_calls_total{outcome="answered"}`: 7,
	})
}

// tenant makes a workspace and returns its key.
func (s *service) tenant(t *testing.T, plan string) string {
	t.Helper()
	return s.expect(t, s.Key, 201, "POST", "/v1/workspaces", map[string]any{"name": "Canary Tenant", "plan": plan}, "api_key")
}

// Exactly the responses that clients got are counted, by route, class and code.
func TestRequestMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	key := s.tenant(t, "free")
	wf := s.workflow(t, key, "one", set("a"))
	for range 3 {
		s.call(t, key, "GET", "/v1/workflows/"+wf, nil)
	}
	s.call(t, key, "GET", "/v1/workflows/wf_01m7fe3gv0es8r65rzyjka792g", nil)                       // 404
	s.call(t, "", "GET", "/v1/workflows", nil)                                                      // 401
	s.call(t, key, "GET", "/v1/nothing", nil)                                                       // no route
	s.call(t, key, "DELETE", "/v1/audit", nil)                                                      // no such method
	s.call(t, key, "PATCH", "/v1/workflows/"+wf, map[string]any{"nonsense": 1})                     // 400
	s.call(t, key, "PATCH", "/v1/workflows/"+wf, map[string]any{"name": "two"}, "If-Match", `"99"`) // 412
	large := map[string]any{"payload": map[string]any{"x": strings.Repeat("x", 300<<10)}}
	s.call(t, key, "POST", "/v1/workflows/"+wf+"/runs", large)                                              // 413
	s.call(t, key, "PATCH", "/v1/workflows/"+wf, map[string]any{"steps": []any{step("x", "no.such", nil)}}) // 422
	many := make([]map[string]any, 51)
	for i := range many {
		many[i] = set(fmt.Sprintf("s%d", i))
	}
	s.call(t, key, "PATCH", "/v1/workflows/"+wf, map[string]any{"steps": many}) // more steps than the plan allows
	asked := 0.0                                                                // the plan allows 60 a minute
	for deadline := time.Now().Add(timeout); s.codes["rate_limited"] < 10 && time.Now().Before(deadline); asked++ {
		s.call(t, key, "GET", "/v1/usage", nil)
	}
	if len(s.codes) < 9 || s.codes["rate_limited"] < 10 {
		t.Errorf("got too few kinds of errors: %v", s.codes)
	}

	want := sample{}
	for code, n := range s.codes {
		want[`stepmill_http_errors_total{code="`+code+`"}`] = n
	}
	s.eventually(t, want)
	got := s.scrape(t)
	if n := got.sum("stepmill_http_errors_total"); n != total(s.codes) {
		t.Errorf("%v errors are counted, want %v", n, total(s.codes))
	}
	// The harness polls /readyz.
	ready := got.sum("stepmill_http_requests_total", `route="/readyz"`)
	if n := got.sum("stepmill_http_requests_total") - ready; n != total(s.classes) {
		t.Errorf("%v requests are counted, want %v", n, total(s.classes))
	}
	unmatched := got.sum("stepmill_http_requests_total", `route="unmatched"`)
	for class, n := range s.classes {
		method, status, _ := strings.Cut(class, " ")
		counted := got.sum("stepmill_http_requests_total", `method="`+method+`"`, `status="`+status+`"`)
		if class == "GET 2xx" {
			counted -= ready
		}
		if counted != n && (status != "4xx" || counted < n-unmatched) {
			t.Errorf("%s: %v responses are counted, want %v", class, counted, n)
		}
	}
	for name, n := range (sample{
		`stepmill_http_requests_total{method="GET",route="/v1/workflows/{id}",status="2xx"}`: 3,
		`stepmill_http_requests_total{method="GET",route="/v1/workflows/{id}",status="4xx"}`: 1,
		`stepmill_http_requests_total{method="any",route="unmatched",status="4xx"}`:          2,
		`stepmill_http_request_duration_seconds_count{method="GET",route="/v1/usage"}`:       asked,
	}) {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
}

func total(counts map[string]float64) (n float64) {
	for _, count := range counts {
		n += count
	}
	return n
}

func TestDeliveryMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	r := newReceiver(t)
	wf := s.workflow(t, s.Key, "one", set("a"))
	hook := func(path string) {
		s.expect(t, s.Key, 201, "POST", "/v1/webhooks", map[string]any{"url": r.URL + path, "events": []string{"run.succeeded"}}, "id")
	}
	hook("/good")
	for range 4 {
		s.run(t, s.Key, wf)
	}
	s.eventually(t, sample{
		`stepmill_webhook_attempts_total{outcome="delivered"}`: 4, "stepmill_webhook_attempt_duration_seconds_count": 4,
		"stepmill_webhook_attempts_in_flight": 0, "stepmill_webhook_oldest_undelivered_seconds": 0, "stepmill_webhook_oldest_due_seconds": 0,
	})
	hook("/500")
	hook("/held")
	s.run(t, s.Key, wf)
	s.eventually(t, sample{
		`stepmill_webhook_attempts_total{outcome="delivered"}`: 5, `stepmill_webhook_attempts_total{outcome="failed"}`: 1,
		`stepmill_webhook_attempts_total{outcome="exhausted"}`: 0, "stepmill_webhook_attempts_in_flight": 1,
	})
	if got := s.scrape(t); got["stepmill_webhook_oldest_undelivered_seconds"] <= 0 || got["stepmill_webhook_oldest_due_seconds"] <= 0 {
		t.Errorf("oldest undelivered is %v s, oldest due is %v s, want more than 0", got["stepmill_webhook_oldest_undelivered_seconds"], got["stepmill_webhook_oldest_due_seconds"])
	}
	r.release()
	s.eventually(t, sample{`stepmill_webhook_attempts_total{outcome="delivered"}`: 6, "stepmill_webhook_oldest_due_seconds": 0})
}

func TestStoreMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	before := s.scrape(t)
	const made = 20
	for i := range made {
		s.expect(t, s.Key, 201, "POST", "/v1/workflows", map[string]any{"name": fmt.Sprint(i)}, "id")
	}
	// Maintenance also writes to the store.
	s.await(t, func(after sample) (wrong []string) {
		const done = `stepmill_store_transactions_total{outcome="done"}`
		if n := after[done] - before[done]; n < made {
			wrong = append(wrong, fmt.Sprintf("%d workflows were written in %v transactions", made, n))
		}
		if after["stepmill_store_group_transactions_count"] != after["stepmill_store_commit_duration_seconds_count"] ||
			after["stepmill_store_group_transactions_sum"] != after.sum("stepmill_store_transactions_total") || after.sum("stepmill_store_errors_total") != 0 {
			wrong = append(wrong, fmt.Sprint(after))
		}
		for name, metric := range map[string]string{"stepmill.db": "stepmill_sqlite_file_bytes", "stepmill.db-wal": "stepmill_sqlite_wal_bytes"} {
			info, err := os.Stat(filepath.Join(s.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := after[metric]; got != float64(info.Size()) || got == 0 {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want the file size %d", metric, got, info.Size()))
			}
		}
		return wrong
	})
}

// After a crash the next process counts the runs it resumed, and its other counters start
// at zero.
func TestMetricsAfterRestart(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	r := newReceiver(t)
	held := s.workflow(t, s.Key, "held", fetch("a", r.URL+"/held"))
	for range 3 {
		s.expect(t, s.Key, 201, "POST", "/v1/workflows/"+held+"/runs", map[string]any{}, "id")
	}
	s.eventually(t, sample{"stepmill_runs_active": 3, "stepmill_runs_resumed_total": 0})
	s.Kill(t)
	again := start(t, s.Dir)
	again.eventually(t, sample{"stepmill_runs_active": 3, "stepmill_runs_resumed_total": 3, "stepmill_runs_started_total": 0})
	r.release()
	again.eventually(t, sample{"stepmill_runs_active": 0, `stepmill_runs_ended_total{status="succeeded"}`: 3})
}
