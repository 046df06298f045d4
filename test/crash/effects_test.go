package crash_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// Steps with effects are killed in the middle again and again. Every run ends;
// a call is only repeated when it was under way at the moment of a kill, and
// then with the same key.
func TestKillDuringEffects(t *testing.T) {
	const (
		rounds   = 8
		perRound = 12
	)
	random := harness.Random(harness.Seed(t), 0)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	workflow := effectsWorkflow(t, s.Client, outside.URL)

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
		if got := awaitEnd(t, s.Client, id, time.Minute); got.Status != "succeeded" || len(got.Steps) != 6 {
			t.Errorf("run %s: %+v", id, got)
		}
	}
	s.Stop(t)
	checkCalls(t, outside, runs, rounds)
}

// effectsWorkflow has a call, a loop of three calls in parallel, and a call.
func effectsWorkflow(t *testing.T, c *harness.Client, url string) string {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "effects"}).Decode(t, &made)
	call := map[string]any{"url": url, "method": "POST", "body": "${{ trigger.payload }}"}
	step := func(id string) map[string]any { return map[string]any{"id": id, "uses": "http.request", "with": call} }
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active", "steps": []any{
		step("first"),
		map[string]any{"id": "all", "foreach": "1..3", "parallel": 3, "steps": []any{step("one")}},
		step("last"),
	}})
	return made.ID
}

// checkCalls holds the calls against the runs: each step was called, under its own
// key, and no more often than kills explain.
func checkCalls(t *testing.T, outside *sink.Sink, runs []string, kills int) {
	t.Helper()
	calls, repeated := outside.Counted(), 0
	for _, id := range runs {
		for _, path := range []string{"first", "all[0].one", "all[1].one", "all[2].one", "last"} {
			count := calls[id+"/"+path]
			if count < 1 || count > 1+kills {
				t.Errorf("%s/%s was called %d times", id, path, count)
			}
			repeated += count - 1
			delete(calls, id+"/"+path)
		}
	}
	for key := range calls {
		t.Errorf("a call with the key %q belongs to no step", key)
	}
	t.Logf("%d runs, %d calls repeated after %d kills", len(runs), repeated, kills)
}
