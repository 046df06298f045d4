package clusterload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// traffic is a group of clients that start runs on whichever node answers, until
// they are told to stop.
type traffic struct {
	c        *cluster
	workflow string
	stop     chan struct{}
	group    sync.WaitGroup
	mu       sync.Mutex
	nodes    []*harness.Server // those that are in service
	runs     map[string]bool
	// moved counts starts that had to go to another node, refused those that a
	// node answered with an error of its own.
	moved, refused atomic.Int64
}

func (c *cluster) traffic(workflow string, clients int) *traffic {
	tr := &traffic{c: c, workflow: workflow, stop: make(chan struct{}), runs: map[string]bool{}}
	tr.nodes = append(tr.nodes, c.nodes...)
	for i := range clients {
		tr.group.Go(func() {
			for n := i; ; n++ {
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

// start starts a run, with a key, until somebody has answered.
func (tr *traffic) start(key string, n int) {
	deadline := time.Now().Add(time.Minute)
	for try := 0; time.Now().Before(deadline); try++ {
		tr.mu.Lock()
		node := tr.nodes[(n+try)%len(tr.nodes)]
		tr.mu.Unlock()
		ctx, cancel := context.WithTimeout(tr.c.t.Context(), 30*time.Second)
		answer, err := node.Do(ctx, "POST", "/v1/workflows/"+tr.workflow+"/runs", nil, "Idempotency-Key", key)
		cancel()
		switch {
		case err != nil: // the listener is closed: another node
			tr.moved.Add(1)
			time.Sleep(5 * time.Millisecond)
		case answer.Status == http.StatusCreated:
			var r run
			if err := json.Unmarshal(answer.Body, &r); err != nil {
				tr.c.t.Error(err)
			}
			tr.mu.Lock()
			tr.runs[r.ID] = true
			tr.mu.Unlock()
			return
		default:
			tr.refused.Add(1)
			tr.c.t.Errorf("a start was answered with %d %s", answer.Status, answer.Body)
			return
		}
	}
	tr.c.t.Error("a start was answered by nobody")
}

// replace puts one node into the place of another.
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

// end stops the clients and holds every run to what was promised: it has
// succeeded, each of its calls was made, in order, and none was repeated.
func (tr *traffic) end(outside *sink, steps int) {
	c := tr.c
	c.t.Helper()
	close(tr.stop)
	tr.group.Wait()
	c.settle()
	if n := c.number(`SELECT count(*) FROM runs`); n != len(tr.runs) {
		c.t.Errorf("%d runs are stored, %d were acknowledged", n, len(tr.runs))
	}
	if n := c.number(`SELECT count(*) FROM runs WHERE status <> 'succeeded'`); n != 0 {
		c.t.Errorf("%d runs have not succeeded: %v", n, c.texts(`SELECT id || ' ' || status || ' ' || COALESCE(error_code || ' ' || error_text, '') FROM runs WHERE status <> 'succeeded' LIMIT 5`))
	}
	if n := c.number(`SELECT count(*) FROM steps WHERE attempt <> 1`); n != 0 {
		c.t.Errorf("%d steps have burned an attempt", n)
	}
	counted := outside.counted()
	if len(counted) != steps*len(tr.runs) {
		c.t.Errorf("%d calls were made by %d runs of %d steps", len(counted), len(tr.runs), steps)
	}
	for key, n := range counted {
		if n != 1 {
			c.t.Errorf("%s was called %d times, although nothing was killed", key, n)
		}
	}
}

// A node is asked to stop, again and again, under load. It ends well and soon,
// its clients get no errors but that of a closed listener, and its runs go on
// elsewhere at once, without waiting for its time to run out.
func TestTerminateNodes(t *testing.T) {
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	const rounds = 6
	outside := newSink(t)
	c := start(t, 2, "--node-lease=20s") // far longer than anybody here waits
	long := define(t, c.nodes[0].Client, calls("one", outside.URL+"/x?ms=300"), calls("two", outside.URL+"/x?ms=300"), calls("three", outside.URL+"/x"))
	tr := c.traffic(long, 6)
	var slowest, gap time.Duration
	for round := range rounds {
		before := tr.started()
		within(t, 30*time.Second, "there is load", func() bool { return tr.started() >= before+30 })
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		was := c.nodes[round%2]
		exit := was.Terminate(t)
		gone := time.Now()
		if exit.Code != 0 {
			t.Errorf("round %d: exit code %d\n%s", round, exit.Code, was.Log())
		}
		slowest = max(slowest, exit.Took)
		// What it had in hand is in the hands of another node.
		if n := c.number(`SELECT count(*) FROM run_queue q WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = q.node)`); n != 0 {
			t.Errorf("round %d: %d runs are in the hands of nobody", round, n)
		}
		left := c.texts(`SELECT run_id FROM run_queue`)
		open := map[string]int{}
		for _, id := range left {
			open[id] = len(outside.of(id))
		}
		within(t, 10*time.Second, "its runs have gone on", func() bool {
			for id, calls := range open {
				if calls < 3 && len(outside.of(id)) == calls {
					return false
				}
			}
			return true
		})
		gap = max(gap, time.Since(gone))
		node := c.add()
		c.nodes = c.nodes[:2]
		c.nodes[round%2] = node
		tr.replace(was, node)
	}
	t.Logf("%d runs, the slowest stop took %s, the last run of a node had gone on after %s, %d starts went elsewhere", tr.started(), ms(slowest), ms(gap), tr.moved.Load())
	if gap > time.Second*patience {
		t.Errorf("a run of a node that had stopped went on only after %v", gap)
	}
	tr.end(outside, 3)
}

// Three nodes are replaced one after the other under load: nothing is lost,
// refused or repeated.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	outside := newSink(t)
	c := start(t, 3)
	wait := map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "1s"}}
	id := define(t, c.nodes[0].Client, calls("one", outside.URL+"/x?ms=50"), wait, calls("two", outside.URL+"/x?ms=50"), calls("three", outside.URL+"/x?ms=50"))
	tr := c.traffic(id, 6)
	for i := range 3 {
		before := tr.started()
		within(t, 30*time.Second, "there is load", func() bool { return tr.started() >= before+50 })
		was := c.nodes[i]
		was.Stop(t)
		node := c.add()
		c.nodes = c.nodes[:3]
		c.nodes[i] = node
		tr.replace(was, node)
	}
	t.Logf("%d runs over three restarts, %d starts went elsewhere", tr.started(), tr.moved.Load())
	tr.end(outside, 3)
}

// Thousands of runs are queued while what they need outside does not answer.
// When it does, everything ends, and requests are answered meanwhile.
func TestBacklogAfterAnOutage(t *testing.T) {
	harness.Seed(t)
	runs := scale(t, 3000)
	outside := newSink(t)
	c := start(t, 1)
	key := c.tenant("enterprise")
	id := define(t, c.nodes[0].With(key), calls("one", outside.URL+"/x"), sets("two"), calls("three", outside.URL+"/x"))
	// All places are taken by runs that hang.
	blocker := define(t, c.nodes[0].With(key), calls("hang", outside.URL+"/hang?hang"))
	blocked := c.flood(key, blocker, 192, 16)
	c.flood(key, id, runs, 16)
	outside.release()
	begun := time.Now()
	var slowest time.Duration
	asked := 0
	api := c.nodes[0].With(c.admin)
	for c.number(`SELECT count(*) FROM run_queue`) > 0 {
		if time.Since(begun) > settleTime {
			t.Fatalf("the backlog is not drained after %v:\n%s", settleTime, c.queued())
		}
		at := time.Now()
		api.Expect(t, 200, "GET", "/v1/workflows", nil)
		slowest = max(slowest, time.Since(at))
		asked++
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%d runs drained in %s, the slowest of %d requests beside took %s", runs, ms(time.Since(begun)), asked, ms(slowest))
	if slowest > 500*time.Millisecond*patience {
		t.Errorf("a request beside the backlog took %v", slowest)
	}
	if n := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); n != runs+len(blocked) {
		t.Errorf("%d of %d runs have succeeded", n, runs+len(blocked))
	}
	c.check()
}
