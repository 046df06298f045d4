package crash_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const (
	racedRuns    = 520
	racers       = 8
	leastOutcome = racedRuns / 20
)

// raced is a run with what its cancels were told.
type raced struct {
	id       string
	does     chain
	accepted int // cancels answered with 200
	refused  int // cancels answered with 409
	final    []byte
}

// Cancels race the ends of runs: exactly one wins, the answer tells which, and
// it stays so.
func TestCancelRacesCompletion(t *testing.T) {
	seed := harness.Seed(t)
	s := harness.Start(t, t.TempDir())
	chains := []chain{
		{{"add", 1}},
		{{"add", 1}, {"times", 2}, {"add", 3}, {"times", 4}},
		{{"add", 1}, {"wait", 1}, {"times", 2}},
		{{"wait", 5}, {"add", 2}, {"wait", 10}, {"times", 3}},
		{{"add", 1}, {"wait", 30}, {"times", 2}},
	}
	workflows := make([]string, len(chains))
	for i, does := range chains {
		workflows[i] = createWorkflow(t, s.Client, fmt.Sprintf("raced %d", i), does)
	}

	runs := make([]*raced, racedRuns)
	var group sync.WaitGroup
	for racer := range racers {
		random := harness.Random(seed, racer)
		group.Go(func() {
			for i := racer; i < racedRuns && !t.Failed(); i += racers {
				pick := random.IntN(len(chains))
				runs[i] = &raced{does: chains[pick]}
				delay := time.Duration(random.Int64N(int64(60 * time.Millisecond)))
				runs[i].race(t, s.Client, workflows[pick], int64(i), delay, 1+random.IntN(2))
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}

	cancels := 0
	for _, r := range runs {
		r.judge(t, s.Client)
		cancels += r.accepted
	}
	t.Logf("%d runs, %d cancelled, %d completed", racedRuns, cancels, racedRuns-cancels)
	if cancels < leastOutcome || racedRuns-cancels < leastOutcome {
		t.Errorf("one side almost never won: this was no race")
	}
	s.Stop(t)
	db := checkFile(t, s.Dir)
	checkTables(t, db, "")
	if got := number(t, db, "SELECT count(*) FROM runs WHERE status = 'cancelled'"); got != cancels {
		t.Errorf("%d cancelled runs, but %d acknowledged cancels", got, cancels)
	}
	s = restart(t, s)
	for _, r := range runs {
		r.judge(t, s.Client)
	}
}

// race starts a run and cancels it after the delay, by several callers at once.
func (r *raced) race(t *testing.T, c *harness.Client, workflowID string, n int64, delay time.Duration, callers int) {
	var started runBody
	answer, err := c.Do(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(n))
	if err != nil || answer.Status != 201 {
		t.Errorf("start: %v %s", err, answer.Body)
		return
	}
	answer.Decode(t, &started)
	r.id = started.ID
	time.Sleep(delay)
	answers := make(chan harness.Answer, callers)
	for range callers {
		go func() {
			answer, err := c.Do(t.Context(), "POST", "/v1/runs/"+r.id+"/cancel", nil)
			if err != nil {
				t.Errorf("cancel: %v", err)
			}
			answers <- answer
		}()
	}
	for range callers {
		switch answer := <-answers; answer.Status {
		case 200:
			r.accepted++
			if !bytes.Contains(answer.Body, []byte(`"status":"cancelled"`)) {
				t.Errorf("a cancel was answered with 200 and %s", answer.Body)
			}
		case 409:
			r.refused++
			if !bytes.Contains(answer.Body, []byte(`"run_not_running"`)) {
				t.Errorf("a cancel was answered with 409 and %s", answer.Body)
			}
		default:
			t.Errorf("a cancel was answered with %d and %s", answer.Status, answer.Body)
		}
	}
}

// judge holds the run against what its cancels were told.
func (r *raced) judge(t *testing.T, c *harness.Client) {
	t.Helper()
	answer := c.Expect(t, 200, "GET", "/v1/runs/"+r.id, nil)
	var now runBody
	answer.Decode(t, &now)
	switch {
	case r.accepted > 1:
		t.Errorf("run %s was cancelled %d times", r.id, r.accepted)
	case r.accepted == 1 && now.Status != cancelled:
		t.Errorf("run %s is %s, yet its cancel was acknowledged", r.id, now.Status)
	case r.accepted == 0 && now.Status != succeeded:
		t.Errorf("run %s is %s, yet every cancel was refused", r.id, now.Status)
	case r.final != nil && !bytes.Equal(r.final, answer.Body):
		t.Errorf("run %s changed after its end\nwas %s\nis  %s", r.id, r.final, answer.Body)
	}
	r.final = answer.Body
	for _, v := range r.does.violations(now) {
		t.Error(v)
	}
}
