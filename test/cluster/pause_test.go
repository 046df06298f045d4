package cluster_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// A node is paused for longer than its lease and then goes on where it was: a
// zombie. Others have its runs by then, and nothing that it still writes counts.
func TestPauseNodeUnderLoad(t *testing.T) {
	c := newCluster(t, options{nodes: 3, lease: lease, errors: databaseAway})
	random := harness.Random(c.seed, 0)
	l := newLoad(c, 16)
	l.begin()
	hit, taken := 0, 0
	for range rounds(4) {
		time.Sleep(time.Duration(500+random.IntN(1000)) * time.Millisecond)
		m := c.nodes[random.IntN(len(c.nodes))]
		held := c.pause(m, 2*lease)
		if taken += held; held > 0 {
			hit++
		}
	}
	l.end()
	l.verify(true)
	t.Logf("%d runs were taken from nodes that were paused; %d times a node noticed; %d late writes were refused",
		taken, c.noticed(letGo), c.noticed(lostLease))
	if hit < rounds(4)/2 || c.noticed(letGo) < hit {
		t.Errorf("%d of the pauses hit a node that held runs, %d were noticed", hit, c.noticed(letGo))
	}
	l.verifyZombies()
}

// pause stops a node for a while. It answers how many runs it held.
func (c *cluster) pause(m *member, length time.Duration) (held int) {
	c.t.Helper()
	id := c.nodeID(m.name)
	m.leave(true)
	over := c.suffer()
	defer over()
	m.Signal(c.t, syscall.SIGSTOP)
	stopped := time.Now()
	held = number(c.t, c.tables, `SELECT count(*) FROM run_queue WHERE node = $1`, id)
	c.awaitForgotten(id)
	if took := time.Since(stopped); took > c.options.lease+2*time.Second {
		c.t.Errorf("the runs of a node that was paused were taken after %v", took)
	}
	if left := number(c.t, c.tables, `SELECT count(*) FROM run_queue WHERE node = $1`, id); left > 0 {
		c.t.Errorf("a node that is gone still holds %d runs", left)
	}
	time.Sleep(length - time.Since(stopped))
	m.Signal(c.t, syscall.SIGCONT)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // it is one of them again
		if number(c.t, c.tables, `SELECT count(*) FROM nodes WHERE id = $1`, id) == 1 {
			break
		}
		if time.Since(began) > settleTime {
			c.t.Fatal("a node that was paused does not come back")
		}
	}
	m.leave(false)
	return held
}

// verifyZombies counts steps that were begun three times: by the node that was
// paused, by the one that took over, and by the first again. A node does not
// begin what it cannot be sure of, but for what had passed that check already.
func (l *load) verifyZombies() {
	l.t.Helper()
	thrice := 0
	for key, n := range l.sink.Counted() {
		if n > 2 {
			l.t.Logf("%s was called %d times", key, n)
			thrice++
		}
	}
	if thrice > len(l.c.faults) {
		l.t.Errorf("%d steps were begun by nodes that had lost their runs", thrice)
	}
}
