package clusterload_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// One workspace has thousands of queued runs. Another workspace starts runs one after
// the other. They overtake the backlog: most of the runs that were waiting when such
// a run started begin after it.
func TestFairnessBetweenWorkspaces(t *testing.T) {
	lane.LongOnly(t)
	harness.Seed(t)
	const runs = 2000
	target := sink.New(t)
	c := startCluster(t, 2)
	many, few := c.newTenant("enterprise"), c.newTenant("free")
	burst := flow.Define(t, c.nodes[0].With(many), flow.HTTP("first", target.URL+"/burst?hang"), flow.HTTP("one", target.URL+"/x?ms=500"), flow.HTTP("two", target.URL+"/x?ms=500"))
	single := flow.Define(t, c.nodes[0].With(few), flow.HTTP("one", target.URL+"/single"))
	c.startRuns(many, burst, runs, 16)
	target.Release() // from now on the queue moves
	singles := 0
	for {
		arrived := time.Now()
		waiting := runs - callsBetween(target, "/burst", time.Time{}, arrived)
		if waiting < runs/2 {
			break
		}
		client := c.nodes[singles%2].With(few)
		id := startRun(t, client, single).ID
		if end := awaitRun(t, client, id); end.Status != "succeeded" {
			t.Errorf("single run is %s, want succeeded", end.Status)
		}
		overtook := callsBetween(target, "/burst", arrived, target.CallsOf(id)[0].At)
		t.Logf("%[2]d of %[1]d waiting runs began before the later run", waiting, overtook)
		if overtook > waiting/2 {
			t.Errorf("%d of %d waiting runs began before a run of another workspace, want at most half", overtook, waiting)
		}
		singles++
	}
	if singles < 3 {
		t.Logf("inconclusive: the queue was empty after %d single runs", singles)
	}
	c.awaitIdle()
}

// callsBetween counts the calls to a path after one moment and up to another.
func callsBetween(target *sink.Sink, path string, from, to time.Time) int {
	return len(target.Calls(func(c *sink.Call) bool { return c.Path == path && c.At.After(from) && !c.At.After(to) }))
}

// All steps of one workspace hang. Across all nodes it uses its concurrency limit and
// no more; meanwhile the runs of another workspace succeed.
func TestHangingStepsStayWithinConcurrencyLimit(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	const limit = 50 // of the plan
	target := sink.New(t)
	c := startCluster(t, 2)
	bad, good := c.newTenant("pro"), c.newTenant("free")
	hangs := flow.Define(t, c.nodes[0].With(bad), flow.HTTP("one", target.URL+"/hang?hang"))
	fine := flow.Define(t, c.nodes[0].With(good), flow.HTTP("one", target.URL+"/fine"), flow.HTTP("two", target.URL+"/fine"))
	c.startRuns(bad, hangs, lane.Pick(2*limit, 6*limit), 8)
	harness.Eventually(t, "the limit is reached", func() bool { return target.InFlight("/hang") == limit })
	for i := range lane.Pick(6, 20) {
		client := c.nodes[i%2].With(good)
		if end := awaitRun(t, client, startRun(t, client, fine).ID); end.Status != "succeeded" {
			t.Errorf("run beside the hanging ones is %s, want succeeded", end.Status)
		}
	}
	if now, most := target.InFlight("/hang"), target.Peak("/hang"); now != limit || most != limit {
		t.Errorf("%d calls are in flight, at most %d were; want %d", now, most, limit)
	}
	target.Release()
	c.awaitIdle()
}

