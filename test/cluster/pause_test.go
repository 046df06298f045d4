package cluster_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// A node is paused for longer than its lease and then continues as a zombie. By then
// other nodes have its runs, and its writes are rejected, including those it sent
// before the pause that arrive only now.
func TestPausedNodeIsFenced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: shortLease, proxied: true})
	random := harness.Random(c.seed, 0)
	l := newLoad(c)
	lateTenant := l.newTenant() // its runs are started on the node that will be paused
	lateTenant.workflows["late"] = flow.Define(t, c.nodes[0].With(lateTenant.key), l.calls("one", 900),
		flow.Wait("wait", "50ms"), l.calls("three", 20))
	anyNode := func() *member { return c.nodes[random.IntN(len(c.nodes))] }
	l.startClients()
	for range lane.Pick(1, 4) {
		l.awaitMore(5 + random.IntN(10))
		l.pause(anyNode())
		l.awaitMore(5)
		l.pauseWithResults(anyNode(), lateTenant)
	}
	// Whether results were in flight when the node stopped is a matter of luck.
	for attempt := 0; c.countLogged(lostLease) == 0 && attempt < 3; attempt++ {
		l.pauseWithResults(anyNode(), lateTenant)
	}
	l.awaitMore(10)
	l.stopClients()
	l.verify(true)
	l.verifyLate()
	if c.countLogged(lostLease) == 0 {
		t.Log("inconclusive: no result arrived after another node had the run")
	}
}

// pause stops a node during a call until other nodes have taken over its runs and
// repeated the call. When it continues, it has to drop its call and rejoin.
func (l *load) pause(m *member) {
	c := l.c
	c.t.Helper()
	run, key := l.startHanging(m)
	id := c.nodeID(m.name)
	endFault, before := c.recordFault(m.name), m.countLogged(releasedRuns)
	l.freeze(m, id)
	l.await("another node repeats the call", 2, func(call *sink.Call) bool { return call.Key == key })
	l.resume(m, id, before)
	l.await("the paused node drops its call", 1, func(call *sink.Call) bool { return call.Key == key && call.Dropped })
	endFault()
	l.cancelHanging(m, run, key)
}

// pauseWithResults stops a node while results of its runs are held back in flight to
// the database, and releases them once other nodes have executed the same steps.
func (l *load) pauseWithResults(m *member, of *tenant) {
	c := l.c
	c.t.Helper()
	id := c.nodeID(m.name)
	endFault, before := c.recordFault(m.name), m.countLogged(releasedRuns)
	late := l.holdResults(m, id, of)
	firstStep := func(call *sink.Call) bool { return late[call.Run()] && call.Path == "/one" }
	l.freeze(m, id)
	l.await("other nodes repeat the steps", 2*len(late), firstStep)
	m.proxy.BlackHole(false)
	l.resume(m, id, before)
	l.await("the runs continue", len(late), func(call *sink.Call) bool { return late[call.Run()] && call.Path == "/three" })
	endFault()
}

// freeze stops a node and waits until the others have taken over its runs. They may
// already have: on a busy machine its lease can expire before it is stopped.
func (l *load) freeze(m *member, id string) {
	c := l.c
	c.t.Helper()
	m.avoid(true)
	m.Signal(c.t, syscall.SIGSTOP)
	c.awaitRemoved(id)
	if left := tables.Number(c.t, c.db, `SELECT count(*) FROM run_queue WHERE node = $1`, id); left > 0 {
		c.t.Errorf("a removed node still has %d runs", left)
	}
}

// resume lets a node continue. It waits until the node has released its runs, which it
// had done that many times before, and has rejoined.
func (l *load) resume(m *member, id string, before int) {
	c := l.c
	c.t.Helper()
	m.Signal(c.t, syscall.SIGCONT)
	harness.Eventually(c.t, "the paused node releases its runs", func() bool { return m.countLogged(releasedRuns) > before })
	harness.Eventually(c.t, "the paused node rejoins", func() bool {
		return tables.Number(c.t, c.db, `SELECT count(*) FROM nodes WHERE id = $1`, id) == 1
	})
	m.avoid(false)
}

// holdResults lets runs of a node finish a step while nothing that the node sends
// reaches the database. It returns those runs.
func (l *load) holdResults(m *member, id string, of *tenant) map[string]bool {
	l.t.Helper()
	expiry := func() int {
		return tables.Number(l.t, l.c.db, `SELECT coalesce(max(expires_at), 0) FROM nodes WHERE id = $1`, id)
	}
	// Right after a heartbeat the lease lasts longest.
	before := expiry()
	harness.Eventually(l.t, "the node sends a heartbeat", func() bool { return expiry() > before })
	late := map[string]bool{}
	for range 3 {
		late[l.startOn(m, of, "late").id] = true
	}
	match := func(call *sink.Call) bool { return late[call.Run()] }
	l.await("the calls are in flight", len(late), match)
	m.proxy.BlackHole(true)
	for run := range late {
		if !l.c.holds(m, run) {
			delete(late, run) // another node was faster, or has taken it over already
		}
	}
	ended := func(call *sink.Call) bool { return match(call) && !call.Ended.IsZero() }
	for _, call := range l.sink.Calls(ended) {
		delete(late, call.Run()) // its result may have arrived
	}
	l.await("the calls have ended", len(late), ended)
	held := m.proxy.Counts().Held
	for range 20 { // until the results are sent
		if m.proxy.Counts().Held > held {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return late
}

// verifyLate checks the runs whose results were held back. A result that arrived after
// another node had the run was rejected: the step has the result of the second call.
// And the paused node did not start the step a third time.
func (l *load) verifyLate() {
	l.t.Helper()
	for _, e := range l.runs {
		calls := l.sink.Calls(func(call *sink.Call) bool { return call.Key == e.id+"/one" })
		if e.kind != "late" || len(calls) < 2 {
			continue
		}
		if l.recordedCall(e, "one", len(calls)) == 1 {
			l.t.Errorf("run %s continued with the result of a node that had lost its lease", e.id)
		}
		if len(calls) > 2 && !l.c.unplannedLossBetween(calls[0].At, calls[len(calls)-1].At) {
			l.t.Errorf("the first step of run %s was called %d times, want 2: a node without a lease started it", e.id, len(calls))
		}
	}
}
