package clusterload_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// traffic is a group of clients that start runs on any node that responds, until they
// are stopped.
type traffic struct {
	c        *cluster
	workflow string
	stop     chan struct{}
	group    sync.WaitGroup
	mu       sync.Mutex
	nodes    []*harness.Server // those in service
	runs     map[string]bool
	// retried counts starts that were sent to another node, rejected those that got
	// an error response.
	retried, rejected atomic.Int64
}

func (c *cluster) traffic(workflow string, clients int) *traffic {
	tr := &traffic{c: c, workflow: workflow, stop: make(chan struct{}), runs: map[string]bool{}}
	tr.nodes = append(tr.nodes, c.nodes...)
	c.t.Cleanup(tr.group.Wait) // if the test fails, the clients stop on their own
	for i := range clients {
		tr.group.Go(func() {
			for n := i; !c.t.Failed(); n++ {
				select {
				case <-tr.stop:
					return
				default:
					tr.start(fmt.Sprintf("order-%d-%d", i, n), n)
				}
			}
		})
	}
	return tr
}

// start starts a run with an idempotency key and retries until a node responds.
func (tr *traffic) start(key string, n int) {
	deadline := time.Now().Add(harness.Timeout)
	for try := 0; time.Now().Before(deadline) && !tr.c.t.Failed(); try++ {
		tr.mu.Lock()
		node := tr.nodes[(n+try)%len(tr.nodes)]
		tr.mu.Unlock()
		response, err := node.Do(tr.c.t.Context(), "POST", "/v1/workflows/"+tr.workflow+"/runs", nil, "Idempotency-Key", key)
		switch {
		case err != nil: // the listener is closed: try another node
			tr.retried.Add(1)
			time.Sleep(5 * time.Millisecond)
		case response.Status == http.StatusCreated:
			var r run
			if err := json.Unmarshal(response.Body, &r); err != nil {
				tr.c.t.Error(err)
			}
			tr.mu.Lock()
			tr.runs[r.ID] = true
			tr.mu.Unlock()
			return
		default:
			tr.rejected.Add(1)
			tr.c.t.Errorf("start returned %d %s", response.Status, response.Body)
			return
		}
	}
	if !tr.c.t.Failed() {
		tr.c.t.Error("no node responded to a start")
	}
}

// replace sends the traffic of one node to another.
func (tr *traffic) replace(was, now *harness.Server) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for i, node := range tr.nodes {
		if node == was {
			tr.nodes[i] = now
		}
	}
}

func (tr *traffic) started() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.runs)
}

// end stops the clients and checks that every run succeeded and that each of its calls
// was made exactly once.
func (tr *traffic) end(target *sink.Sink, steps int) {
	c := tr.c
	c.t.Helper()
	close(tr.stop)
	tr.group.Wait()
	c.awaitIdle()
	if n := c.number(`SELECT count(*) FROM runs`); n != len(tr.runs) {
		c.t.Errorf("%d runs are stored, %d were acknowledged", n, len(tr.runs))
	}
	if n := c.number(`SELECT count(*) FROM runs WHERE status <> 'succeeded'`); n != 0 {
		c.t.Errorf("%d runs have not succeeded: %v", n, c.texts(`SELECT id || ' ' || status || ' ' || COALESCE(error_code || ' ' || error_text, '') FROM runs WHERE status <> 'succeeded' LIMIT 5`))
	}
	if n := c.number(`SELECT count(*) FROM steps WHERE attempt <> 1`); n != 0 {
		c.t.Errorf("%d steps needed another attempt", n)
	}
	counts := target.Counts()
	if len(counts) != steps*len(tr.runs) {
		c.t.Errorf("got %d calls of %d runs with %d steps", len(counts), len(tr.runs), steps)
	}
	for key, n := range counts {
		if n != 1 {
			c.t.Errorf("%s was called %d times, want 1: no node was killed", key, n)
		}
	}
}

