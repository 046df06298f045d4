package storetest

import (
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/run"
)

// testSlotsSideBySide lets a run of each of many workspaces, which may have one
// under way, end while the next one starts: that one gets the slot, or it is told
// that there is one, whatever shares a transaction with what.
func testSlotsSideBySide(t *testing.T, tm *team) {
	const workspaces, rounds = 32, 12
	ctx, node := t.Context(), tm.nodes[0]
	tm.limit.Store(1)
	// Those that start have lower ids than those that end: units of a group run
	// in this order.
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
				if ok, err := node.StartRun(ctx, next); err != nil || !ok {
					t.Errorf("start: %t, %v", ok, err)
				}
			})
		}
		doing.Wait()
		for _, id := range node.takeFreed() {
			must(node.PassOn(ctx, id))(t)
		}
		woken := 0
		for _, w := range node.told.take().Wakes {
			ends[runs[w.RunID]], woken = w, woken+1
		}
		if same(t, "woken", woken, workspaces); t.Failed() {
			return
		}
	}
}
