package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testCachedWorkflowRef checks that no run starts with a stale cached ref, and
// that the entry is then dropped.
func testCachedWorkflowRef(t *testing.T, tm *cluster) {
	ctx, ws, first, second := t.Context(), tm.workspace(t), tm.nodes[0], tm.nodes[1]
	tm.limit.Store(1000)
	wf := tm.workflow(t, ws.ID)
	likely := func() run.WorkflowRef {
		t.Helper()
		return found(first.Runs.CachedWorkflowRef(ctx, ws.ID, wf.ID))(t)
	}
	is := func() run.WorkflowRef {
		t.Helper()
		return found(first.Runs.WorkflowRef(ctx, ws.ID, wf.ID))(t)
	}
	change := func(c workflow.Change) {
		t.Helper()
		returns(second.Workflows.UpdateWorkflow(ctx, c))(t, "change", true)
		wf = c.Workflow
	}
	// old tries to start a run with the cached ref.
	old := func(what string) {
		t.Helper()
		start, head := newStart(t, wf, "node_1"), likely()
		if head == is() {
			t.Fatalf("%s: nothing was cached", what)
		}
		start.Revision, start.Plan = head.Revision, head.Plan
		returns(first.Runs.StartRun(ctx, start))(t, what, false)
		missing(tm.Runs.Run(ctx, ws.ID, start.Run.ID))(t, what+": its run")
		equal(t, what+": head", likely(), is())
	}

	equal(t, "one that is not active", likely(), is())
	change(activated(t, wf))
	equal(t, "one that was not active", likely(), is())
	change(redefined(wf, "other"))
	old("another version")
	second.exec(t, `UPDATE workspaces SET plan = $1 WHERE id = $2`, string(auth.Enterprise), ws.ID)
	old("another plan")
	start := newStart(t, wf, "node_1")
	start.Plan = auth.Enterprise
	returns(first.Runs.StartRun(ctx, start))(t, "as it is", true)

	paused := renamed(wf, wf.Name)
	paused.Workflow.State = workflow.Paused
	change(paused)
	old("a paused one")
	equal(t, "paused", likely().State, workflow.Paused)
	change(activated(t, wf))
	equal(t, "activated again", likely().State, workflow.Active)

	second.deleteWorkflow(t, wf)
	late := newStart(t, wf, "node_1")
	late.Plan = auth.Enterprise
	returns(first.Runs.StartRun(ctx, late))(t, "a deleted one", false)
	missing(first.Runs.CachedWorkflowRef(ctx, ws.ID, wf.ID))(t, "the ref of a deleted one")
}
