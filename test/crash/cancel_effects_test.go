package crash_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// cancelRun cancels a run that is under way: it has ended in the answer, and so
// have its steps.
func cancelRun(t *testing.T, c *harness.Client, id string) runBody {
	t.Helper()
	var now runBody
	c.Expect(t, 200, "POST", "/v1/runs/"+id+"/cancel", nil).Decode(t, &now)
	if now.Status != cancelled || now.FinishedAt == nil || now.WaitingFor != nil {
		t.Errorf("the cancel of %s was answered with %+v", id, now)
	}
	for _, step := range now.Steps {
		if step.FinishedAt == nil || step.Status == running || step.Status == "waiting" {
			t.Errorf("the cancel of %s left step %s %s", id, step.StepID, step.Status)
		}
	}
	return now
}

// awaitReason waits until a run says that it waits for something.
func awaitReason(t *testing.T, c *harness.Client, id, reason string) runBody {
	t.Helper()
	var now runBody
	sink.Within(t, 20*time.Second, "a run "+reason, func() bool {
		now = getRun(t, c, id)
		return now.WaitingFor != nil && strings.Contains(now.WaitingFor.Reason, reason)
	})
	return now
}

// A run can be cancelled whatever it waits for. It has ended in the answer, and
// no call of it is made after that.
func TestCancelWhileWaiting(t *testing.T) {
	t.Parallel()
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	hang := outside.URL + "?hang"
	one := map[string]any{"concurrency": map[string]any{"limit": 1, "on_limit": "queue"}}
	child := define(t, s.Client, nil, calls("inner", hang), calls("later", outside.URL))
	for name, tc := range map[string]struct {
		reason   string
		settings map[string]any
		steps    []map[string]any
	}{
		"for a time":       {"waits until", nil, []map[string]any{{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "1h"}}, calls("later", outside.URL)}},
		"for an answer":    {"approve", nil, []map[string]any{{"id": "ask", "uses": "flow.approval"}, calls("later", outside.URL)}},
		"for a repetition": {"attempt", nil, []map[string]any{calls("fails", outside.URL+"?status=503", "retry", map[string]any{"initial": "5m", "max_attempts": 3}), calls("later", outside.URL)}},
		"for a place":      {"another run", one, []map[string]any{calls("holds", hang), calls("later", outside.URL)}},
		"for another run":  {"the end of run_", nil, []map[string]any{{"id": "child", "uses": "flow.run", "with": map[string]any{"workflow_id": child}}, calls("later", outside.URL)}},
	} {
		t.Run(name, func(t *testing.T) {
			id := define(t, s.Client, tc.settings, tc.steps...)
			first := startRun(t, s.Client, id, 1).ID
			run := first
			if tc.settings != nil {
				outside.Await(t, "the first run has its place", 1, func(c *sink.Call) bool { return c.Run() == first })
				run = startRun(t, s.Client, id, 2).ID
			}
			awaitReason(t, s.Client, run, tc.reason)
			cancelRun(t, s.Client, run)
			s.Expect(t, 409, "POST", "/v1/runs/"+run+"/cancel", nil)
			if run != first {
				cancelRun(t, s.Client, first)
			}
		})
	}
	for _, item := range list(t, s.Client, "/v1/runs").Data {
		if item.Status != cancelled {
			t.Errorf("run %s is %s; it was cancelled, or was the run of one that was", item.ID, item.Status)
		}
	}
	if found := outside.Seen(func(c *sink.Call) bool { return strings.HasSuffix(c.Key, "/later") }); len(found) != 0 {
		t.Errorf("%d calls were made by runs that had been cancelled", len(found))
	}
	outside.Quiet(t)
	s.Kill(t)
	checkTables(t, checkFile(t, s.Dir), "")
	s = restart(t, s, egress)
	s.Stop(t)
}

// On the Free plan five runs are under way at a time. One that waits behind them
// is cancelled like any other, and its place goes to the next.
func TestCancelWhileQueued(t *testing.T) {
	t.Parallel()
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	c := workspace(t, s, "free")
	id := define(t, c, nil, calls("call", outside.URL+"?ms=1500"))
	var runs []string
	for n := range int64(8) {
		runs = append(runs, startRun(t, c, id, n).ID)
	}
	outside.Await(t, "five runs are under way", 5, func(*sink.Call) bool { return true })
	if w := getRun(t, c, runs[5]).WaitingFor; w == nil || !strings.Contains(w.Reason, "queue") {
		t.Errorf("a run beyond the limit of the plan waits for %+v", w)
	}
	cancelRun(t, c, runs[5])
	cancelRun(t, c, runs[6])
	for i, run := range runs {
		want := succeeded
		if i == 5 || i == 6 {
			want = cancelled
		}
		var end runBody
		sink.Within(t, 20*time.Second, "a run has ended", func() bool {
			time.Sleep(200 * time.Millisecond) // the plan allows 60 requests a minute
			end = getRun(t, c, run)
			return end.Status != running
		})
		if end.Status != want || want == cancelled && len(outside.Of(run)) != 0 {
			t.Errorf("run %d is %s after %d calls, want %s", i, end.Status, len(outside.Of(run)), want)
		}
	}
}

