package crash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// cancelRun cancels a running run and checks that in the response the run and its steps
// have ended.
func cancelRun(t *testing.T, c *harness.Client, id string) runBody {
	t.Helper()
	var now runBody
	c.Expect(t, 200, "POST", "/v1/runs/"+id+"/cancel", nil).Decode(t, &now)
	if now.Status != cancelled || now.FinishedAt == nil || now.WaitingFor != nil {
		t.Errorf("response to the cancel of %s is %+v", id, now)
	}
	for _, step := range now.Steps {
		if step.FinishedAt == nil || step.Status == running || step.Status == "waiting" {
			t.Errorf("the cancel of %s left step %s %s", id, step.StepID, step.Status)
		}
	}
	return now
}

// awaitReason waits until a run waits for a reason that contains the text.
func awaitReason(t *testing.T, c *harness.Client, id, reason string) runBody {
	t.Helper()
	var now runBody
	harness.Eventually(t, "the run waits: "+reason, func() bool {
		now = getRun(t, c, id)
		return now.WaitingFor != nil && strings.Contains(now.WaitingFor.Reason, reason)
	})
	return now
}

// The Free plan allows five running runs. A queued run can be cancelled like any other,
// and the next one takes its place in the queue.
func TestCancelWhileQueued(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress, longLease)
	c := flow.NewWorkspace(t, s.Client, "free")
	id := flow.Define(t, c, flow.HTTP("call", target.URL+"?hang"))
	var runs []string
	for n := range int64(8) {
		runs = append(runs, startRun(t, c, id, n).ID)
	}
	target.Await(t, "five runs are running", 5, func(*sink.Call) bool { return true })
	if w := getRun(t, c, runs[5]).WaitingFor; w == nil || !strings.Contains(w.Reason, "queue") {
		t.Errorf("a run beyond the limit of the plan waits for %+v, want the queue", w)
	}
	cancelRun(t, c, runs[5])
	cancelRun(t, c, runs[6])
	target.Release()
	// The plan allows 60 requests a minute: the tables say when all have ended.
	awaitNone(t, s.Dir, "runs have not ended", "SELECT count(*) FROM run_queue")
	for i, run := range runs {
		want, made := succeeded, 1
		if i == 5 || i == 6 {
			want, made = cancelled, 0
		}
		if end := getRun(t, c, run); end.Status != want || len(target.CallsOf(run)) != made {
			t.Errorf("run %d is %s after %d calls, want %s after %d", i, end.Status, len(target.CallsOf(run)), want, made)
		}
	}
}

// raceStats counts how often each side of a race won.
type raceStats struct {
	races, least int // the minimum of races, and of wins for each side
	cancels      atomic.Int64
	completions  atomic.Int64
}

func (c *raceStats) over() bool {
	cancels, completions := int(c.cancels.Load()), int(c.completions.Load())
	return cancels+completions >= c.races && min(cancels, completions) >= c.least
}

// goesOn reports whether there should be another race. Ten times the minimum are enough
// on any machine.
func (c *raceStats) goesOn() bool {
	return !c.over() && int(c.cancels.Load()+c.completions.Load()) < 10*c.races
}

// delay chooses how long to wait before a run is cancelled. The delay is random, and its
// limit adapts to the outcomes, so that both sides win on any machine.
type delay struct {
	random *rand.Rand
	limit  time.Duration
}

func (d *delay) next() time.Duration { return time.Duration(d.random.Int64N(int64(d.limit))) }

// learn adapts the limit to an outcome.
func (d *delay) learn(cancelled bool) {
	if cancelled {
		d.limit += d.limit/8 + time.Millisecond
	} else {
		d.limit = max(time.Millisecond, d.limit-d.limit/6)
	}
}

