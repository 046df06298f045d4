package clusterload_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// hook makes an active workflow with a webhook trigger and returns the path of its
// URL.
func (c *cluster) hook(trigger map[string]any, steps ...map[string]any) string {
	c.t.Helper()
	id := flow.Define(c.t, c.nodes[0].Client, steps...)
	trigger["id"], trigger["type"] = "hook", "webhook"
	expect(c.t, c.nodes[0].Client, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"state": "active", "triggers": []any{trigger}})
	return flow.HookPath(c.t, c.nodes[0].Client, id)
}

func TestWebhookTriggersOnTwoNodes(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	t.Run("duplicates", func(t *testing.T) { testDuplicates(t, c) })
	t.Run("results", func(t *testing.T) { testResults(t, c) })
}

// testDuplicates sends the same call to both nodes many times at once. It starts one
// run.
func testDuplicates(t *testing.T, c *cluster) {
	path := c.hook(map[string]any{"dedupe": "${{ trigger.payload.key }}"},
		flow.Set("set", 1))
	for round := range lane.Pick(3, 20) {
		var (
			mu    sync.Mutex
			ids   = map[string]int{}
			first = 0
			all   sync.WaitGroup
		)
		for i := range 32 {
			all.Go(func() {
				response, err := do(t, c.nodes[i%2].Client, "POST", path, map[string]any{"key": fmt.Sprint(round)})
				if err != nil || response.Status != 202 {
					t.Errorf("%d %s: %v", response.Status, response.Body, err)
					return
				}
				var accepted struct {
					RunID     string `json:"run_id"`
					Duplicate bool   `json:"duplicate"`
				}
				response.Decode(t, &accepted)
				mu.Lock()
				defer mu.Unlock()
				ids[accepted.RunID]++
				if !accepted.Duplicate {
					first++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || first != 1 {
			t.Errorf("round %d: calls by run %v, %d of them not duplicates, want one run and 1", round, ids, first)
		}
	}
}

// testResults has callers wait for the result of a run on a node that may not execute
// it.
func testResults(t *testing.T, c *cluster) {
	path := c.hook(map[string]any{"respond": "result", "dedupe": "${{ trigger.payload.key }}"},
		flow.Wait("wait", "500ms"),
		map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": map[string]any{"key": "${{ trigger.payload.key }}"}}})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			key := fmt.Sprint(i / 2) // each key goes to both nodes
			var response harness.Response
			harness.Eventually(t, "a call gets the result", func() bool {
				var err error
				began := time.Now()
				response, err = do(t, c.nodes[i%2].Client, "POST", path, map[string]any{"key": key})
				if err != nil {
					t.Error(err)
				}
				// A run may take longer than a call waits. A duplicate waits for it, too.
				return response.Status != 202 || time.Since(began) < time.Minute
			})
			if response.Status != 200 || string(response.Body) != `{"key":"`+key+`"}` {
				t.Errorf("%d %s", response.Status, response.Body)
			}
		})
	}
	all.Wait()
}
