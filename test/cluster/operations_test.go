package cluster_test

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// countsPerRun is how often a run of TestOperationsOfLostNodes increments the counter.
const countsPerRun = 20

// Nodes are paused for longer than their lease, or killed, while many runs on all nodes
// use the same keys and the same row. Other nodes continue their runs, and a paused node
// cannot repeat an operation when it continues: one run sets the key, one adds the row,
// and the counters are exact.
func TestOperationsOfLostNodes(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{nodes: 3, lease: shortLease})
	key := flow.NewWorkspace(t, c.nodes[0].Client, "enterprise").Key
	workflow := countingWorkflow(t, c.nodes[0].With(key))
	var runs []string
	for round := range 4 {
		for i := range 100 {
			var run struct{ ID string }
			c.nodes[i%len(c.nodes)].With(key).Expect(t, 201, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{},
				"Idempotency-Key", fmt.Sprintf("%d-%d", round, i)).Decode(t, &run)
			runs = append(runs, run.ID)
		}
		m := c.nodes[round%len(c.nodes)]
		id := c.nodeID(m.name)
		held := tables.Number(t, c.db, `SELECT count(*) FROM run_queue WHERE node = $1`, id)
		t.Logf("node %s is lost with about %d runs", m.name, held)
		if round%2 == 0 {
			c.pauseUntilRemoved(m, id)
		} else {
			m.Kill(t)
			c.awaitRemoved(id)
			c.start(m)
		}
	}
	client := c.nodes[0].With(key)
	set, created := 0, 0
	for _, id := range runs {
		outputs := operationOutputs(t, client, id)
		if outputs["once"].Set {
			set++
		}
		if outputs["row"].Created {
			created++
		}
	}
	if set != 1 || created != 1 {
		t.Errorf("INVARIANT: %d runs have set the key, and %d have created the row; want one each", set, created)
	}
	var counter struct{ Value int }
	client.Expect(t, 200, "GET", "/v1/state/counter", nil).Decode(t, &counter)
	if want := countsPerRun * len(runs); counter.Value != want {
		t.Errorf("INVARIANT: the counter is %d after %d runs, want %d", counter.Value, len(runs), want)
	}
	rows := tables.Texts(t, c.db, `SELECT data FROM table_rows`)
	if want := fmt.Sprintf(`{"c1":"same","c2":%d}`, len(runs)); len(rows) != 1 || rows[0] != want {
		t.Errorf("INVARIANT: the rows are %v, want %s", rows, want)
	}
	tables.CheckShared(t, c.db)
}

// pauseUntilRemoved stops a node until the others have its runs, and waits until it has
// rejoined.
func (c *cluster) pauseUntilRemoved(m *member, id string) {
	c.t.Helper()
	m.Signal(c.t, syscall.SIGSTOP)
	c.awaitRemoved(id)
	m.Signal(c.t, syscall.SIGCONT)
	harness.Eventually(c.t, "the paused node rejoins", func() bool {
		return tables.Number(c.t, c.db, `SELECT count(*) FROM nodes WHERE id = $1`, id) == 1
	})
}

func countingWorkflow(t *testing.T, client *harness.Client) string {
	t.Helper()
	client.Expect(t, 201, "POST", "/v1/tables", json.RawMessage(`{"name": "counts", "key": "name", "columns": [
		{"name": "name", "type": "text"}, {"name": "n", "type": "number"}]}`))
	return flow.Define(t, client,
		flow.Step("once", "state.set", `{"key": "alert", "value": "${{ run.id }}", "if_absent": true, "expires_in": "24h"}`),
		map[string]any{
			"id": "all", "foreach": fmt.Sprintf("1..%d", countsPerRun),
			"steps": []any{flow.Step("one", "state.increment", `{"key": "counter", "scope": "workspace"}`)},
		},
		flow.Step("row", "table.upsert", `{"table": "counts", "values": {"name": "same"}}`),
		flow.Step("count", "table.increment", `{"table": "counts", "key": "same", "column": "n"}`),
	)
}

// operationOutput has what the outputs of operations say about who was first.
type operationOutput struct{ Set, Created bool }

// operationOutputs waits until a run has succeeded and returns the outputs of its steps.
func operationOutputs(t *testing.T, client *harness.Client, id string) map[string]operationOutput {
	t.Helper()
	var run struct {
		Status string
		Steps  []struct {
			StepID string `json:"step_id"`
			Output operationOutput
		}
	}
	harness.Eventually(t, "run "+id+" ends", func() bool {
		client.Expect(t, 200, "GET", "/v1/runs/"+id, nil).Decode(t, &run)
		return run.Status != "running"
	})
	if run.Status != "succeeded" {
		t.Errorf("run %s is %s", id, run.Status)
	}
	outputs := map[string]operationOutput{}
	for _, step := range run.Steps {
		outputs[step.StepID] = step.Output
	}
	return outputs
}
