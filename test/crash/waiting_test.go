package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// question is a run that waits for an answer, with what was sent to it.
type question struct {
	run    string
	tries  []int64
	counts int64 // the try that was answered with 200; 0: none so far
}

// ask starts a run that calls, asks, and calls again with the answer.
func ask(t *testing.T, c *harness.Client, workflowID string) *question {
	t.Helper()
	q := &question{run: startRun(t, c, workflowID, 1).ID}
	awaitReason(t, c, q.run, "approve")
	return q
}

// answer sends an answer that nobody else sends, and notes what it was told.
func (q *question) answer(t *testing.T, c *harness.Client, n int64) {
	q.tries = append(q.tries, n)
	answer, err := c.Do(t.Context(), "POST", "/v1/runs/"+q.run+"/steps/ask/resume", map[string]any{"approved": true, "data": map[string]any{"n": n}})
	switch {
	case err != nil: // it may have come or not
	case answer.Status == http.StatusOK && q.counts == 0:
		q.counts = n
	case answer.Status == http.StatusOK:
		t.Errorf("the answers %d and %d to %s were both taken", q.counts, n, q.run)
	case answer.Status != http.StatusConflict || !strings.Contains(string(answer.Body), "step_not_waiting"):
		t.Errorf("an answer was answered with %d %s", answer.Status, answer.Body)
	case len(q.tries) == 1:
		t.Errorf("the first answer to %s was refused: %s", q.run, answer.Body)
	}
}

// Answers are given while the server is killed. One that was taken counts, alone
// and once; what follows it happens.
func TestAnswersSurviveKills(t *testing.T) {
	t.Parallel()
	const rounds, perRound = 8, 10
	random := harness.Random(harness.Seed(t), 0)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := define(t, s.Client, nil, calls("before", outside.URL),
		map[string]any{"id": "ask", "uses": "flow.approval", "with": map[string]any{"message": "go on?"}},
		map[string]any{"id": "n", "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": "${{ steps.ask.output.data.n }}"}}},
		calls("after", outside.URL))

	var all []*question
	next := int64(0)
	for range rounds {
		var open []*question
		for range perRound {
			open = append(open, ask(t, s.Client, id))
		}
		all = append(all, open...)
		killed := make(chan struct{})
		last := 2 + random.IntN(perRound-2) // whose answer the server may not live to give
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
				q.answer(t, s.Client, next)
			}
		}
		<-killed
		checkTables(t, checkFile(t, s.Dir), "")
		s = restart(t, s, egress)
	}
	counted, lost := 0, 0
	for _, q := range all {
		if q.counts == 0 { // nobody knows: answer again
			lost++
			next++
			q.answer(t, s.Client, next)
		}
		end := awaitEnd(t, s.Client, q.run, 20*time.Second)
		if end.Status != succeeded || len(end.Steps) != 4 || end.Steps[2].Output.N == nil {
			t.Fatalf("run %s is %s: %+v", q.run, end.Status, end.Error)
		}
		if n := *end.Steps[2].Output.N; q.counts != 0 && n != q.counts || !slices.Contains(q.tries, n) {
			t.Errorf("run %s went on with answer %d; taken was %d of %v", q.run, n, q.counts, q.tries)
		}
		if q.counts != 0 {
			counted++
		}
	}
	t.Logf("%d answers were taken, %d attempts had no known outcome", counted, lost)
	if counted < rounds*perRound/5 || lost == 0 {
		t.Errorf("%d answers were taken and %d lost: the kills came too early or too late", counted, lost)
	}
	if left := list(t, s.Client, "/v1/approvals").Data; len(left) != 0 {
		t.Errorf("%d approvals are still listed", len(left))
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// family makes a workflow whose runs start another one twice, one after the
// other, and add up what came back.
func family(t *testing.T, c *harness.Client, url string) string {
	t.Helper()
	child := define(t, c, nil, calls("call", url),
		map[string]any{"id": "n", "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": "${{ trigger.payload.n * 2 }}"}}})
	below := func(id, n string) map[string]any {
		return map[string]any{"id": id, "uses": "flow.run", "with": map[string]any{"workflow_id": child, "payload": map[string]any{"n": n}}}
	}
	return define(t, c, nil, below("first", "${{ trigger.payload.n }}"), below("second", "${{ steps.first.output.output.n + 1 }}"),
		map[string]any{"id": "sum", "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": "${{ steps.first.output.output.n + steps.second.output.output.n }}"}}})
}

