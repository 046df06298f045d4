package crash_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// raced is a run with the responses to its cancels.
type raced struct {
	id       string
	does     chain
	accepted int // cancels with status 200
	rejected int // cancels with status 409
	final    []byte
}

// Cancels race the ends of runs. Exactly one side wins, the response says which, and the
// outcome does not change.
func TestCancelRacesCompletion(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	const racers = 8
	race := &raceStats{races: lane.Pick(100, 520), least: lane.Pick(10, 26)}
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

	var mu sync.Mutex
	var runs []*raced
	var group sync.WaitGroup
	for racer := range racers {
		random := harness.Random(seed, racer)
		d := &delay{random, 60 * time.Millisecond}
		group.Go(func() {
			for n := int64(racer); race.goesOn() && !t.Failed(); n += racers {
				pick := random.IntN(len(chains))
				r := &raced{does: chains[pick]}
				r.race(t, s.Client, workflows[pick], n, d.next(), 1+random.IntN(2))
				mu.Lock()
				runs = append(runs, r)
				mu.Unlock()
				if d.learn(r.accepted > 0); r.accepted > 0 {
					race.cancels.Add(1)
				} else {
					race.completions.Add(1)
				}
			}
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if !race.over() {
		t.Logf("inconclusive: %d runs were cancelled and %d completed", race.cancels.Load(), race.completions.Load())
	}

	cancels := 0
	for _, r := range runs {
		r.check(t, s.Client)
		cancels += r.accepted
	}
	t.Logf("%d runs, %d cancelled, %d completed", len(runs), cancels, len(runs)-cancels)
	s.Stop(t)
	db := openCopy(t, s.Dir)
	checkTables(t, db, "")
	if got := tables.Number(t, db, "SELECT count(*) FROM runs WHERE status = 'cancelled'"); got != cancels {
		t.Errorf("INVARIANT: %d runs are cancelled, want %d", got, cancels)
	}
	s = restart(t, s)
	for _, r := range runs {
		r.check(t, s.Client)
	}
}

// race starts a run and cancels it after the delay from several clients at once.
func (r *raced) race(t *testing.T, c *harness.Client, workflowID string, n int64, delay time.Duration, callers int) {
	var started runBody
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+workflowID+"/runs", payload(n))
	if err != nil || response.Status != 201 {
		t.Errorf("start a run: %v %s", err, response.Body)
		return
	}
	response.Decode(t, &started)
	r.id = started.ID
	time.Sleep(delay)
	responses := make(chan harness.Response, callers)
	for range callers {
		go func() {
			response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/runs/"+r.id+"/cancel", nil)
			if err != nil {
				t.Errorf("cancel: %v", err)
			}
			responses <- response
		}()
	}
	for range callers {
		switch response := <-responses; response.Status {
		case 200:
			r.accepted++
			if !bytes.Contains(response.Body, []byte(`"status":"cancelled"`)) {
				t.Errorf("response to a cancel is 200 %s", response.Body)
			}
		case 409:
			r.rejected++
			if !bytes.Contains(response.Body, []byte(`"run_not_running"`)) {
				t.Errorf("response to a cancel is 409 %s", response.Body)
			}
		default:
			t.Errorf("response to a cancel is %d %s", response.Status, response.Body)
		}
	}
}

// check compares the run with the responses to its cancels.
func (r *raced) check(t *testing.T, c *harness.Client) {
	t.Helper()
	response := c.Expect(t, 200, "GET", "/v1/runs/"+r.id, nil)
	var now runBody
	response.Decode(t, &now)
	switch {
	case r.accepted > 1:
		t.Errorf("INVARIANT: run %s was cancelled %d times", r.id, r.accepted)
	case r.accepted == 1 && now.Status != cancelled:
		t.Errorf("INVARIANT: run %s is %s, but its cancel was acknowledged", r.id, now.Status)
	case r.accepted == 0 && now.Status != succeeded:
		t.Errorf("INVARIANT: run %s is %s, but every cancel was rejected", r.id, now.Status)
	case r.final != nil && !bytes.Equal(r.final, response.Body):
		t.Errorf("INVARIANT: run %s changed after its end\nwas %s\nis  %s", r.id, r.final, response.Body)
	}
	r.final = response.Body
	for _, v := range r.does.violations(now) {
		t.Error(v)
	}
}