// A step that is under way is aborted within a second of the cancel.
func TestCancelAbortsTheCall(t *testing.T) {
	t.Parallel()
	const runs = 20
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := define(t, s.Client, nil, calls("hangs", outside.URL+"?hang"), calls("later", outside.URL))
	var slowest time.Duration
	for n := range int64(runs) {
		run := startRun(t, s.Client, id, n).ID
		outside.Await(t, "the call is under way", 1, func(c *sink.Call) bool { return c.Run() == run })
		cancelRun(t, s.Client, run)
		answered := time.Now()
		outside.Await(t, "the call was dropped", 1, func(c *sink.Call) bool { return c.Run() == run && c.Dropped })
		slowest = max(slowest, outside.Of(run)[0].Ended.Sub(answered))
	}
	t.Logf("the slowest of %d calls ended %v after the cancel", runs, slowest)
	if slowest > time.Second {
		t.Errorf("a call ended %v after the cancel of its run", slowest)
	}
	if n := len(outside.Seen(func(*sink.Call) bool { return true })); n != runs {
		t.Errorf("%d calls, want %d", n, runs)
	}
}

// Runs of five calls are cancelled at random times. No step is called that the
// answer to the cancel does not show.
func TestNoCallAfterACancel(t *testing.T) {
	t.Parallel()
	const runs, at = 400, 8
	seed := harness.Seed(t)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	var steps []map[string]any
	for i := range callSteps {
		steps = append(steps, calls(stepID(i), outside.URL+"?ms=10"))
	}
	id := define(t, s.Client, nil, steps...)
	known := make([]map[string]bool, runs) // the steps that an answer showed
	ids := make([]string, runs)
	var group sync.WaitGroup
	for worker := range at {
		random := harness.Random(seed, worker)
		group.Go(func() {
			// About as long as a run takes, on whatever machine this is.
			longest := 120 * time.Millisecond
			for i := worker; i < runs && !t.Failed(); i += at {
				ids[i], known[i] = cancelAfter(t, s.Client, id, time.Duration(random.Int64N(int64(longest))))
				if known[i] == nil {
					longest -= longest / 6
				} else {
					longest += longest / 8
				}
			}
		})
	}
	group.Wait()
	outside.Quiet(t)
	cancels := 0
	for i, shown := range known {
		now := getRun(t, s.Client, ids[i])
		if shown == nil {
			if now.Status != succeeded {
				t.Errorf("run %s is %s, yet its cancel was refused", now.ID, now.Status)
			}
			continue
		}
		cancels++
		if now.Status != cancelled || len(now.Steps) != len(shown) {
			t.Errorf("run %s is %s with %d steps; cancelled it had %d", now.ID, now.Status, len(now.Steps), len(shown))
		}
		for _, c := range outside.Of(ids[i]) {
			if !shown[c.Key] {
				t.Errorf("%s was called after the cancel", c.Key)
			}
		}
	}
	t.Logf("%d of %d runs were cancelled in time", cancels, runs)
	if cancels < runs/5 || runs-cancels < runs/20 {
		t.Errorf("%d of %d runs were cancelled in time: this was no race", cancels, runs)
	}
	for key, n := range outside.Counted() {
		if n != 1 {
			t.Errorf("%s was called %d times", key, n)
		}
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// cancelAfter starts a run and cancels it after a while. It answers with the
// steps that the run had then, nil when it had ended before.
func cancelAfter(t *testing.T, c *harness.Client, workflowID string, after time.Duration) (string, map[string]bool) {
	var started, now runBody
	answer, err := c.Do(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(1))
	if err != nil || answer.Status != 201 {
		t.Errorf("start: %v %s", err, answer.Body)
		return "", nil
	}
	answer.Decode(t, &started)
	time.Sleep(after)
	answer, err = c.Do(t.Context(), "POST", "/v1/runs/"+started.ID+"/cancel", nil)
	switch {
	case err != nil || answer.Status != 200 && answer.Status != 409:
		t.Errorf("cancel: %v %s", err, answer.Body)
		return started.ID, nil
	case answer.Status == 409:
		return started.ID, nil
	}
	answer.Decode(t, &now)
	shown := map[string]bool{}
	for _, step := range now.Steps {
		shown[fmt.Sprintf("%s/%s", now.ID, step.StepID)] = true
	}
	return started.ID, shown
}
