package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

const masterKey = "STEPMILL_MASTER_KEY=0000000000000000000000000000000000000000000000000000000000000000"

// startWorker starts a node that serves no requests.
func startWorker(t *testing.T, env []string) *service {
	t.Helper()
	return watch(t, harness.StartProcess(t, harness.Options{Worker: true, Args: withMetrics, Env: env}))
}

// Nodes that share a database each export their own work, and the same values for what
// is shared.
func TestSharedDatabaseMetrics(t *testing.T) {
	t.Parallel()
	env := []string{"STEPMILL_DATABASE_URL=" + postgres.Shared(t).NewDatabase(t), masterKey, "STEPMILL_NODE_LEASE=5s"}
	s := watch(t, harness.StartWith(t, harness.Options{Dir: t.TempDir(), Args: withMetrics, Env: env}))
	s.call(t, s.Key, "GET", "/v1/workflows", nil)
	s.eventually(t, sample{"stepmill_nodes": 1, "stepmill_ready": 1, "stepmill_node_lost_total": 0, "stepmill_runs_found_total": 0})
	if diff := cmp.Diff(documented(t, "SQLite"), s.metricNames(t)); diff != "" {
		t.Errorf("(-documented +shown):\n%s", diff)
	}

	w := startWorker(t, env)
	s.eventually(t, sample{"stepmill_nodes": 2})
	w.eventually(t, sample{"stepmill_nodes": 2, "stepmill_ready": 1})
	w.metrics.Expect(t, 200, "GET", "/readyz", nil)
	for _, name := range w.metricNames(t) {
		if strings.HasPrefix(name, "stepmill_http_") {
			t.Errorf("a worker exports %s", name)
		}
	}
	if !strings.Contains(w.text(t), `role="worker"} 1`) {
		t.Error("the role of the worker is not exported")
	}

	var list struct {
		Data []struct {
			Role      string
			This      bool
			Runs      int
			ExpiresAt *time.Time `json:"expires_at"`
		}
	}
	s.Expect(t, 200, "GET", "/v1/nodes", nil).Decode(t, &list)
	if n := list.Data; len(n) != 2 || n[0].Role != "worker" || n[0].This || n[1].Role != "serve" || !n[1].This || n[0].ExpiresAt == nil {
		t.Errorf("nodes are %+v, want a worker and this server", n)
	}

	const runs = 20
	wf := s.workflow(t, s.Key, "three", set("a"), set("b"), set("c"))
	for range runs {
		s.run(t, s.Key, wf)
	}
	s.eventually(t, sample{"stepmill_runs_started_total": runs, "stepmill_runs_oldest_ready_seconds": 0, "stepmill_runs_queued": 0})
	both := func(metric string, parts ...string) float64 {
		return s.scrape(t).sum(metric, parts...) + w.scrape(t).sum(metric, parts...)
	}
	harness.Eventually(t, "the end of every run is counted", func() bool { return both("stepmill_runs_ended_total") >= runs })
	if ended, steps := both("stepmill_runs_ended_total", "succeeded"), both("stepmill_steps_total", "data.set", "succeeded"); ended != runs || steps != 3*runs {
		t.Errorf("the nodes counted %v ended runs and %v steps, want %d and %d", ended, steps, runs, 3*runs)
	}
	got := s.scrape(t)
	if got[`stepmill_store_transactions_total{outcome="done"}`] < runs || got["stepmill_store_group_transactions_count"] != got["stepmill_store_commit_duration_seconds_count"] {
		t.Errorf("%v transactions in %v groups", got[`stepmill_store_transactions_total{outcome="done"}`], got["stepmill_store_group_transactions_count"])
	}
	if offset := got["stepmill_clock_offset_seconds"]; offset < -1 || offset > 1 {
		t.Errorf("clock offset on one machine is %v s", offset)
	}

	w.Kill(t)
	s.eventually(t, sample{"stepmill_nodes": 1})
}
