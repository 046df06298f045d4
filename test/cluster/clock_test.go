package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/sink"
)

// The clock of the database jumps by an hour and by a day, forward and back, under load,
// alone and together with a kill of a node. No run fails or is delayed until the clock
// has caught up, no effect is doubled, and waits do not end early. In the gate, test/crash
// simulates this.
func TestDatabaseClockJumps(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: shortLease, server: &postgres.Options{FakeTime: true}})
	random := harness.Random(c.seed, 0)
	target := sink.New(t)
	const length = 10 * time.Second // released to a job, unlike shorter waits
	waits := flow.Define(t, c.nodes[0].Client, flow.Wait("wait", length.String()), flow.HTTP("after", target.URL))
	l := newLoad(c)
	l.startClients()
	started := map[string]time.Time{}
	for _, ahead := range []time.Duration{time.Hour, 0, -time.Hour, 0, 24 * time.Hour, 0} {
		for range 4 {
			var made runBody
			l.extraRuns++
			at := time.Now()
			c.nodes[0].Expect(t, 201, "POST", "/v1/workflows/"+waits+"/runs", map[string]any{}, "Idempotency-Key", fmt.Sprint("wait-", len(started))).Decode(t, &made)
			started[made.ID] = at
		}
		l.awaitMore(10)
		c.pg.SetClock(t, ahead)
		t.Logf("the clock of the database is %s ahead", ahead)
		l.awaitMore(10)
		l.killDuringCall(c.nodes[1+random.IntN(len(c.nodes)-1)])
	}
	for id, at := range started {
		call := target.Await(t, "the end of a wait", 1, func(call *sink.Call) bool { return call.Run() == id })[0]
		if took := call.At.Sub(at); took < length-100*time.Millisecond {
			t.Errorf("a wait of %s ended after %s", length, took)
		}
	}
	l.awaitMore(10)
	l.stopClients()
	l.verify(false)
}