// Runs with five calls are cancelled at random times. No step is called unless the
// response to the cancel shows it, and a call in flight is aborted.
func TestNoCallsAfterCancel(t *testing.T) {
	t.Parallel()
	const workers = 8
	race := &raceStats{races: lane.Pick(60, 400), least: lane.Pick(10, 20)}
	seed := harness.Seed(t)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress, longLease)
	var steps []map[string]any
	for i := range callSteps {
		steps = append(steps, flow.HTTP(stepID(i), target.URL+"?ms=10"))
	}
	id := flow.Define(t, s.Client, steps...)
	var mu sync.Mutex
	known := map[string]map[string]bool{} // the steps in the response to the cancel
	var group sync.WaitGroup
	for worker := range workers {
		d := &delay{harness.Random(seed, worker), 120 * time.Millisecond}
		group.Go(func() {
			for race.goesOn() && !t.Failed() {
				run, shown := cancelAfter(t, s.Client, id, d.next())
				mu.Lock()
				known[run] = shown
				mu.Unlock()
				if d.learn(shown != nil); shown != nil {
					race.cancels.Add(1)
				} else {
					race.completions.Add(1)
				}
			}
		})
	}
	group.Wait()
	if !race.over() {
		t.Logf("inconclusive: %d runs were cancelled and %d were not", race.cancels.Load(), race.completions.Load())
	}
	ends := map[string]runBody{}
	for run := range known {
		ends[run] = getRun(t, s.Client, run)
	}
	// Nothing else would end the call.
	hangs := startRun(t, s.Client, flow.Define(t, s.Client, flow.HTTP("hangs", target.URL+"?hang", "timeout", "15m"), flow.HTTP("later", target.URL)), 1).ID
	target.Await(t, "the call is in flight", 1, func(c *sink.Call) bool { return c.Run() == hangs })
	cancelRun(t, s.Client, hangs)
	target.Await(t, "the call is dropped", 1, func(c *sink.Call) bool { return c.Run() == hangs && c.Dropped })
	s.Stop(t)
	target.AwaitClosed(t)
	for run, shown := range known {
		now := ends[run]
		if shown == nil {
			if now.Status != succeeded {
				t.Errorf("INVARIANT: run %s is %s, but its cancel was rejected", run, now.Status)
			}
			continue
		}
		if now.Status != cancelled || len(now.Steps) != len(shown) {
			t.Errorf("run %s is %s with %d steps, want cancelled with %d", run, now.Status, len(now.Steps), len(shown))
		}
		for _, c := range target.CallsOf(run) {
			if !shown[c.Key] {
				t.Errorf("INVARIANT: %s was called after the cancel", c.Key)
			}
		}
	}
	t.Logf("%d of %d runs were cancelled in time", race.cancels.Load(), len(known))
	for key, n := range target.Counts() {
		if n != 1 {
			t.Errorf("INVARIANT: %s was called %d times, want 1", key, n)
		}
	}
	checkTables(t, openCopy(t, s.Dir), "")
}

// cancelAfter starts a run and cancels it after a delay. It returns the steps that the
// run had then, or nil if it had already ended.
func cancelAfter(t *testing.T, c *harness.Client, workflowID string, after time.Duration) (string, map[string]bool) {
	var started, now runBody
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(1))
	if err != nil || response.Status != 201 {
		t.Errorf("start a run: %v %s", err, response.Body)
		return "", nil
	}
	response.Decode(t, &started)
	time.Sleep(after)
	response, err = c.DoUntilAvailable(t.Context(), "POST", "/v1/runs/"+started.ID+"/cancel", nil)
	switch {
	case err != nil || response.Status != 200 && response.Status != 409:
		t.Errorf("cancel: %v %s", err, response.Body)
		return started.ID, nil
	case response.Status == 409:
		return started.ID, nil
	}
	response.Decode(t, &now)
	shown := map[string]bool{}
	for _, step := range now.Steps {
		shown[fmt.Sprintf("%s/%s", now.ID, step.StepID)] = true
	}
	return started.ID, shown
}
