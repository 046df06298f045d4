package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testDrafts tests runs of definitions that were never saved.
func testDrafts(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	draft := workflow.Unsaved{
		Definition: workflow.Definition{
			Triggers: []workflow.Trigger{},
			Steps:    []workflow.Step{{ID: "other", Uses: "data.set", With: json.RawMessage(`{"values":{}}`)}},
		},
		Pinned: workflow.Pins{"other": {Output: json.RawMessage(`{"a":1}`)}},
	}
	start := newStart(t, wf, "node_1")
	start.Run.Draft, start.Draft = true, &draft
	returns(w.Runs.StartRun(ctx, start))(t, "start", true)
	equal(t, "draft", found(w.Workflows.Draft(ctx, start.Run.ID))(t), draft)
	equal(t, "run", found(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t).Draft, true)
	equal(t, "head", found(w.Runs.RunSummary(ctx, ws.ID, start.Run.ID))(t), start.Run)
	missing(w.Runs.RunSummary(ctx, "ws_other", start.Run.ID))(t, "the run for another workspace")
	equal(t, "in the list", must(w.Runs.AllRuns(ctx, ws.ID, run.Filter{}, fullPage))(t).Items[0].Draft, true)

	plain := w.start(t, wf, "node_1")
	missing(w.Workflows.Draft(ctx, plain.ID))(t, "what a run of a version executes")

	t.Run("is purged with its run", func(t *testing.T) {
		returns(w.Runs.CancelRun(ctx, run.Cancellation{WorkspaceID: ws.ID, RunID: start.Run.ID, At: clock.Now()}))(t, "cancel", true)
		equal(t, "left", len(must(w.Runs.PurgeRuns(ctx, wf.ID, []string{start.Run.ID}, 100))(t)), 0)
		for must(w.Runs.PurgeRemains(ctx, 100))(t) { // the first batch has little time
		}
		missing(w.Workflows.Draft(ctx, start.Run.ID))(t, "the draft of a purged run")
	})
}

func testStepsAt(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	started := w.start(t, wf, "node_1")
	var steps []run.Step
	for i, path := range []string{"a", "b", "b[0].c", "b[1].c"} {
		steps = append(steps, run.Step{
			Path: path, Seq: i + 1, Name: path, Type: "x", Status: run.StepRunning, Attempt: 1,
			Input: json.RawMessage(`{"n":1}`), StartedAt: started.StartedAt, AttemptAt: started.StartedAt,
		})
	}
	returns(w.Commit(ctx, firstLease(started), started, run.Decision{Steps: steps}))(t, "commit", true)
	var got []string
	for _, step := range must(w.Runs.StepsAt(ctx, ws.ID, started.ID, []string{"b[1].c", "none", "a"}))(t) {
		got = append(got, step.Path+string(step.Input))
	}
	equal(t, "steps", got, []string{`a{"n":1}`, `b[1].c{"n":1}`})
	many := []string{"b[1].c"}
	for i := range 70_000 {
		many = append(many, fmt.Sprintf("none%d", i))
	}
	equal(t, "among more than a statement takes", len(must(w.Runs.StepsAt(ctx, ws.ID, started.ID, append(many, "a")))(t)), 2)
	equal(t, "of another workspace", len(must(w.Runs.StepsAt(ctx, "ws_other", started.ID, []string{"a"}))(t)), 0)
	equal(t, "of nothing", len(must(w.Runs.StepsAt(ctx, ws.ID, started.ID, nil))(t)), 0)
}

// testActivities tests the activity shown in a list of workflows.
func testActivities(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	busy, idle := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	var started []run.Run
	for range workflow.Recent + 3 {
		started = append(started, w.start(t, busy, "node_1"))
	}
	found := must(w.Workflows.Activities(ctx, ws.ID, []string{busy.ID, idle.ID, "wf_none"}))(t)
	var ids []string
	for _, r := range found[busy.ID].Runs {
		ids = append(ids, r.ID)
	}
	var want []string
	for i := range workflow.Recent {
		want = append(want, started[len(started)-1-i].ID)
	}
	equal(t, "the latest runs, newest first", ids, want)
	equal(t, "of one that did nothing", len(found[idle.ID].Runs), 0)
	at := clock.Now().Add(time.Minute)
	armed := w.withTriggers(t, ws.ID, scheduled("a", "1", at), scheduled("b", "1", at.Add(time.Hour)))
	activity := must(w.Workflows.Activities(ctx, ws.ID, []string{armed.ID}))(t)[armed.ID]
	equal(t, "triggers", activity.Triggers, []workflow.TriggerRef{{ID: "a", Type: workflow.ScheduleTrigger}, {ID: "b", Type: workflow.ScheduleTrigger}})
	equal(t, "the next time", activity.NextAt, &at)
	equal(t, "for another workspace", len(must(w.Workflows.Activities(ctx, "ws_other", []string{busy.ID}))(t)), 0)
	equal(t, "of none", len(must(w.Workflows.Activities(ctx, ws.ID, nil))(t)), 0)
}
