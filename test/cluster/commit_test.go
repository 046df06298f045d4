package cluster_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/faultproxy"
)

// The answers to some commits are lost on their way. Nothing happens twice for
// it, and who asks again is told of what happened.
func TestCommitAnswersAreLost(t *testing.T) {
	c := newCluster(t, options{nodes: 2, lease: lease, proxied: true, errors: databaseAway})
	l := newLoad(c, 12)
	over := c.suffer() // any call may be one whose result was lost
	for _, m := range c.nodes {
		m.proxy.LoseCommits(faultproxy.Commits{Probability: 0.03, Early: 0.3})
	}
	l.begin()
	time.Sleep(time.Duration(rounds(15)) * time.Second)
	lost := 0
	for _, m := range c.nodes {
		m.proxy.LoseCommits(faultproxy.Commits{})
		n := m.proxy.Counts()
		t.Logf("%d of %d commits lost their answer, %d of them early", n.Lost, n.Commits, n.LostEarly)
		lost += n.Lost
	}
	over()
	l.end()
	if lost < 20 {
		t.Errorf("only %d commits lost their answer", lost)
	}
	l.verify(false)
}
