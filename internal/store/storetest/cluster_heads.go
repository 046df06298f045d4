package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// What a node remembers of a workflow may be old. No run is started by it, and
// then it is remembered no longer.
func testLikelyHead(t *testing.T, tm *team) {
	ctx, ws, first, second := t.Context(), tm.workspace(t), tm.nodes[0], tm.nodes[1]
	tm.limit.Store(1000)
	wf := tm.workflow(t, ws.ID)
	likely := func() run.Head {
		t.Helper()
		return found(first.LikelyHead(ctx, ws.ID, wf.ID))(t)
	}
	is := func() run.Head {
		t.Helper()
		return found(first.WorkflowHead(ctx, ws.ID, wf.ID))(t)
	}
	change := func(c workflow.Change) {
		t.Helper()
		answers(second.UpdateWorkflow(ctx, c))(t, "change", true)
		wf = c.Workflow
	}
	// old tries to start a run by what is remembered.
	old := func(what string) {
		t.Helper()
		start, head := newStart(t, wf, "node_1"), likely()
		if head == is() {
			t.Fatalf("%s: nothing was remembered", what)
		}
		start.Revision, start.Plan = head.Revision, head.Plan
		answers(first.StartRun(ctx, start))(t, what, false)
		gone(tm.Run(ctx, ws.ID, start.Run.ID))(t, what+": its run")
		same(t, what+": head", likely(), is())
	}

	same(t, "one that is not active", likely(), is())
	change(activated(t, wf))
	same(t, "one that was not active", likely(), is())
	change(redefined(wf, "other"))
	old("another version")
	second.exec(t, `UPDATE workspaces SET plan = $1 WHERE id = $2`, string(auth.Enterprise), ws.ID)
	old("another plan")
	start := newStart(t, wf, "node_1")
	start.Plan = auth.Enterprise
	answers(first.StartRun(ctx, start))(t, "as it is", true)

	paused := renamed(wf, wf.Name)
	paused.Workflow.State = workflow.Paused
	change(paused)
	old("a paused one")
	same(t, "paused", likely().State, workflow.Paused)
	change(activated(t, wf))
	same(t, "activated again", likely().State, workflow.Active)

	second.deleteWorkflow(t, wf)
	late := newStart(t, wf, "node_1")
	late.Plan = auth.Enterprise
	answers(first.StartRun(ctx, late))(t, "a deleted one", false)
	gone(first.LikelyHead(ctx, ws.ID, wf.ID))(t, "the head of a deleted one")
}
