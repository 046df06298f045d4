package crash_test

import (
	"sync/atomic"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

const (
	// The runs of a round that succeed, and that are cancelled.
	finishedRuns, cancelledRuns = 150, 30
	// maxGrowthPerRun is how much the live heap may grow per run. A server keeps nothing
	// of ended runs in memory, and any part of one would be larger than this. It allows
	// for fluctuations such as connection buffers.
	maxGrowthPerRun = 512
)

// After a load a server has leaked neither connections nor memory. Only many rounds tell
// growth from fluctuation.
func TestNoLeaksAfterLoad(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	const rounds = 20
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), harness.ProfilingArgs(egress)...)
	l := newCallLoad(t, s, target)
	hang := flow.Define(t, s.Client, flow.HTTP("hangs", target.URL+"?hang"))
	round := func() {
		var left atomic.Int64
		left.Store(finishedRuns)
		l.work(s, func() bool { return left.Add(-1) < 0 })
		for n := range int64(cancelledRuns) { // during a call
			run := startRun(t, s.Client, hang, n).ID
			target.Await(t, "the call is in flight", 1, func(c *sink.Call) bool { return c.Run() == run })
			cancelRun(t, s.Client, run)
		}
		target.AwaitIdle(t)
	}
	round() // fills the caches and the pools of connections
	heap, files := s.LiveHeap(t), s.OpenFiles(t)
	for range rounds {
		round()
	}
	last := s.LiveHeap(t)
	t.Logf("live heap of %d KiB after the first round, %d KiB after %d more", heap>>10, last>>10, rounds)
	if last-heap > int64(rounds*(finishedRuns+cancelledRuns)*maxGrowthPerRun) {
		t.Errorf("the live heap has grown from %d to %d KiB", heap>>10, last>>10)
	}
	harness.Eventually(t, "there are no more open files than after the first round", func() bool {
		return s.OpenFiles(t) <= files*6/5
	})
	s.Stop(t)
}
