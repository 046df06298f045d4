package cluster_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// Nodes are killed under load. Other nodes take over their runs, but not before the
// lease of the dead node has expired.
func TestTakeoverAfterNodeDeath(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: shortLease})
	random := harness.Random(c.seed, 0)
	l := newLoad(c)
	l.startClients()
	for range lane.Pick(2, 10) {
		l.awaitMore(5 + random.IntN(20))
		l.killDuringCall(c.nodes[random.IntN(len(c.nodes))])
	}
	l.awaitMore(10)
	l.stopClients()
	l.verify(false)
}

// killDuringCall kills a node during a call, waits until another node repeats the call,
// and starts a new process for the node.
func (l *load) killDuringCall(m *member) {
	c := l.c
	c.t.Helper()
	run, key := l.startHanging(m)
	id := c.nodeID(m.name)
	m.avoid(true)
	endFault, before := c.recordFault(m.name), c.countLogged(tookOver)
	died := time.Now()
	m.Kill(c.t)
	expires := time.UnixMicro(int64(tables.Number(c.t, c.db, `SELECT coalesce(max(expires_at), 0) FROM nodes WHERE id = $1`, id)))
	again := l.await("another node repeats the call of the killed node", 2, func(call *sink.Call) bool { return call.Key == key })[1]
	c.t.Logf("the call of a killed node was repeated after %v", again.At.Sub(died).Round(time.Millisecond))
	if again.At.Before(expires) && !c.unplannedLossBetween(died, again.At) {
		c.t.Errorf("a killed node was replaced %v before its lease expired", expires.Sub(again.At))
	}
	c.awaitRemoved(id)
	harness.Eventually(c.t, "another node logs that it took over", func() bool { return c.countLogged(tookOver) > before })
	c.start(m)
	endFault()
	l.cancelHanging(m, run, key)
}

// startHanging starts a run on a node and waits until it hangs in a call. On a busy machine
// another node may take the run first: then it starts another one.
func (l *load) startHanging(m *member) (run, key string) {
	l.t.Helper()
	harness.Eventually(l.t, "node "+m.name+" executes a run", func() bool {
		var made runBody
		l.extraRuns++
		l.sendTo(m.Client, l.tenants[0], http.StatusCreated, "POST", "/v1/workflows/"+l.hanging+"/runs", map[string]any{},
			"Idempotency-Key", fmt.Sprintf("hanging-%d", l.extraRuns)).Decode(l.t, &made)
		call := l.await("the hanging call is in flight", 1, func(call *sink.Call) bool { return call.Run() == made.ID })[0]
		run, key = made.ID, call.Key
		if l.c.holds(m, run) {
			return true
		}
		l.cancelHanging(m, run, key)
		return false
	})
	return run, key
}

// cancelHanging cancels a hanging run and waits until each of its calls is dropped.
func (l *load) cancelHanging(m *member, run, key string) {
	l.t.Helper()
	l.sendTo(m.Client, l.tenants[0], http.StatusOK, "POST", "/v1/runs/"+run+"/cancel", nil, "Idempotency-Key", "cancel-"+run)
	harness.Eventually(l.t, "the calls of a cancelled run are dropped", func() bool {
		return len(l.sink.Calls(func(call *sink.Call) bool { return call.Key == key && !call.Dropped })) == 0
	})
}

// awaitRemoved waits until the other nodes have removed a node and requeued its runs.
func (c *cluster) awaitRemoved(id string) {
	c.t.Helper()
	deadline := time.Now().Add(harness.Timeout)
	for tables.Number(c.t, c.db, `SELECT count(*) FROM nodes WHERE id = $1`, id) > 0 {
		if time.Now().After(deadline) {
			c.logBlockedSessions()
			c.t.Fatalf("node %s is not removed after %v", id, harness.Timeout)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// logBlockedSessions logs the sessions that are in a transaction and what blocks them.
func (c *cluster) logBlockedSessions() {
	for _, line := range tables.Texts(c.t, c.db, `SELECT concat_ws(' ', pid, application_name, state, wait_event, clock_timestamp() - xact_start,
		clock_timestamp() - state_change, pg_blocking_pids(pid), left(query, 100))
		FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY xact_start`) {
		c.t.Log(line)
	}
}
