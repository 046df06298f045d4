package crash_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// A workflow has a concurrency limit of two. Across kills and stops at most two runs
// execute at a time, queued runs start in order, and none is lost.
func TestConcurrencyLimitSurvivesKills(t *testing.T) {
	t.Parallel()
	const perRound, limit = 8, 2
	rounds := lane.Pick(2, 6)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	settings := map[string]any{"concurrency": map[string]any{"limit": limit, "on_limit": "queue"}}
	id := flow.DefineWith(t, s.Client, settings, flow.HTTP("one", target.URL+"?ms=20"), flow.HTTP("two", target.URL+"?ms=20"))

	var runs []string
	for round := range rounds {
		for n := range int64(perRound) {
			runs = append(runs, startRun(t, s.Client, id, n).ID)
		}
		if round == 0 {
			harness.Eventually(t, "the limit is reached", func() bool {
				if len(runs) < 50*perRound && target.Peak("/") < limit {
					runs = append(runs, startRun(t, s.Client, id, 0).ID)
				}
				return target.Peak("/") >= limit
			})
		}
		time.Sleep(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
		if round%2 == 0 {
			s.Kill(t)
		} else {
			s.Stop(t)
		}
		target.AwaitClosed(t)
		checkTables(t, openCopy(t, s.Dir), "")
		s = restart(t, s, egress)
	}
	for _, run := range runs {
		if end := awaitEnd(t, s.Client, run); end.Status != succeeded {
			t.Errorf("run %s is %s: %+v", run, end.Status, end.Error)
		}
	}
	if most := target.Peak("/"); most > limit {
		t.Errorf("%d calls were in flight at a time, want at most %d", most, limit)
	}
	var order []string
	for _, c := range target.Calls(func(*sink.Call) bool { return true }) {
		if !slices.Contains(order, c.Run()) {
			order = append(order, c.Run())
		}
	}
	// A run that has a slot may be slow to make its call, so that later runs are one
	// position earlier. On PostgreSQL a run of a killed node keeps its slot until the
	// lease of the node expires, which is another position.
	early := limit
	if harness.OnPostgres() {
		early++
	}
	for i, run := range order {
		if at := slices.Index(runs, run); at-i >= early {
			t.Errorf("run %d made its first call as number %d", at, i)
		}
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}
