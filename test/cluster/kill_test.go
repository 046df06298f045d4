package cluster_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// Nodes are killed under load, one after the other. The others go on with their
// runs as soon as their time is over.
func TestKillNodeUnderLoad(t *testing.T) {
	c := newCluster(t, options{nodes: 3, lease: lease})
	random := harness.Random(c.seed, 0)
	l := newLoad(c, 16)
	l.begin()
	hit := 0
	for range rounds(4) {
		time.Sleep(time.Duration(500+random.IntN(1500)) * time.Millisecond)
		if held, after := c.kill(c.nodes[random.IntN(len(c.nodes))]); held > 0 {
			hit++
			t.Logf("%d runs of a node that was killed were taken over, the first after %v", held, after.Round(time.Millisecond))
			if after > lease+2*time.Second {
				t.Errorf("the first run of a node that was killed was taken over after %v", after)
			}
		}
	}
	l.end()
	if hit < rounds(4)/2 {
		t.Errorf("only %d of the kills hit a node that held runs", hit)
	}
	l.verify(false)
}

// The same with the lease that is the default.
func TestTakeoverWithinPromise(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: 10 * time.Second})
	l := newLoad(c, 12)
	l.begin()
	time.Sleep(2 * time.Second)
	held, after := 0, time.Duration(0)
	for held == 0 {
		held, after = c.kill(c.nodes[1])
	}
	t.Logf("%d runs of a node that was killed were taken over, the first after %v", held, after.Round(time.Millisecond))
	if after > 12*time.Second {
		t.Errorf("the first run of a node that was killed was taken over after %v", after)
	}
	l.end()
	l.verify(false)
}

// kill kills a node and starts another in its place when its runs were taken
// over. It answers how many it held, and when the first was in other hands.
func (c *cluster) kill(m *member) (held int, after time.Duration) {
	c.t.Helper()
	id := c.nodeID(m.name)
	m.leave(true)
	over := c.suffer()
	defer over()
	died := time.Now()
	m.Kill(c.t)
	runs := texts(c.t, c.tables, `SELECT run_id FROM run_queue WHERE node = $1`, id)
	held = number(c.t, c.tables, `SELECT count(*) FROM run_queue WHERE node = $1`, id)
	for len(runs) > 0 && after == 0 {
		if n := number(c.t, c.tables, `SELECT count(*) FROM run_queue WHERE run_id = ANY($1) AND (node IS NULL OR node = $2)`, runs, id); n < len(runs) {
			after = time.Since(died)
		}
		if time.Since(died) > settleTime {
			c.t.Fatalf("the runs of a node that was killed are in nobody's hands after %v", settleTime)
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.awaitForgotten(id)
	c.start(m)
	return held, after
}

// awaitForgotten waits until a node that is gone holds nothing any more.
func (c *cluster) awaitForgotten(id string) {
	c.t.Helper()
	for began := time.Now(); number(c.t, c.tables, `SELECT count(*) FROM nodes WHERE id = $1`, id) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > settleTime {
			c.explainWaits()
			c.t.Fatalf("node %s is still known after %v", id, settleTime)
		}
	}
}

// explainWaits shows which sessions are in a transaction, and for whom they wait.
func (c *cluster) explainWaits() {
	for _, line := range texts(c.t, c.tables, `SELECT concat_ws(' ', pid, application_name, state, wait_event, clock_timestamp() - xact_start,
		clock_timestamp() - state_change, pg_blocking_pids(pid), left(query, 100))
		FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY xact_start`) {
		c.t.Log(line)
	}
}
