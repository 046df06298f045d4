package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testNewerRuns checks that a node leaves runs to newer nodes whose features it does not
// know, in every way in which it could get hold of one.
func testNewerRuns(t *testing.T, tm *cluster) {
	ctx, second := t.Context(), tm.nodes[1]
	t.Run("a job", func(t *testing.T) {
		r := tm.startNewer(t, tm.workflow(t, tm.workspace(t).ID), "")
		_, outcome, err := second.claim(ctx, tm.leftToNewer(t, r))
		if err != nil || outcome != run.ClaimStale {
			t.Errorf("claim: %v, %v", outcome, err)
		}
		tm.leftToNewer(t, r)
	})
	t.Run("a throttled run", func(t *testing.T) {
		ws := tm.workspace(t)
		wf := tm.workflow(t, ws.ID)
		first := tm.start(t, wf, "node_1")
		tm.start(t, wf, "node_1")
		r := tm.startNewer(t, wf, "node_1")
		tm.finish(t, first, run.Succeeded)
		returns(second.AdmitThrottled(ctx, ws.ID))(t, "admit", false)
		tm.leftToNewer(t, r)
	})
	t.Run("a short wait", func(t *testing.T) {
		r := tm.startNewer(t, tm.workflow(t, tm.workspace(t).ID), "node_1")
		tm.nodes[0].release(t, r, 1, soon())
		tm.leftToNewer(t, r)
	})
}

// startNewer starts a run that needs features of the next release.
func (tm *cluster) startNewer(t *testing.T, of workflow.Workflow, node string) run.Run {
	t.Helper()
	start := newStart(t, of, node)
	start.Level = release.Number + 1
	returns(tm.Runs.StartRun(t.Context(), start))(t, "start", true)
	return start.Run
}

// leftToNewer checks that no node owns a run of the next release, and returns the job that
// brings it to a node which knows what it needs.
func (tm *cluster) leftToNewer(t *testing.T, r run.Run) job {
	t.Helper()
	equal(t, "owner", tm.queue(t, r.ID).Node, nil)
	var found []job
	for _, j := range tm.jobs(t) {
		if j.wake.RunID == r.ID {
			found = append(found, j)
		}
	}
	if len(found) != 1 || found[0].wake.Level != release.Number+1 {
		t.Fatalf("jobs %+v", found)
	}
	return found[0]
}
