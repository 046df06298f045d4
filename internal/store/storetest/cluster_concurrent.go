package storetest

import (
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/run"
)

// testConcurrentSlots ends a run in each of many workspaces with a limit of one
// while the next run starts. That run must get the slot, or the node must be
// notified that one was freed, whichever transactions share a commit.
func testConcurrentSlots(t *testing.T, tm *cluster) {
	const workspaces, rounds = 32, 12
	ctx, node := t.Context(), tm.nodes[0]
	tm.limit.Store(1)
	// The starting runs have lower ids than the ending ones: transactions of a
	// group run in this order.
	var starts [rounds][workspaces]run.Start
	for i := range workspaces {
		wf := tm.workflow(t, tm.workspace(t).ID)
		for round := range rounds {
			starts[rounds-1-round][i] = newStart(t, wf, "node_1")
		}
	}
	runs, ends := map[string]int{}, [workspaces]run.Wake{}
	for round := range rounds {
		var doing sync.WaitGroup
		for i, next := range starts[round] {
			if round > 0 {
				of := starts[round-1][i].Run
				end, lease := newFinish(t, of, run.Succeeded), run.Lease{RunID: ends[i].RunID, Epoch: ends[i].Epoch}
				doing.Go(func() {
					if ok, err := node.Commit(ctx, lease, of, end); err != nil || !ok {
						t.Errorf("finish: %t, %v", ok, err)
					}
				})
			}
			runs[next.Run.ID] = i
			doing.Go(func() {
				if ok, err := node.Runs.StartRun(ctx, next); err != nil || !ok {
					t.Errorf("start: %t, %v", ok, err)
				}
			})
		}
		doing.Wait()
		for _, id := range node.takeFreed() {
			must(node.AdmitThrottled(ctx, id))(t)
		}
		woken := 0
		for _, w := range node.notified.take().Wakes {
			ends[runs[w.RunID]], woken = w, woken+1
		}
		if equal(t, "woken", woken, workspaces); t.Failed() {
			return
		}
	}
}
