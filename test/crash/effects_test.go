package crash_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// Servers are repeatedly killed during steps with side effects. Every run ends, and a
// call is only repeated, with the same key, if it was in flight at a kill.
func TestKillDuringSideEffects(t *testing.T) {
	t.Parallel()
	const perRound = 12
	rounds := lane.Pick(2, 8)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	workflow := effectsWorkflow(t, s.Client, target.URL)

	var runs []string
	for range rounds {
		for range perRound {
			runs = append(runs, startRun(t, s.Client, workflow, int64(len(runs))).ID)
		}
		time.Sleep(time.Duration(random.Int64N(60)) * time.Millisecond)
		s.Kill(t)
		s = restart(t, s, egress)
	}
	for _, id := range runs {
		if got := awaitEnd(t, s.Client, id); got.Status != "succeeded" || len(got.Steps) != 6 {
			t.Errorf("run %s: %+v", id, got)
		}
	}
	s.Stop(t)
	checkCalls(t, target, runs, rounds)
}

// effectsWorkflow makes a workflow with a call, three parallel calls, and a call.
func effectsWorkflow(t *testing.T, c *harness.Client, url string) string {
	t.Helper()
	return flow.Define(t, c, flow.HTTP("first", url),
		map[string]any{"id": "all", "foreach": "1..3", "parallel": 3, "steps": []any{flow.HTTP("one", url)}},
		flow.HTTP("last", url))
}

// checkCalls checks that each step was called with its own key, and not more often than
// kills explain.
func checkCalls(t *testing.T, target *sink.Sink, runs []string, kills int) {
	t.Helper()
	calls, repeated := target.Counts(), 0
	for _, id := range runs {
		for _, path := range []string{"first", "all[0].one", "all[1].one", "all[2].one", "last"} {
			count := calls[id+"/"+path]
			if count < 1 || count > 1+kills {
				t.Errorf("INVARIANT: %s/%s was called %d times", id, path, count)
			}
			repeated += count - 1
			delete(calls, id+"/"+path)
		}
	}
	for key := range calls {
		t.Errorf("INVARIANT: call with the key %q belongs to no step", key)
	}
	t.Logf("%d runs, %d calls repeated after %d kills", len(runs), repeated, kills)
}
