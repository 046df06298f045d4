package crash_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// execute starts a run and waits until it has ended.
func execute(t *testing.T, c *harness.Client, workflowID string) runBody {
	t.Helper()
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(1), "Prefer", "wait=60")
	if err != nil || response.Status > 201 {
		t.Fatalf("start a run: %v %d %s", err, response.Status, response.Body)
	}
	var end runBody
	response.Decode(t, &end)
	harness.Eventually(t, "the run has ended", func() bool {
		if end.Status == running {
			time.Sleep(2 * time.Second) // the rate limit of a plan is low
			end = getRun(t, c, end.ID)
		}
		return end.Status != running
	})
	return end
}

// A call without a response ends at the timeout of its step, and is retried as the step
// says.
func TestStepTimeout(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress, longLease)
	hang := target.URL + "?hang"
	once := flow.Define(t, s.Client, flow.HTTP("hangs", hang, "timeout", "1s", "retry", map[string]any{"max_attempts": 1}))
	begun := time.Now()
	end := execute(t, s.Client, once)
	if end.Status != failed || end.Error.Code != "timed_out" || end.Steps[0].Attempt != 1 {
		t.Errorf("the run is %s after attempt %d: %+v", end.Status, end.Steps[0].Attempt, end.Error)
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("a step with a timeout of a second took %v", took)
	}

	retried := flow.Define(t, s.Client, flow.HTTP("hangs", hang, "timeout", "500ms", "on_error", "continue",
		"retry", map[string]any{"max_attempts": 3, "initial": "10ms", "max_delay": "20ms"}), flow.HTTP("later", target.URL))
	begun = time.Now()
	end = execute(t, s.Client, retried)
	if end.Status != succeeded || end.Steps[0].Attempt != 3 || end.Steps[0].Error.Code != "timed_out" || end.Steps[1].Status != succeeded {
		t.Errorf("the run is %s: %+v", end.Status, end)
	}
	if took := time.Since(begun); took < 1500*time.Millisecond {
		t.Errorf("three attempts of half a second each took %v", took)
	}
	s.Stop(t)
	target.AwaitClosed(t)
	// On a busy machine an attempt may time out before its call is sent.
	if got := target.Counts()[end.ID+"/hangs"]; got < 1 || got > 3 {
		t.Errorf("a step with three attempts made %d calls, want 1 to 3", got)
	}
	if got := target.Counts()[end.ID+"/later"]; got != 1 {
		t.Errorf("the next step made %d calls, want 1", got)
	}
}

// The timeout of a run counts while its steps execute, not while it waits. A kill does
// not reset it.
func TestRunTimeout(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)

	// A step that never ends uses up the timeout of its run.
	id := flow.DefineWith(t, s.Client, map[string]any{"timeout": "1s"}, flow.HTTP("one", target.URL), flow.HTTP("hangs", target.URL+"?hang"), flow.HTTP("never", target.URL))
	begun := time.Now()
	end := execute(t, s.Client, id)
	if end.Status != failed || end.Error.Code != "run_timeout" || target.Counts()[end.ID+"/never"] != 0 {
		t.Errorf("the run is %s after %d steps: %+v", end.Status, len(end.Steps), end.Error)
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("a run with a timeout of a second took %v", took)
	}

	// On a slow machine quick calls may take as long as the timeout. Then the check is
	// repeated with a longer one.
	for _, limit := range []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, time.Minute} {
		var ended bool
		if s, ended = checkRunTimeout(t, s, target, limit); ended {
			s.Stop(t)
			return
		}
		t.Logf("quick calls take %v on this machine", limit)
	}
	t.Error("a run that waited for longer than its timeout did not succeed")
}

// checkRunTimeout starts two runs with a timeout. One waits for longer than that and
// succeeds. The other executes for longer, across a kill, and fails. It returns false if
// the first did not succeed.
func checkRunTimeout(t *testing.T, s *harness.Server, target *sink.Sink, limit time.Duration) (*harness.Server, bool) {
	t.Helper()
	settings := map[string]any{"timeout": limit.String()}
	waits := flow.DefineWith(t, s.Client, settings, flow.HTTP("one", target.URL), flow.Step("wait", "flow.wait", fmt.Sprintf(`{"for":%q}`, limit+limit/4)), flow.HTTP("two", target.URL))
	// After the first step less time is left than the last one takes.
	most := fmt.Sprintf("%s?ms=%d", target.URL, (limit * 6 / 10).Milliseconds())
	needs := flow.DefineWith(t, s.Client, settings, flow.HTTP("one", most), flow.Step("ask", "flow.approval", `{}`), flow.HTTP("two", most), flow.HTTP("three", target.URL))
	waiting, needing := startRun(t, s.Client, waits, 1).ID, startRun(t, s.Client, needs, 1).ID
	asked := true
	harness.Eventually(t, "the run waits for its approval", func() bool {
		now := getRun(t, s.Client, needing)
		asked = now.Status == running
		return !asked || now.WaitingFor != nil && now.WaitingFor.StepID != nil && *now.WaitingFor.StepID == "ask"
	})
	s.Kill(t)
	s = restart(t, s, egress)
	if end := awaitEnd(t, s.Client, waiting); end.Status != succeeded || !asked {
		return s, false
	}
	s.Expect(t, 200, "POST", "/v1/runs/"+needing+"/steps/ask/resume", map[string]any{"approved": true})
	if end := awaitEnd(t, s.Client, needing); end.Status != failed || end.Error.Code != "run_timeout" {
		t.Errorf("a run that executed for longer than its timeout is %s, want failed: %+v", end.Status, end.Error)
	}
	return s, true
}

// On the Free plan a run may execute a thousand steps, including the loop itself.
func TestStepLimit(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	c := flow.NewWorkspace(t, s.Client, "free")
	rounds := func(list string) string {
		return flow.Define(t, c, map[string]any{"id": "all", "foreach": list, "steps": []any{
			map[string]any{"id": "one", "uses": "data.set", "with": map[string]any{"values": map[string]any{"i": "${{ item }}"}}},
		}})
	}
	if end := execute(t, c, rounds("1..999")); end.Status != succeeded || len(end.Steps) != 1000 {
		t.Errorf("a run of a thousand steps is %s after %d: %+v", end.Status, len(end.Steps), end.Error)
	}
	if end := execute(t, c, rounds("1..1000")); end.Status != failed || end.Error.Code != "step_limit_exceeded" || len(end.Steps) != 1000 {
		t.Errorf("a run of a thousand and one steps is %s after %d: %+v", end.Status, len(end.Steps), end.Error)
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}
