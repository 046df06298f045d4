package cluster_test

import (
	"testing"

	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// The responses to some commits are lost. Nothing happens twice because of that, and
// a client that retries gets the original result.
func TestLostCommitResponses(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	minimum := lane.Pick(20, 300)
	c := newCluster(t, options{nodes: 2, proxied: true})
	l := newLoad(c)
	endFault := c.recordFault("") // the result of any call may be lost
	for _, m := range c.nodes {
		m.proxy.LoseCommits(faultproxy.Commits{Probability: 0.05, Early: 0.3})
	}
	l.startClients()
	lost := func() (n faultproxy.Counts) {
		for _, m := range c.nodes {
			counts := m.proxy.Counts()
			n.Commits, n.Lost, n.LostEarly = n.Commits+counts.Commits, n.Lost+counts.Lost, n.LostEarly+counts.LostEarly
		}
		return n
	}
	if left := harness.AwaitZero(func() int { return minimum - lost().Lost }); left > 0 {
		t.Fatalf("%d commit responses were lost, want %d: there were no commits for %v", minimum-left, minimum, harness.Timeout)
	}
	harness.Eventually(t, "a commit response is lost early", func() bool { return lost().LostEarly > 0 })
	l.awaitMore(l.minRuns)
	for _, m := range c.nodes {
		m.proxy.LoseCommits(faultproxy.Commits{})
	}
	n := lost()
	t.Logf("%d of %d commit responses were lost, %d of them before the commit took effect", n.Lost, n.Commits, n.LostEarly)
	endFault()
	l.stopClients()
	l.verify(false)
}
