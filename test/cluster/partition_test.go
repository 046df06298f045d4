package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// A node is partitioned from the database, but not from the services it calls. It
// drops its calls before other nodes repeat them, reports that it is not ready, and
// recovers when it reaches the database again.
func TestNodePartitionedFromDatabase(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: 10 * time.Second, timeout: outageTimeout, proxied: true})
	random := harness.Random(c.seed, 0)
	l := newLoad(c)
	l.startClients()
	for range lane.Pick(1, 6) {
		l.awaitMore(10)
		// A node that gets no CPU time for a third of its lease cannot drop a
		// call in time. That happens on a busy machine, but not every time.
		began := time.Now()
		for attempt := 1; !l.partition(c.nodes[random.IntN(len(c.nodes))]); attempt++ {
			if attempt < 3 {
				continue
			}
			if stalled := c.stalledSince(began); stalled > c.options.lease/10 {
				t.Logf("inconclusive: the machine stalled for %v, and each time the call was repeated before the partitioned node dropped it", stalled)
			} else {
				t.Error("each time the call was repeated before the partitioned node dropped it")
			}
			break
		}
	}
	l.awaitMore(10)
	l.stopClients()
	l.verify(false)
}

// partition partitions a node until the others have taken over its runs, and then heals
// the partition. It reports whether the call in flight was dropped before it was
// repeated.
func (l *load) partition(m *member) (ordered bool) {
	l.t.Helper()
	c := l.c
	run, key := l.startHanging(m)
	id := c.nodeID(m.name)
	endFault := c.recordFault(m.name)
	m.proxy.BlackHole(true)
	cut := time.Now()
	c.awaitReady(m, false)
	dropped := l.await("the partitioned node drops its call", 1, func(call *sink.Call) bool { return call.Key == key && call.Dropped })[0]
	again := l.await("another node repeats the call", 2, func(call *sink.Call) bool { return call.Key == key })[1]
	l.t.Logf("the partitioned node dropped its call after %v; another node repeated it after %v",
		dropped.Ended.Sub(cut).Round(time.Millisecond), again.At.Sub(cut).Round(time.Millisecond))
	c.awaitRemoved(id)
	m.proxy.BlackHole(false)
	c.awaitReady(m, true)
	endFault()
	l.cancelHanging(m, run, key)
	return dropped.Ended.Before(again.At)
}

// awaitReady waits until a node reports that it is ready, or that it is not.
func (c *cluster) awaitReady(m *member, ready bool) {
	c.t.Helper()
	what := "a node is not ready"
	if ready {
		what = "a node is ready"
	}
	harness.Eventually(c.t, what, func() bool {
		response, err := m.With("").Do(c.t.Context(), http.MethodGet, "/readyz", nil)
		return err == nil && (response.Status == http.StatusOK) == ready
	})
}
