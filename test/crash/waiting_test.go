package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// approvalRun is a run that waits for an approval, with the requests to resume it.
type approvalRun struct {
	run      string
	tries    []int64
	accepted int64 // the request with status 200, or 0
}

// startApproval starts a run and waits until it waits for its approval.
func startApproval(t *testing.T, c *harness.Client, workflowID string) *approvalRun {
	t.Helper()
	q := &approvalRun{run: startRun(t, c, workflowID, 1).ID}
	awaitReason(t, c, q.run, "approval")
	return q
}

// resume sends a unique request to resume the run and records the response.
func (q *approvalRun) resume(t *testing.T, c *harness.Client, n int64) {
	q.tries = append(q.tries, n)
	response, err := c.DoUntilAvailable(t.Context(), "POST", "/v1/runs/"+q.run+"/steps/ask/resume", map[string]any{"approved": true, "data": map[string]any{"n": n}})
	switch {
	case err != nil: // it may have taken effect
	case response.Status == http.StatusOK && q.accepted == 0:
		q.accepted = n
	case response.Status == http.StatusOK:
		t.Errorf("INVARIANT: requests %d and %d to resume %s were both accepted", q.accepted, n, q.run)
	case response.Status != http.StatusConflict || !strings.Contains(string(response.Body), "step_not_waiting"):
		t.Errorf("resume returned %d %s", response.Status, response.Body)
	case len(q.tries) == 1:
		t.Errorf("the first request to resume %s was rejected: %s", q.run, response.Body)
	}
}

