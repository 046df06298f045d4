package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

func testNodes(t *testing.T, w *harness) {
	ctx, ws, other := t.Context(), w.workspace(t), w.workspace(t)
	equal(t, "when there are none", must(w.Runs.RunsByNode(ctx, ws.ID))(t), map[string]int{})
	wf, foreign := w.workflow(t, ws.ID), w.workflow(t, other.ID)
	for range 3 {
		w.start(t, wf, "node_1")
	}
	w.start(t, wf, "node_2")
	w.start(t, wf, "") // has a job
	w.start(t, foreign, "node_1")
	w.finish(t, w.start(t, wf, "node_2"), run.Succeeded)
	waits := w.start(t, wf, "node_2")
	returns(w.Commit(ctx, firstLease(waits), waits, run.Decision{Release: true, WakeAt: clock.Now()}))(t, "release", true)
	equal(t, "of a workspace", must(w.Runs.RunsByNode(ctx, ws.ID))(t), map[string]int{"node_1": 3, "node_2": 1})
	equal(t, "of another", must(w.Runs.RunsByNode(ctx, other.ID))(t), map[string]int{"node_1": 1})
	equal(t, "of none", must(w.Runs.RunsByNode(ctx, "ws_none"))(t), map[string]int{})
	w.deleteWorkflow(t, wf)
	equal(t, "after the workflow was deleted", must(w.Runs.RunsByNode(ctx, ws.ID))(t), map[string]int{})
}
