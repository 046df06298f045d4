package clusterload_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// hook makes an active workflow with a webhook and returns the path of its
// address.
func (c *cluster) hook(trigger map[string]any, steps ...map[string]any) string {
	c.t.Helper()
	id := define(c.t, c.nodes[0].Client, steps...)
	trigger["id"], trigger["type"] = "hook", "webhook"
	c.nodes[0].Expect(c.t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"state": "active", "triggers": []any{trigger}})
	var list struct {
		Data []struct {
			URL string `json:"url"`
		} `json:"data"`
	}
	c.nodes[0].Expect(c.t, 200, "GET", "/v1/workflows/"+id+"/triggers", nil).Decode(c.t, &list)
	_, token, found := strings.Cut(list.Data[0].URL, "/hooks/")
	if !found {
		c.t.Fatalf("the address is %q", list.Data[0].URL)
	}
	return "/hooks/" + token
}

// The same call comes to both nodes, many times at once: it starts one run.
func TestDuplicateCallsOnTwoNodes(t *testing.T) {
	t.Parallel()
	c := start(t, 2)
	path := c.hook(map[string]any{"dedupe": "${{ trigger.payload.key }}"},
		map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": 1}}})
	for round := range 10 {
		var (
			mu    sync.Mutex
			ids   = map[string]int{}
			first = 0
			all   sync.WaitGroup
		)
		for i := range 64 {
			all.Go(func() {
				answer, err := c.nodes[i%2].Do(t.Context(), "POST", path, map[string]any{"key": fmt.Sprint(round)})
				if err != nil || answer.Status != 202 {
					t.Errorf("%d %s: %v", answer.Status, answer.Body, err)
					return
				}
				var taken struct {
					RunID     string `json:"run_id"`
					Duplicate bool   `json:"duplicate"`
				}
				answer.Decode(t, &taken)
				mu.Lock()
				defer mu.Unlock()
				ids[taken.RunID]++
				if !taken.Duplicate {
					first++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || first != 1 {
			t.Errorf("round %d: %v, %d of them first", round, ids, first)
		}
	}
}

// A caller waits for its result on a node that may not be the one that executes
// the run.
func TestResultsOfCallsOnTwoNodes(t *testing.T) {
	t.Parallel()
	c := start(t, 2)
	path := c.hook(map[string]any{"respond": "result", "dedupe": "${{ trigger.payload.key }}"},
		map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "500ms"}},
		map[string]any{"id": "set", "uses": "data.set", "with": map[string]any{"values": map[string]any{"key": "${{ trigger.payload.key }}"}}})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			key := fmt.Sprint(i / 2) // each comes to both nodes
			answer, err := c.nodes[i%2].Do(t.Context(), "POST", path, map[string]any{"key": key})
			if err != nil || answer.Status != 200 || string(answer.Body) != `{"key":"`+key+`"}` {
				t.Errorf("%d %s: %v", answer.Status, answer.Body, err)
			}
		})
	}
	all.Wait()
}