// Approvals are resumed while the server is killed. Exactly one request takes effect, the
// accepted one if there is one, and the run continues.
func TestApprovalsSurviveKills(t *testing.T) {
	t.Parallel()
	const perRound = 10
	rounds := lane.Pick(2, 8)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := flow.Define(t, s.Client, flow.HTTP("before", target.URL),
		map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{"message": "continue?"}},
		flow.Set("n", "${{ steps.ask.output.data.n }}"),
		flow.HTTP("after", target.URL))

	var all []*approvalRun
	next := int64(0)
	accepted, unknown := 0, 0
	// A kill may come too early or too late for a response to be lost. Then there is
	// another round.
	for round := 0; round < rounds || round < 3*rounds && (accepted == 0 || unknown == 0); round++ {
		var open []*approvalRun
		for range perRound {
			open = append(open, startApproval(t, s.Client, id))
		}
		all = append(all, open...)
		killed := make(chan struct{})
		last := 2 + random.IntN(perRound-2) // the server may die before it responds to this one
		delay := time.Duration(random.Int64N(int64(5 * time.Millisecond)))
		dying := s
		for i, q := range open {
			if i == last {
				go func() {
					defer close(killed)
					time.Sleep(delay)
					dying.Kill(t)
				}()
			}
			for range 1 + random.IntN(2) {
				next++
				q.resume(t, s.Client, next)
			}
		}
		<-killed
		for _, q := range open {
			if q.accepted != 0 {
				accepted++
			} else if len(q.tries) > 0 {
				unknown++
			}
		}
		checkTables(t, openCopy(t, s.Dir), "")
		s = restart(t, s, egress)
	}
	for _, q := range all {
		if q.accepted == 0 { // unknown outcome: resume again
			next++
			q.resume(t, s.Client, next)
		}
		end := awaitEnd(t, s.Client, q.run)
		if end.Status != succeeded || len(end.Steps) != 4 || end.Steps[2].Output.N == nil {
			t.Fatalf("run %s is %s: %+v", q.run, end.Status, end.Error)
		}
		if n := *end.Steps[2].Output.N; q.accepted != 0 && n != q.accepted || !slices.Contains(q.tries, n) {
			t.Errorf("INVARIANT: run %s continued with request %d, want %d of %v", q.run, n, q.accepted, q.tries)
		}
	}
	if t.Logf("%d requests were accepted, %d had no known outcome", accepted, unknown); unknown == 0 {
		t.Log("inconclusive: no kill came while a request was in flight")
	}
	if left := list(t, s.Client, "/v1/approvals").Data; len(left) != 0 {
		t.Errorf("%d approvals are still listed", len(left))
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// parentWorkflow makes a workflow whose runs start two child runs one after the other and
// add up their outputs.
func parentWorkflow(t *testing.T, c *harness.Client, url string) string {
	t.Helper()
	child := flow.Define(t, c, flow.HTTP("call", url),
		flow.Set("n", "${{ trigger.payload.n * 2 }}"))
	childStep := func(id, n string) map[string]any {
		return map[string]any{"id": id, "uses": "flow.run", "with": map[string]any{"workflow_id": child, "payload": map[string]any{"n": n}}}
	}
	return flow.Define(t, c, childStep("first", "${{ trigger.payload.n }}"), childStep("second", "${{ steps.first.output.output.n + 1 }}"),
		flow.Set("sum", "${{ steps.first.output.output.n + steps.second.output.output.n }}"))
}

// checkParents checks runs of such a workflow and their child runs.
func checkParents(t *testing.T, s *harness.Server, parents map[string]int64) {
	t.Helper()
	for id, n := range parents {
		end := awaitEnd(t, s.Client, id)
		if want := 2*n + 2*(2*n+1); end.Status != succeeded || len(end.Steps) != 3 || end.Steps[2].Output.N == nil || *end.Steps[2].Output.N != want {
			t.Errorf("run %s is %s, %+v, with steps %+v; want the last output %d", id, end.Status, end.Error, end.Steps, want)
		}
		for _, step := range end.Steps {
			if step.Attempt != 1 {
				t.Errorf("run %s: step %s has attempt %d", id, step.StepID, step.Attempt)
			}
		}
	}
	db := openTables(t, s.Dir)
	if twice := tables.Texts(t, db, `SELECT parent_run || '/' || parent_step FROM runs WHERE parent_run IS NOT NULL GROUP BY 1 HAVING count(*) <> 1`); len(twice) != 0 {
		t.Errorf("INVARIANT: steps with more than one child run: %v", twice)
	}
	if n := tables.Number(t, db, `SELECT count(*) FROM runs WHERE parent_run IS NOT NULL AND status = 'succeeded'`); n != 2*len(parents) {
		t.Errorf("INVARIANT: %d child runs of %d runs succeeded, want %d", n, len(parents), 2*len(parents))
	}
}

// The server is killed at random moments of steps that start child runs. Each child run
// is started once, and its parent continues when it has ended.
func TestChildRunsSurviveKills(t *testing.T) {
	t.Parallel()
	const perRound = 6
	rounds := lane.Pick(2, 10)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := parentWorkflow(t, s.Client, target.URL)
	parents := map[string]int64{}
	for range rounds {
		for range perRound {
			n := random.Int64N(1000)
			parents[startRun(t, s.Client, id, n).ID] = n
		}
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		s.Kill(t)
		checkTables(t, openCopy(t, s.Dir), "")
		s = restart(t, s, egress)
	}
	checkParents(t, s, parents)
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// A failed run is retried while the server is killed. There is one retry, and it does not
// repeat the steps that had succeeded.
func TestRetriesSurviveKills(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	rounds := lane.Pick[int64](2, 8)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := flow.Define(t, s.Client, flow.HTTP("fine", target.URL),
		flow.HTTP("fails", target.URL+"/${{ run.id }}?status=400", "retry", map[string]any{"max_attempts": 1}))
	for round := range rounds {
		source := startRun(t, s.Client, id, round).ID
		if end := awaitEnd(t, s.Client, source); end.Status != failed {
			t.Fatalf("run %s is %s", source, end.Status)
		}
		header := []string{"Idempotency-Key", fmt.Sprintf("retry-%d", round)}
		killed := make(chan struct{})
		delay, dying := time.Duration(random.Int64N(int64(5*time.Millisecond))), s
		go func() {
			defer close(killed)
			time.Sleep(delay)
			dying.Kill(t)
		}()
		response, err := s.Do(t.Context(), "POST", "/v1/runs/"+source+"/retry", nil, header...)
		<-killed
		s = restart(t, s, egress)
		var first, again runBody
		if err == nil {
			if err := json.Unmarshal(response.Body, &first); err != nil {
				t.Error(err)
			}
		}
		s.Expect(t, 201, "POST", "/v1/runs/"+source+"/retry", nil, header...).Decode(t, &again)
		if err == nil && first.ID != again.ID {
			t.Errorf("INVARIANT: one idempotency key returned the retries %s and %s", first.ID, again.ID)
		}
		if n := number(t, s.Dir, "SELECT count(*) FROM runs WHERE retry_of = $1", source); n != 1 {
			t.Errorf("INVARIANT: run %s has %d retries, want 1", source, n)
		}
		if end := awaitEnd(t, s.Client, again.ID); end.Status != failed || len(end.Steps) != 2 {
			t.Errorf("the retry is %s: %+v", end.Status, end.Error)
		}
		if n := target.Counts()[again.ID+"/fine"]; n != 0 {
			t.Errorf("the retry repeated a step that had succeeded")
		}
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}
