package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// newerStep is a step with a feature that the previous release does not know.
func newerStep(step map[string]any) map[string]any {
	step["mask"] = []string{"headers"}
	return step
}

// A node of the previous release never executes what it does not know. While it is alive,
// nobody can save such a workflow; if it comes back later, it leaves the runs to newer
// nodes, also those of a newer node that was killed.
func TestOlderNodeLeavesNewerRuns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 2, lease: shortLease})
	newer, older := c.nodes[0], c.nodes[1]
	older.release = release.Number - 1
	older.Stop(t)
	c.start(older)
	calls := sink.New(t)
	id := flow.Define(t, newer.Client, flow.HTTP("call", calls.URL+"/call?hang"))
	patch := map[string]any{"steps": []any{newerStep(flow.HTTP("call", calls.URL+"/call?hang"))}}
	for _, m := range c.nodes {
		refused := m.Expect(t, http.StatusConflict, "PATCH", "/v1/workflows/"+id, patch)
		if body := string(refused.Body); !strings.Contains(body, "upgrade_in_progress") || !strings.Contains(body, `the node \"b\"`) {
			t.Errorf("saved through %s: %s", m.name, body)
		}
	}
	gone := c.nodeID(older.name)
	older.Kill(t)
	c.awaitRemoved(gone)
	newer.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+id, patch)

	c.start(older)
	if response, err := older.Do(t.Context(), "POST", "/v1/workflows/"+id+"/runs", map[string]any{}); err != nil || response.Status != http.StatusServiceUnavailable {
		t.Errorf("a start on the older node: %d %s %v", response.Status, response.Body, err)
	}
	var run runBody
	newer.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+id+"/runs", map[string]any{}).Decode(t, &run)
	called := func(times int) func() bool { return func() bool { return len(calls.CallsOf(run.ID)) == times } }
	harness.Eventually(t, "the run makes its call", called(1))
	gone = c.nodeID(newer.name)
	newer.Kill(t)
	c.awaitRemoved(gone)
	harness.Eventually(t, "the older node has enqueued the run", func() bool { return tables.Number(t, c.db, `SELECT count(*) FROM run_queue WHERE node IS NULL`) == 1 })
	// The older node executes what it knows.
	known := flow.Define(t, older.Client, flow.Set("one", "1"))
	older.Expect(t, http.StatusOK, "POST", "/v1/workflows/"+known+"/runs", map[string]any{}, "Prefer", "wait=60")
	c.start(newer)
	harness.Eventually(t, "the call is repeated", called(2))
	if !c.holds(newer, run.ID) {
		t.Error("the older node executes the run")
	}
	calls.Release()
	harness.Eventually(t, "the run succeeds", func() bool {
		newer.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil).Decode(t, &run)
		return run.Status == "succeeded"
	})
	if output := string(run.Steps[0].Output); !strings.Contains(output, "***") {
		t.Errorf("the output is not masked: %s", output)
	}
}

// The nodes of a cluster are upgraded one by one under load, while others are killed.
// Nothing is lost, and no node executes what it does not know.
func TestRollingUpgrade(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: shortLease, release: release.Number - 1})
	random := harness.Random(c.seed, 0)
	l := newLoad(c)
	l.startClients()
	for _, m := range c.nodes {
		l.awaitMore(20 + random.IntN(20))
		l.killDuringCall(c.nodes[random.IntN(len(c.nodes))])
		l.awaitMore(5)
		m.release = 0
		l.killDuringCall(m) // comes back as the present release
	}
	newer := flow.Define(t, c.nodes[0].With(l.tenants[0].key), newerStep(l.calls("newer", 20)))
	last := c.nodes[2]
	last.release = release.Number - 1 // a rollback of one node
	l.killDuringCall(last)
	for range 50 {
		of := c.nodes[random.IntN(2)].With(l.tenants[0].key)
		var run runBody
		of.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+newer+"/runs", map[string]any{}).Decode(t, &run)
		l.extraRuns++
		harness.Eventually(t, "a run of the newer workflow ends", func() bool {
			of.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil).Decode(t, &run)
			return run.Status != "running"
		})
		if run.Status != "succeeded" || !strings.Contains(string(run.Steps[0].Output), "***") {
			t.Errorf("run %s is %s: %+v", run.ID, run.Status, run.Steps)
		}
	}
	l.awaitMore(10)
	l.stopClients()
	l.verify(false)
}
