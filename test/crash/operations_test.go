package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// counting is how many counters the workflow of TestKillDuringOperations increments in
// parallel.
const counting = 4

// killsPerRun is how many kills a run of TestKillDuringOperations may have to survive. A
// run that was being executed at five crashes is quarantined.
const killsPerRun = 3

// Servers are repeatedly killed while many runs use the same keys and the same row. One
// run raises the alert, one adds the row, and no increment is lost or repeated.
func TestKillDuringOperations(t *testing.T) {
	t.Parallel()
	rounds, perRound := lane.Pick(3, 10), lane.Pick(20, 100)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	key := flow.NewWorkspace(t, s.Client, "enterprise").Key
	workflow := operationsWorkflow(t, s.With(key), target.URL)

	var runs []string
	unrecorded := 0
	for round := range rounds {
		runs = append(runs, startMany(t, s.With(key), workflow, perRound)...)
		awaitRound(t, s.With(key), runs, perRound, round-killsPerRun)
		unrecorded += killAtRandom(t, s, random)
		s = restart(t, s, egress)
	}
	c := s.With(key)
	alerts, created := 0, 0
	for _, id := range runs {
		awaitEnd(t, c, id)
		run := operationsOf(t, c, id)
		alerts += run.count("once", func(out operationOutput) bool { return out.Set })
		created += run.count("row", func(out operationOutput) bool { return out.Created })
	}
	if alerts != 1 || created != 1 {
		t.Errorf("INVARIANT: %d runs have set the key of the alert, and %d have created the row; want one each", alerts, created)
	}
	checkAlert(t, target)
	var counter struct{ Value int }
	c.Expect(t, 200, "GET", "/v1/state/counter", nil).Decode(t, &counter)
	if want := counting * len(runs); counter.Value != want {
		t.Errorf("INVARIANT: the counter is %d after %d runs, want %d", counter.Value, len(runs), want)
	}
	checkCountedRow(t, c, len(runs))
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
	t.Logf("%d runs; %d kills came between an operation and the end of its step %d times", len(runs), rounds, unrecorded)
}

// awaitRound waits until the runs of a round have ended.
func awaitRound(t *testing.T, c *harness.Client, runs []string, perRound, round int) {
	t.Helper()
	if round < 0 {
		return
	}
	for _, id := range runs[round*perRound : (round+1)*perRound] {
		awaitEnd(t, c, id)
	}
}

// operationsWorkflow makes a workflow that alerts once per day, counts in parallel, and
// counts in a row that the first run adds.
func operationsWorkflow(t *testing.T, c *harness.Client, url string) string {
	t.Helper()
	c.Expect(t, 201, "POST", "/v1/tables", json.RawMessage(`{"name": "counts", "key": "name", "columns": [
		{"name": "name", "type": "text"}, {"name": "n", "type": "number", "indexed": true}]}`))
	alert := flow.HTTP("alert", url, "if", "steps.once.output.set")
	return flow.Define(t, c,
		flow.Step("once", "state.set", `{"key": "alert", "value": "${{ run.id }}", "if_absent": true, "expires_in": "24h"}`),
		alert,
		map[string]any{
			"id": "all", "needs": []string{"once"}, "foreach": fmt.Sprintf("1..%d", counting), "parallel": 3,
			"steps": []any{flow.Step("one", "state.increment", `{"key": "counter", "scope": "workspace"}`)},
		},
		flow.Step("row", "table.upsert", `{"table": "counts", "values": {"name": "same"}}`),
		flow.Step("count", "table.increment", `{"table": "counts", "key": "same", "column": "n"}`),
		flow.Step("read", "table.get", `{"table": "counts", "key": "same"}`),
	)
}

// startMany starts runs at the same time.
func startMany(t *testing.T, c *harness.Client, workflow string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	var starting sync.WaitGroup
	for i := range ids {
		starting.Go(func() { ids[i] = startRun(t, c, workflow, int64(i)).ID })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return ids
}

// killAtRandom kills a server at a random moment and returns how many operations were
// performed whose step had not ended.
func killAtRandom(t *testing.T, s *harness.Server, random *rand.Rand) int {
	t.Helper()
	time.Sleep(time.Duration(random.Int64N(lane.Pick[int64](60, 300))) * time.Millisecond)
	s.Kill(t)
	db := openCopy(t, s.Dir)
	checkTables(t, db, "")
	return tables.Number(t, db, `SELECT count(*) FROM steps WHERE status = 'running' AND answer IS NOT NULL`)
}

// operationsRun is a run with the outputs of operations.
type operationsRun struct {
	ID     string
	Status status
	Steps  []struct {
		StepID  string `json:"step_id"`
		Attempt int
		Status  status
		Output  operationOutput
	}
}

type operationOutput struct {
	Set     bool
	Created bool
}

// operationsOf reads a run that must have succeeded, each of its steps at the first
// attempt.
func operationsOf(t *testing.T, c *harness.Client, id string) (run operationsRun) {
	t.Helper()
	c.Expect(t, 200, "GET", "/v1/runs/"+id, nil).Decode(t, &run)
	if run.Status != succeeded {
		t.Errorf("run %s is %s", id, run.Status)
	}
	for _, step := range run.Steps {
		if step.Status != succeeded && step.StepID != "alert" || step.Attempt > 1 {
			t.Errorf("run %s: step %s is %s at attempt %d", id, step.StepID, step.Status, step.Attempt)
		}
	}
	return run
}

func (r operationsRun) count(step string, holds func(operationOutput) bool) (n int) {
	for _, s := range r.Steps {
		if s.StepID == step && holds(s.Output) {
			n++
		}
	}
	return n
}

// checkAlert checks that one run has raised the alert. Its call may have been repeated
// after a kill, with the same key.
func checkAlert(t *testing.T, target *sink.Sink) {
	t.Helper()
	if calls := target.Counts(); len(calls) != 1 {
		t.Errorf("INVARIANT: the alert was raised by the steps %v, want one", calls)
	}
}

// checkCountedRow checks that the table has one row, which counts every run.
func checkCountedRow(t *testing.T, c *harness.Client, runs int) {
	t.Helper()
	var list struct {
		Data []struct{ ID string }
	}
	c.Expect(t, 200, "GET", "/v1/tables", nil).Decode(t, &list)
	var rows struct {
		Data []struct {
			Values struct {
				Name string
				N    int
			}
		}
	}
	c.Expect(t, 200, "GET", "/v1/tables/"+list.Data[0].ID+"/rows", nil).Decode(t, &rows)
	if len(rows.Data) != 1 || rows.Data[0].Values.N != runs {
		t.Errorf("INVARIANT: the rows are %+v, want one with %d", rows.Data, runs)
	}
}
