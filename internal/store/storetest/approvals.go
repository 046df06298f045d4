package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
)

func testApprovals(t *testing.T, w *world) {
	ctx, ws, stranger := t.Context(), w.workspace(t), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	now := clock.Now()
	waits := func(path string, awaits action.Awaits) run.Step {
		return run.Step{Path: path, Name: path, Type: "flow.approval", Status: run.StepWaiting, Attempt: 1, StartedAt: now, AttemptAt: now, Awaits: awaits}
	}
	var runs []run.Run
	for range 3 {
		r := w.start(t, wf, "node_1")
		steps := []run.Step{waits("b", action.AwaitsAnswer), waits("a", action.AwaitsAnswer), waits("c", action.AwaitsRun)}
		answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: steps}))(t, "commit", true)
		runs = append(runs, r)
	}
	give := func(workspaceID, runID, path string) (bool, error) {
		return w.AnswerStep(ctx, run.Answer{
			WorkspaceID: workspaceID, RunID: runID, StepID: path, Value: []byte(`{"approved":true}`), At: now, Entry: newEntry(workspaceID, "run.answered", runID),
		})
	}
	answers(give(ws.ID, runs[0].ID, "c"))(t, "a step that waits for a run", false)
	answers(give(stranger.ID, runs[0].ID, "a"))(t, "another's step", false)
	same(t, "audit entries of the stranger", w.audited(t, stranger.ID, runs[0].ID), 0)
	answers(give(ws.ID, runs[0].ID, "a"))(t, "the first answer", true)
	answers(give(ws.ID, runs[0].ID, "a"))(t, "the second answer", false)
	same(t, "audit entries", w.audited(t, ws.ID, runs[0].ID), 1)
	answers(w.CancelRun(ctx, newCancellation(t, runs[1])))(t, "cancel", true)

	want := []string{runs[2].ID + "/a", runs[2].ID + "/b", runs[0].ID + "/b"}
	for limit := 1; limit <= 4; limit++ {
		var seen []string
		for page := (paging.Request{Limit: limit}); ; {
			got := must(w.Approvals(ctx, ws.ID, page))(t)
			for _, a := range got.Items {
				seen = append(seen, a.RunID+"/"+a.StepID)
			}
			if page.After = got.Next; got.Next == "" {
				break
			}
		}
		same(t, "approvals", seen, want)
	}
	empty(w.Approvals(ctx, stranger.ID, whole))(t, "approvals of a stranger")
	w.deleteWorkflow(t, wf)
	empty(w.Approvals(ctx, ws.ID, whole))(t, "approvals of a deleted workflow")
	w.told.take()
}
