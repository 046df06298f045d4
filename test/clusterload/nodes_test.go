package clusterload_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// Three nodes start at the same time on an empty database. One of them migrates it
// and makes the first workspace, and all of them serve.
func TestConcurrentFirstStart(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	times := lane.Pick(2, 10)
	for round := range times {
		c := newEmptyCluster(t)
		if round == times-1 { // first, one dies during the migration
			o := c.options(nil)
			o.Failpoint = "during_migration:kill"
			dying := harness.StartProcess(t, o)
			if exit := dying.Wait(t); exit.Code != -1 {
				t.Fatalf("exit code %d, want death by a signal during the migration", exit.Code)
			}
		}
		var nodes [3]*harness.Server
		var group sync.WaitGroup
		for i := range nodes {
			group.Go(func() {
				var err error
				if nodes[i], err = harness.Launch(t.Context(), c.options(nil)); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			t.FailNow()
		}
		keys := 0
		for _, node := range nodes {
			if key := node.PrintedKey(); key != "" {
				c.adminKey = key
				keys++
			}
		}
		if keys != 1 || c.number(`SELECT count(*) FROM workspaces`) != 1 {
			t.Fatalf("round %d: %d keys printed and %d workspaces made, want 1 each", round, keys, c.number(`SELECT count(*) FROM workspaces`))
		}
		for _, node := range nodes {
			node.Key = c.adminKey
			flow.Define(t, node.Client, flow.Set("one", 1))
			node.Stop(t)
			node.Close(t)
		}
	}
}

// The clocks of the nodes are wrong by ten minutes in both directions. Waits do not
// end early, a dead node is replaced after its lease has expired and not before, and
// runs carry the time of the database.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	target := sink.New(t)
	c := newInstalledCluster(t, shortLease)
	for i, skew := range []string{"10m", "-10m", "-600s"} {
		o := c.options([]string{"--node-name=" + fmt.Sprint("node ", i)})
		o.Failpoint, o.Env = "at_start@nobody:exit", []string{"FP_CLOCK=" + skew}
		node := harness.StartWith(t, o)
		node.Key = c.adminKey
		c.nodes = append(c.nodes, node)
	}
	var waits sync.WaitGroup
	// Short waits stay on their node, long ones are released.
	for _, length := range []time.Duration{time.Second, 11 * time.Second} {
		id := flow.Define(t, c.nodes[0].Client, flow.Wait("wait", length.String()), flow.HTTP("after", target.URL+"/x"))
		for i := range 3 {
			started, r := c.startRunNow(c.nodes[i], id)
			waits.Go(func() {
				harness.Eventually(t, "the wait ends", func() bool { return len(target.CallsOf(r.ID)) > 0 })
				if took := time.Since(started); took < length-100*time.Millisecond {
					t.Errorf("wait took %[2]v, want at least %[1]v", length, took)
				}
			})
		}
	}
	c.killDuringCall(target)
	waits.Wait()
}

// startRunNow starts a run on a node whose clock is wrong and checks that the run has
// the right time. It also returns when the request was sent.
func (c *cluster) startRunNow(node *harness.Server, workflow string) (time.Time, run) {
	c.t.Helper()
	const tolerance = 2 * time.Minute // far less than the skew
	started := time.Now()
	r := startRun(c.t, node.Client, workflow)
	now := time.Now()
	if r.StartedAt.Before(started.Add(-tolerance)) || r.StartedAt.After(now.Add(tolerance)) {
		c.t.Errorf("started_at is %v, want now", r.StartedAt)
	}
	if r.ID < uid.LowerBound(uid.Run, started.Add(-tolerance)) || r.ID > uid.LowerBound(uid.Run, now.Add(tolerance)) {
		c.t.Errorf("the time in run id %s is not now", r.ID)
	}
	return started, r
}

// killDuringCall kills the second node during a call, which another node repeats once
// the lease has expired.
func (c *cluster) killDuringCall(target *sink.Sink) {
	c.t.Helper()
	id := flow.Define(c.t, c.nodes[0].Client, flow.HTTP("hang", target.URL+"/hang?hang"))
	var r, node string
	harness.Eventually(c.t, "the node executes a run", func() bool { // another node may be faster
		r = startRun(c.t, c.nodes[1].Client, id).ID
		harness.Eventually(c.t, "the call is in flight", func() bool { return len(target.CallsOf(r)) > 0 })
		held := c.texts(`SELECT n.id FROM run_queue q JOIN nodes n ON n.id = q.node WHERE q.run_id = $1 AND n.name = 'node 1'`, r)
		if len(held) == 0 {
			return false
		}
		node = held[0]
		return true
	})
	c.nodes[1].Kill(c.t)
	if len(target.CallsOf(r)) > 1 {
		c.t.Log("inconclusive: the node lost its lease before it was killed")
		target.Release()
		return
	}
	expires := time.UnixMicro(int64(c.number(`SELECT coalesce(max(expires_at), 0) FROM nodes WHERE id = $1`, node)))
	harness.Eventually(c.t, "another node repeats the call", func() bool { return len(target.CallsOf(r)) > 1 })
	if again := target.CallsOf(r)[1].At; again.Before(expires) {
		c.t.Errorf("a dead node was replaced %v before its lease expired", expires.Sub(again))
	}
	target.Release()
}

// A key is revoked on one node. The other node soon rejects it and ends the streams
// that were opened with it.
func TestKeyRevocationReachesOtherNodes(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	c := startCluster(t, 2)
	for i := range lane.Pick(1, 3) {
		var made struct {
			ID  string `json:"id"`
			Key string `json:"key"`
		}
		expect(t, c.nodes[0].Client, 201, "POST", "/v1/api-keys", map[string]any{"name": fmt.Sprint("key ", i), "scopes": []string{"read"}}).Decode(t, &made)
		revokedClient := c.nodes[1].With(made.Key)
		expect(t, revokedClient, 200, "GET", "/v1/workflows", nil)
		done := make(chan struct{})
		stream, err := revokedClient.Open(t.Context(), http.MethodGet, "/v1/events/stream", http.NoBody)
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatalf("open the stream: %v", err)
		}
		go func() {
			defer close(done)
			defer stream.Body.Close()
			buffer := make([]byte, 1024)
			for {
				if _, err := stream.Body.Read(buffer); err != nil {
					return
				}
			}
		}()
		revoked := time.Now()
		response, err := do(t, c.nodes[0].Client, "DELETE", "/v1/api-keys/"+made.ID, nil)
		if err != nil || response.Status/100 != 2 {
			t.Fatalf("revoke: %v %d %s", err, response.Status, response.Body)
		}
		harness.Eventually(t, "the other node rejects the key", func() bool {
			response, err := revokedClient.Do(t.Context(), "GET", "/v1/workflows", nil)
			return err == nil && response.Status == 401
		})
		harness.Eventually(t, "the stream opened with the key ends", func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
		t.Logf("a revoked key stopped working after %s", ms(time.Since(revoked)))
	}
}

// changingWorkflow is a workflow that is changed while its runs execute.
type changingWorkflow struct {
	id      string
	mu      sync.Mutex
	version int
	deleted bool
	runs    map[string]int // their versions
}

// Workflows are changed, paused and deleted on one node while both nodes start and
// execute their runs. A run keeps the version it started with, and runs of deleted
// workflows stop.
func TestWorkflowChangesOnTwoNodes(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	workflows, versions := lane.Pick(4, 6), lane.Pick(6, 15)
	target := sink.New(t)
	c := startCluster(t, 2)
	steps := func(version int) []map[string]any {
		url := fmt.Sprintf("%s/v%d?ms=30", target.URL, version)
		return []map[string]any{flow.HTTP("one", url), flow.HTTP("two", url), flow.HTTP("three", url)}
	}
	var all []*changingWorkflow
	var group sync.WaitGroup
	for i := range workflows {
		w := &changingWorkflow{version: 2, runs: map[string]int{}}
		w.id = flow.Define(t, c.nodes[0].Client, steps(2)...)
		all = append(all, w)
		done := make(chan struct{})
		group.Go(func() {
			defer close(done)
			w.change(t, c, harness.Random(seed, i).Int64N, steps, versions)
			if i%2 == 0 {
				w.remove(t, c.nodes[0].Client)
			}
		})
		for n := range 2 {
			group.Go(func() { w.start(t, c.nodes[n].Client, done) })
		}
	}
	c.deleteDuringCall(target)
	group.Wait()
	c.awaitDeletions()
	total, deleted := 0, 0
	for _, w := range all {
		total += len(w.runs)
		if w.deleted {
			deleted += len(w.runs)
		}
		c.verify(w, target)
	}
	t.Logf("%d runs of %d workflows with %d versions each, %d of them of deleted workflows", total, workflows, versions, deleted)
	tables.CheckShared(t, c.db)
}

// verify checks that the runs of a workflow kept their version, and that a deleted
// workflow has none.
func (c *cluster) verify(w *changingWorkflow, target *sink.Sink) {
	c.t.Helper()
	for id, version := range w.runs {
		for _, made := range target.CallsOf(id) {
			if made.Path != fmt.Sprintf("/v%d", version) {
				c.t.Errorf("run %s of version %d called %s", id, version, made.Path)
			}
		}
		if w.deleted {
			expect(c.t, c.nodes[1].Client, 404, "GET", "/v1/runs/"+id, nil)
			continue
		}
		if end := getRun(c.t, c.nodes[1].Client, id); end.Status != "succeeded" || end.WorkflowVersion != version || len(target.CallsOf(id)) != 3 {
			c.t.Errorf("run %s of version %d is %s, version %d, with %d calls; want succeeded with 3", id, version, end.Status, end.WorkflowVersion, len(target.CallsOf(id)))
		}
	}
}

// deleteDuringCall deletes a workflow on one node while one of its runs makes a call
// on the other. The call is dropped and the next step does not start.
func (c *cluster) deleteDuringCall(target *sink.Sink) {
	c.t.Helper()
	w := &changingWorkflow{id: flow.Define(c.t, c.nodes[0].Client, flow.HTTP("hang", target.URL+"/hang?hang"), flow.HTTP("after", target.URL+"/after"))}
	r := startRun(c.t, c.nodes[1].Client, w.id).ID
	harness.Eventually(c.t, "the call is in flight", func() bool { return len(target.CallsOf(r)) > 0 })
	w.remove(c.t, c.nodes[0].Client)
	harness.Eventually(c.t, "the call of the deleted run is dropped", func() bool { return target.Dropped(r) })
	harness.Eventually(c.t, "the run is removed", func() bool { return c.number(`SELECT count(*) FROM runs WHERE id = $1`, r) == 0 })
	if n := len(target.CallsOf(r)); n != 1 {
		c.t.Errorf("the deleted run made %d calls, want 1", n)
	}
}

// awaitDeletions waits until all runs of workflows that still exist have ended and
// deleted workflows are removed.
func (c *cluster) awaitDeletions() {
	c.t.Helper()
	harness.Eventually(c.t, "every run has ended", func() bool {
		return c.number(`SELECT count(*) FROM run_queue q JOIN workflows w ON w.id = q.workflow_id WHERE w.deleted_at IS NULL`) == 0
	})
	harness.Eventually(c.t, "deleted workflows are removed", func() bool { return c.number(`SELECT count(*) FROM workflows WHERE deleted_at IS NOT NULL`) == 0 })
}

func (w *changingWorkflow) change(t *testing.T, c *cluster, random func(int64) int64, steps func(int) []map[string]any, versions int) {
	for !t.Failed() {
		time.Sleep(time.Duration(random(int64(80 * time.Millisecond))))
		w.mu.Lock()
		at, api := "/v1/workflows/"+w.id, c.nodes[random(2)].Client
		switch {
		case w.version >= versions:
			w.mu.Unlock()
			return
		case random(4) == 0: // a pause does not stop running runs
			expect(t, api, 200, "PATCH", at, map[string]any{"state": "paused"})
			expect(t, api, 200, "PATCH", at, map[string]any{"state": "active"})
		default:
			expect(t, api, 200, "PATCH", at, map[string]any{"steps": steps(w.version + 1)})
			w.version++
		}
		w.mu.Unlock()
	}
}

func (w *changingWorkflow) remove(t *testing.T, api *harness.Client) {
	at := "/v1/workflows/" + w.id
	w.mu.Lock()
	defer w.mu.Unlock()
	expect(t, api, 200, "PATCH", at, map[string]any{"state": "paused"})
	if response, err := do(t, api, "DELETE", at, nil); err != nil || response.Status/100 != 2 {
		t.Errorf("delete: %v %d %s", err, response.Status, response.Body)
	}
	w.deleted = true
}

// start starts runs until the workflow no longer changes. Starts and changes exclude
// each other, so that the version of each run is known.
func (w *changingWorkflow) start(t *testing.T, api *harness.Client, done <-chan struct{}) {
	for !t.Failed() {
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
		w.mu.Lock()
		if !w.deleted {
			r := startRun(t, api, w.id)
			w.runs[r.ID] = w.version
		}
		w.mu.Unlock()
	}
}
