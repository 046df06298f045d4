package crash_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// finish starts a run and waits for its end.
func finish(t *testing.T, c *harness.Client, workflowID string) runBody {
	t.Helper()
	var end runBody
	c.Expect(t, 200, "POST", "/v1/workflows/"+workflowID+"/runs", payload(1), "Prefer", "wait=60").Decode(t, &end)
	return end
}

// near tells that something took as long as it should, within a second.
func near(took, want time.Duration) bool { return took >= want && took <= want+time.Second }

// A call that is never answered ends with the time of its step, and is repeated
// as the step says.
func TestCallThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	hang := outside.URL + "?hang"
	once := define(t, s.Client, nil, calls("hangs", hang, "timeout", "1s", "retry", map[string]any{"max_attempts": 1}))
	end := finish(t, s.Client, once)
	if end.Status != failed || end.Error.Code != "timed_out" || end.Steps[0].Attempt != 1 {
		t.Errorf("the run is %s after attempt %d: %+v", end.Status, end.Steps[0].Attempt, end.Error)
	}
	if took := end.Steps[0].FinishedAt.Sub(end.Steps[0].StartedAt); !near(took, time.Second) {
		t.Errorf("a step with a second of time took %v", took)
	}

	thrice := define(t, s.Client, nil, calls("hangs", hang, "timeout", "500ms", "on_error", "continue",
		"retry", map[string]any{"max_attempts": 3, "initial": "10ms", "max_delay": "20ms"}), calls("later", outside.URL))
	end = finish(t, s.Client, thrice)
	if end.Status != succeeded || end.Steps[0].Attempt != 3 || end.Steps[0].Error.Code != "timed_out" || end.Steps[1].Status != succeeded {
		t.Errorf("the run is %s: %+v", end.Status, end)
	}
	if took := end.Steps[0].FinishedAt.Sub(end.Steps[0].StartedAt); !near(took, 1500*time.Millisecond) {
		t.Errorf("three attempts of half a second took %v", took)
	}
	for key, want := range map[string]int{end.ID + "/hangs": 3, end.ID + "/later": 1} {
		if got := outside.Counted()[key]; got != want {
			t.Errorf("%s was called %d times, want %d", key, got, want)
		}
	}
	s.Stop(t)
}

// The time of a run counts while its steps are executed, not while it waits. A
// kill does not begin it anew.
func TestTimeOfARun(t *testing.T) {
	t.Parallel()
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	settings := map[string]any{"timeout": "2s"}
	slow := outside.URL + "?ms=900"
	id := define(t, s.Client, settings, calls("one", slow), calls("two", slow), calls("three", slow), calls("four", slow))
	end := finish(t, s.Client, id)
	if end.Status != failed || end.Error.Code != "run_timeout" || len(end.Steps) != 3 || end.Steps[2].Status != cancelled {
		t.Errorf("the run is %s after %d steps: %+v", end.Status, len(end.Steps), end.Error)
	}
	if took := end.FinishedAt.Sub(end.StartedAt); !near(took, 2*time.Second) {
		t.Errorf("a run with two seconds of time took %v", took)
	}

	waits := define(t, s.Client, settings, calls("one", slow), map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "1500ms"}}, calls("two", slow))
	run := startRun(t, s.Client, waits, 1).ID
	awaitReason(t, s.Client, run, "waits until")
	s.Kill(t)
	s = restart(t, s, egress)
	if end := awaitEnd(t, s.Client, run, 20*time.Second); end.Status != succeeded {
		t.Errorf("a run that was executed for less than its time is %s: %+v", end.Status, end.Error)
	}

	killed := startRun(t, s.Client, id, 1).ID
	outside.Await(t, "the second call is under way", 1, func(c *sink.Call) bool { return c.Key == killed+"/two" })
	s.Kill(t)
	s = restart(t, s, egress)
	end = awaitEnd(t, s.Client, killed, 20*time.Second)
	if end.Status != failed || end.Error.Code != "run_timeout" || len(outside.Of(killed)) > 5 {
		t.Errorf("a run that was killed in between is %s after %d calls: %+v", end.Status, len(outside.Of(killed)), end.Error)
	}
	s.Stop(t)
}

// On the Free plan a run executes a thousand steps, the loop itself included,
// and not one more.
func TestStepsOfARun(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	c := workspace(t, s, "free")
	rounds := func(list string) string {
		return define(t, c, nil, map[string]any{"id": "all", "foreach": list, "steps": []any{
			map[string]any{"id": "one", "uses": "data.set", "with": map[string]any{"values": map[string]any{"i": "${{ item }}"}}},
		}})
	}
	if end := finish(t, c, rounds("1..999")); end.Status != succeeded || len(end.Steps) != 1000 {
		t.Errorf("a run of a thousand steps is %s after %d: %+v", end.Status, len(end.Steps), end.Error)
	}
	if end := finish(t, c, rounds("1..1000")); end.Status != failed || end.Error.Code != "step_limit_exceeded" || len(end.Steps) != 1000 {
		t.Errorf("a run of a thousand and one steps is %s after %d: %+v", end.Status, len(end.Steps), end.Error)
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}
