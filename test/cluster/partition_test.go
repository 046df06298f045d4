package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// databaseAway are errors that nodes log while they cannot reach the database.
const databaseAway = `does not answer|database|cannot |store|connect|context deadline|EOF|timeout|closed|River|Elector|Producer|Notifier|unavailable|not ready|although its time is over`

// A node is cut off from the database, but not from the world. It stops what it
// does to the world before others begin to do it, says that it is not ready, and
// works again when the database is back.
func TestNodeCutFromDatabase(t *testing.T) {
	c := newCluster(t, options{nodes: 3, lease: lease, proxied: true, errors: databaseAway})
	random := harness.Random(c.seed, 0)
	l := newLoad(c, 12)
	l.begin()
	hit := 0
	for range rounds(3) {
		time.Sleep(time.Duration(1000+random.IntN(1000)) * time.Millisecond)
		hit += l.partition(c.nodes[random.IntN(len(c.nodes))])
	}
	l.end()
	if hit < rounds(3) {
		t.Errorf("%d calls were under way at a cut", hit)
	}
	l.verify(false)
}

// partition cuts a node off until the others have its runs, and then heals the
// cut. It answers how many of its calls were under way.
func (l *load) partition(m *member) (cut int) {
	l.t.Helper()
	c := l.c
	of := l.tenants[0]
	hanging := define(l.t, m.With(of.key), map[string]any{"id": "hangs", "uses": "http.request", "with": map[string]any{
		"url": l.sink.URL + "/hangs?hang", "method": "POST", "body": "${{ trigger.payload }}",
	}})
	var hangs runBody
	m.With(of.key).Expect(l.t, http.StatusCreated, "POST", "/v1/workflows/"+hanging+"/runs", map[string]any{}).Decode(l.t, &hangs)
	l.others++
	first := l.sink.Await(l.t, "the call is under way", 1, func(call *sink.Call) bool { return call.Run() == hangs.ID })[0]
	id := c.nodeID(m.name)
	over := c.suffer()
	m.proxy.BlackHole(true)
	began := time.Now()
	unready := c.awaitReady(m, false, began)
	dropped := l.sink.Await(l.t, "the call was dropped", 1, func(call *sink.Call) bool { return call.Key == first.Key && call.Dropped })[0]
	again := l.sink.Await(l.t, "the call was repeated", 2, func(call *sink.Call) bool { return call.Key == first.Key })[1]
	l.t.Logf("a node that was cut off was not ready after %v, dropped its call after %v; another made it after %v",
		unready.Round(time.Millisecond), dropped.Ended.Sub(began).Round(time.Millisecond), again.At.Sub(began).Round(time.Millisecond))
	if !dropped.Ended.Before(again.At) {
		l.t.Errorf("a call was made by two nodes at a time, %v apart", dropped.Ended.Sub(again.At))
	}
	if unready > c.options.lease+4*time.Second {
		l.t.Errorf("a node that was cut off says so after %v", unready)
	}
	if late := dropped.Ended.Sub(began); late > c.options.lease {
		l.t.Errorf("a node that was cut off dropped its call after %v", late)
	}
	if late := again.At.Sub(began); late > c.options.lease+2*time.Second {
		l.t.Errorf("the runs of a node that was cut off were taken over after %v", late)
	}
	c.awaitForgotten(id)
	m.proxy.BlackHole(false)
	healed := time.Now()
	l.t.Logf("it was ready again after %v", c.awaitReady(m, true, healed).Round(time.Millisecond))
	over()
	m.With(of.key).Expect(l.t, http.StatusOK, "POST", "/v1/runs/"+hangs.ID+"/cancel", nil)
	l.sink.Await(l.t, "the call was ended", 2, func(call *sink.Call) bool { return call.Key == first.Key && call.Dropped })
	return 1
}

// awaitReady waits until a node says that it is ready, or that it is not, and
// answers how long that took.
func (c *cluster) awaitReady(m *member, ready bool, began time.Time) time.Duration {
	c.t.Helper()
	for {
		answer, err := m.With("").Do(c.t.Context(), http.MethodGet, "/readyz", nil)
		if err == nil && (answer.Status == http.StatusOK) == ready {
			return time.Since(began)
		}
		if time.Since(began) > settleTime {
			c.t.Fatalf("a node should be ready (%t): %d %v", ready, answer.Status, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