// The number of running runs of a workspace reaches the limit of its plan and never
// exceeds it, whichever nodes execute them, while runs start, wait, end and are
// cancelled.
func TestConcurrencyLimitAcrossNodes(t *testing.T) {
	t.Parallel()
	random := harness.Random(harness.Seed(t), 1)
	const limit = 5
	runs := lane.Pick(60, 400)
	target := sink.New(t)
	c := startCluster(t, 2)
	c.addWorker()
	key := c.newTenant("free")
	id := flow.Define(t, c.nodes[0].With(key), flow.HTTP("one", target.URL+"/x?hang"),
		flow.Wait("wait", "200ms"), flow.HTTP("two", target.URL+"/x?ms=15"))
	c.startRuns(key, id, runs, 12)
	full := func() bool { return target.InFlight("/x") == limit }
	harness.Eventually(t, "the limit is reached", full)
	// Runs are cancelled while they execute, while they wait and while they are
	// queued, so that slots are released in every way.
	cancelled := 0
	cancel := func(run string) {
		target.Ignore(run)
		response, err := do(t, c.nodes[random.IntN(2)].With(key), "POST", "/v1/runs/"+run+"/cancel", nil)
		if err == nil && response.Status == http.StatusOK {
			cancelled++
		}
	}
	cancelAny := func() {
		if left := c.texts(`SELECT run_id FROM run_queue`); len(left) > 0 {
			cancel(left[random.IntN(len(left))])
		}
	}
	executing := c.texts(`SELECT run_id FROM run_queue WHERE slot`)[0]
	cancel(executing)
	harness.Eventually(t, "another run has the slot of the cancelled one", func() bool { return target.Dropped(executing) && full() })
	for cancelled < runs/10 {
		cancelAny()
	}
	target.Release()
	for c.number(`SELECT count(*) FROM run_queue`) > 0 && cancelled < runs/4 {
		cancelAny()
	}
	c.awaitIdle()
	most := target.Peak("/x")
	t.Logf("%d runs on three nodes, %d cancelled, at most %d calls at once", runs, cancelled, most)
	if most != limit {
		t.Errorf("at most %d calls were in flight, want %d", most, limit)
	}
	if succeeded := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); succeeded+cancelled != runs {
		t.Errorf("%d of %d runs succeeded and %d were cancelled", succeeded, runs, cancelled)
	}
	for key, n := range target.Counts() {
		if n != 1 {
			t.Errorf("%s was called %d times, want 1", key, n)
		}
	}
}

// Many clients reach the queue limit on two nodes at the same time. Starts beyond the
// limit are rejected and leave nothing behind.
func TestQueueLimitAcrossNodes(t *testing.T) {
	lane.LongOnly(t)
	harness.Seed(t)
	const limit, queue, clients = 5, 1000, 64
	target := sink.New(t)
	c := startCluster(t, 2)
	key := c.newTenant("free")
	id := flow.Define(t, c.nodes[0].With(key), flow.HTTP("one", target.URL+"/hang?hang"))
	c.startRuns(key, id, limit+queue-100, 16)
	var (
		mu                 sync.Mutex
		accepted, rejected int
		group              sync.WaitGroup
	)
	for i := range clients {
		api := c.nodes[i%2].With(key)
		group.Go(func() {
			for range 5 {
				response, err := do(t, api, "POST", "/v1/workflows/"+id+"/runs", nil)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				switch {
				case response.Status == 201:
					accepted++
				case response.Status == 429 && flow.ErrorCode(response) == "run_queue_full" && response.Header.Get("Retry-After") != "":
					rejected++
				default:
					t.Errorf("start returned %d %s, Retry-After %q", response.Status, response.Body, response.Header.Get("Retry-After"))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d more runs were accepted, %d rejected", accepted, rejected)
	if accepted != 100 || rejected != clients*5-100 {
		t.Errorf("%d more runs were accepted and %d rejected, want 100 and %d", accepted, rejected, clients*5-100)
	}
	if n := c.number(`SELECT count(*) FROM runs`); n != limit+queue {
		t.Errorf("%d runs are stored, want %d", n, limit+queue)
	}
	if n := c.number(`SELECT count(*) FROM run_queue WHERE throttled`); n != queue {
		t.Errorf("%d runs are queued, want %d", n, queue)
	}
	tables.CheckShared(t, c.db)
}
