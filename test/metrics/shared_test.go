package metrics_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

const masterKey = "STEPMILL_MASTER_KEY=0000000000000000000000000000000000000000000000000000000000000000"

// worker is a node that serves no requests.
type worker struct {
	service
	kill func()
}

func startWorker(t *testing.T, env []string) *worker {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"worker"}, withMetrics...)...)
	cmd.Env, cmd.Stderr = harness.Environ(env...), log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{kill: sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})}
	t.Cleanup(w.kill)
	address := regexp.MustCompile(`"msg":"metrics are served","address":"([^"]+)"`)
	for deadline := time.Now().Add(patience); w.metrics == nil; time.Sleep(10 * time.Millisecond) {
		if match := address.FindStringSubmatch(log.text()); match != nil {
			w.metrics = harness.NewClient("http://"+match[1], "")
		} else if time.Now().After(deadline) {
			t.Fatalf("the worker does not show its metrics\n%s", log.text())
		}
	}
	return w
}

// lines keep what a process logs.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(data)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// Nodes that share a database each show their own work, and what belongs to
// all of them alike.
func TestNodesThatShareADatabase(t *testing.T) {
	t.Parallel()
	env := []string{"STEPMILL_DATABASE_URL=" + postgres.Shared(t).NewDatabase(t), masterKey, "STEPMILL_NODE_LEASE=2s"}
	s := &service{
		Server: harness.StartWith(t, harness.Options{Dir: t.TempDir(), Args: withMetrics, Env: env}),
		codes:  map[string]float64{}, classes: map[string]float64{},
	}
	s.metrics = harness.NewClient("http://"+s.AwaitLog(t, `"msg":"metrics are served","address":"([^"]+)"`), "")
	s.call(t, s.Key, "GET", "/v1/workflows", nil)
	s.eventually(t, sample{"stepmill_nodes": 1, "stepmill_ready": 1, "stepmill_node_lost_total": 0, "stepmill_runs_found_total": 0})
	if diff := cmp.Diff(documented(t, "SQLite"), s.shown(t)); diff != "" {
		t.Errorf("(-documented +shown):\n%s", diff)
	}

	w := startWorker(t, env)
	s.eventually(t, sample{"stepmill_nodes": 2})
	w.eventually(t, sample{"stepmill_nodes": 2, "stepmill_ready": 1})
	w.metrics.Expect(t, 200, "GET", "/readyz", nil)
	for _, name := range w.shown(t) {
		if strings.HasPrefix(name, "stepmill_http_") {
			t.Errorf("a worker shows %s", name)
		}
	}
	if !strings.Contains(w.text(t), `role="worker"} 1`) {
		t.Error("the role is not shown")
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
		t.Errorf("the nodes are %+v", n)
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
	for deadline := time.Now().Add(patience); both("stepmill_runs_ended_total") < runs; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not all ends are counted")
		}
	}
	if ended, steps := both("stepmill_runs_ended_total", "succeeded"), both("stepmill_steps_total", "data.set", "succeeded"); ended != runs || steps != 3*runs {
		t.Errorf("both have counted %v ends and %v steps, want %d and %d", ended, steps, runs, 3*runs)
	}
	got := s.scrape(t)
	if got[`stepmill_store_units_total{outcome="done"}`] < runs || got["stepmill_store_group_units_count"] != got["stepmill_store_commit_duration_seconds_count"] {
		t.Errorf("units: %v, groups: %v", got[`stepmill_store_units_total{outcome="done"}`], got["stepmill_store_group_units_count"])
	}
	if offset := got["stepmill_clock_offset_seconds"]; offset < -1 || offset > 1 {
		t.Errorf("the clocks of one machine differ by %v s", offset)
	}

	w.kill()
	s.eventually(t, sample{"stepmill_nodes": 1})
}