// checkFamilies looks at runs of such a workflow, and at the runs below them.
func checkFamilies(t *testing.T, s *harness.Server, parents map[string]int64) {
	t.Helper()
	for id, n := range parents {
		end := awaitEnd(t, s.Client, id, settleTime)
		if want := 2*n + 2*(2*n+1); end.Status != succeeded || len(end.Steps) != 3 || end.Steps[2].Output.N == nil || *end.Steps[2].Output.N != want {
			t.Errorf("run %s is %s, %+v; its steps %+v should end with %d", id, end.Status, end.Error, end.Steps, want)
		}
		for _, step := range end.Steps {
			if step.Attempt != 1 {
				t.Errorf("run %s: step %s has attempt %d", id, step.StepID, step.Attempt)
			}
		}
	}
	db := openTables(t, s.Dir)
	if twice := texts(t, db, `SELECT parent_run || '/' || parent_step FROM runs WHERE parent_run IS NOT NULL GROUP BY 1 HAVING count(*) <> 1`); len(twice) != 0 {
		t.Errorf("these steps have more than one run: %v", twice)
	}
	if n := number(t, db, `SELECT count(*) FROM runs WHERE parent_run IS NOT NULL AND status = 'succeeded'`); n != 2*len(parents) {
		t.Errorf("%d runs below %d others succeeded, want %d", n, len(parents), 2*len(parents))
	}
}

// A step that starts another run is killed at any moment. The other run is
// started once, and its end is not missed.
func TestRunsBelowOthersSurviveKills(t *testing.T) {
	t.Parallel()
	const rounds, perRound = 10, 6
	random := harness.Random(harness.Seed(t), 0)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := family(t, s.Client, outside.URL)
	parents := map[string]int64{}
	for range rounds {
		for range perRound {
			n := random.Int64N(1000)
			parents[startRun(t, s.Client, id, n).ID] = n
		}
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		s.Kill(t)
		checkTables(t, checkFile(t, s.Dir), "")
		s = restart(t, s, egress)
	}
	checkFamilies(t, s, parents)
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// A run that failed is retried while the server is killed. There is one retry,
// and what had succeeded is not done again.
func TestRetriesSurviveKills(t *testing.T) {
	t.Parallel()
	const rounds = 8
	random := harness.Random(harness.Seed(t), 0)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := define(t, s.Client, nil, calls("fine", outside.URL),
		calls("fails", outside.URL+"/${{ run.id }}?status=400", "retry", map[string]any{"max_attempts": 1}))
	for round := range int64(rounds) {
		source := startRun(t, s.Client, id, round).ID
		if end := awaitEnd(t, s.Client, source, 20*time.Second); end.Status != failed {
			t.Fatalf("run %s is %s", source, end.Status)
		}
		order := []string{"Idempotency-Key", fmt.Sprintf("retry-%d", round)}
		killed := make(chan struct{})
		delay, dying := time.Duration(random.Int64N(int64(5*time.Millisecond))), s
		go func() {
			defer close(killed)
			time.Sleep(delay)
			dying.Kill(t)
		}()
		answer, err := s.Do(t.Context(), "POST", "/v1/runs/"+source+"/retry", nil, order...)
		<-killed
		s = restart(t, s, egress)
		var first, again runBody
		if err == nil {
			if err := json.Unmarshal(answer.Body, &first); err != nil {
				t.Error(err)
			}
		}
		s.Expect(t, 201, "POST", "/v1/runs/"+source+"/retry", nil, order...).Decode(t, &again)
		if err == nil && first.ID != again.ID {
			t.Errorf("one order to retry was answered with %s and %s", first.ID, again.ID)
		}
		if n := number(t, openTables(t, s.Dir), "SELECT count(*) FROM runs WHERE retry_of = $1", source); n != 1 {
			t.Errorf("run %s has %d retries", source, n)
		}
		if end := awaitEnd(t, s.Client, again.ID, 20*time.Second); end.Status != failed || len(end.Steps) != 2 {
			t.Errorf("the retry is %s: %+v", end.Status, end.Error)
		}
		if n := outside.Counted()[again.ID+"/fine"]; n != 0 {
			t.Errorf("a retry has done again what had succeeded")
		}
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}