// Nodes are replaced one after the other under load. Each exits with code 0, its
// clients get no errors except from the closed listener, and it releases its runs:
// they continue elsewhere without waiting for its lease to expire. Nothing is lost,
// rejected or repeated.
func TestRollingRestartUnderLoad(t *testing.T) {
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	c := startCluster(t, 2)
	wait := flow.Wait("wait", "500ms")
	long := flow.Define(t, c.nodes[0].Client, flow.HTTP("one", target.URL+"/x?ms=300"), wait, flow.HTTP("two", target.URL+"/x?ms=300"), flow.HTTP("three", target.URL+"/x"))
	tr := c.traffic(long, lane.Pick(4, 6))
	for round := range lane.Pick(2, 8) {
		before, more := tr.started(), 20+random.IntN(20)
		harness.Eventually(t, "clients have started more runs", func() bool { return tr.started() >= before+more })
		was := c.nodes[round%2]
		exit := was.Terminate(t)
		if exit.Code != 0 {
			t.Errorf("round %d: exit code %d\n%s", round, exit.Code, was.Excerpt())
		}
		if n := c.number(`SELECT count(*) FROM run_queue q WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = q.node)`); n != 0 {
			t.Errorf("round %d: %d runs belong to a node that has left", round, n)
		}
		open := map[string]int{}
		for _, id := range c.texts(`SELECT run_id FROM run_queue`) {
			open[id] = len(target.CallsOf(id))
		}
		harness.Eventually(t, "the runs of the node continue", func() bool {
			for id, calls := range open {
				if calls < 3 && len(target.CallsOf(id)) == calls {
					return false
				}
			}
			return true
		})
		t.Logf("a node took %s to stop", ms(exit.Took))
		node := c.addNode()
		c.nodes = c.nodes[:2]
		c.nodes[round%2] = node
		tr.replace(was, node)
	}
	t.Logf("%d runs, %d starts went to another node", tr.started(), tr.retried.Load())
	tr.end(target, 3)
}

// Thousands of runs are queued while the service they call does not respond. Once it
// responds the backlog drains, and the API keeps responding meanwhile.
func TestBacklogDrainsAfterOutage(t *testing.T) {
	lane.LongOnly(t)
	harness.Seed(t)
	const runs = 3000
	target := sink.New(t)
	c := startCluster(t, 1)
	key := c.newTenant("enterprise")
	id := flow.Define(t, c.nodes[0].With(key), flow.HTTP("one", target.URL+"/x"), flow.Set("two", 1), flow.HTTP("three", target.URL+"/x"))
	// Hanging runs occupy all slots.
	blocker := flow.Define(t, c.nodes[0].With(key), flow.HTTP("hang", target.URL+"/hang?hang"))
	blocked := c.startRuns(key, blocker, 192, 16)
	c.startRuns(key, id, runs, 16)
	target.Release()
	started, served := time.Now(), 0
	api := c.nodes[0].With(c.adminKey)
	left := func() int { return c.number(`SELECT count(*) FROM run_queue`) }
	stuck := harness.AwaitZero(func() int {
		response, err := api.Do(t.Context(), "GET", "/v1/workflows", nil)
		if err != nil || response.Status != http.StatusOK && !mustRepeat(response) {
			t.Fatalf("response during the drain is %d %s (%v)", response.Status, response.Body, err)
		}
		n := left()
		if n > 0 && response.Status == http.StatusOK {
			served++
		}
		return n
	})
	if stuck > 0 {
		t.Fatalf("the backlog is %d runs, unchanged for %v:\n%s", stuck, harness.Timeout, tables.Queue(t, c.db))
	}
	t.Logf("%d runs drained in %s; %d requests were served meanwhile", runs, ms(time.Since(started)), served)
	if served < 3 {
		t.Errorf("%d requests were served before the backlog was drained, want at least 3", served)
	}
	if n := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); n != runs+len(blocked) {
		t.Errorf("%d of %d runs succeeded", n, runs+len(blocked))
	}
	tables.CheckShared(t, c.db)
}
