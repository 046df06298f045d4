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

// testDrafts is about runs of definitions that were never saved.
func testDrafts(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	draft := workflow.Unsaved{
		Definition: workflow.Definition{
			Triggers: []workflow.Trigger{},
			Steps:    []workflow.Step{{ID: "other", Uses: "data.set", With: json.RawMessage(`{"values":{}}`)}},
		},
		Pinned: workflow.Pins{"other": json.RawMessage(`{"a":1}`)},
	}
	start := newStart(t, wf, "node_1")
	start.Run.Draft, start.Draft = true, &draft
	answers(w.StartRun(ctx, start))(t, "start", true)
	same(t, "draft", found(w.Draft(ctx, start.Run.ID))(t), draft)
	same(t, "run", found(w.Run(ctx, ws.ID, start.Run.ID))(t).Draft, true)
	same(t, "head", found(w.Head(ctx, ws.ID, start.Run.ID))(t), start.Run)
	gone(w.Head(ctx, "ws_other", start.Run.ID))(t, "the run for another workspace")
	same(t, "in the list", must(w.AllRuns(ctx, ws.ID, run.Filter{}, whole))(t).Items[0].Draft, true)

	plain := w.start(t, wf, "node_1")
	gone(w.Draft(ctx, plain.ID))(t, "what a run of a version executes")

	t.Run("goes with its run", func(t *testing.T) {
		answers(w.CancelRun(ctx, run.Cancellation{WorkspaceID: ws.ID, RunID: start.Run.ID, At: clock.Now()}))(t, "cancel", true)
		same(t, "left", len(must(w.PurgeRuns(ctx, wf.ID, []string{start.Run.ID}, 100))(t)), 0)
		gone(w.Draft(ctx, start.Run.ID))(t, "the draft of a run that is gone")
	})
}

func testStepsAt(t *testing.T, w *world) {
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
	answers(w.Commit(ctx, firstLease(started), started, run.Decision{Steps: steps}))(t, "commit", true)
	var got []string
	for _, step := range must(w.StepsAt(ctx, ws.ID, started.ID, []string{"b[1].c", "none", "a"}))(t) {
		got = append(got, step.Path+string(step.Input))
	}
	same(t, "steps", got, []string{`a{"n":1}`, `b[1].c{"n":1}`})
	many := []string{"b[1].c"}
	for i := range 70_000 {
		many = append(many, fmt.Sprintf("none%d", i))
	}
	same(t, "among more than a statement takes", len(must(w.StepsAt(ctx, ws.ID, started.ID, append(many, "a")))(t)), 2)
	same(t, "of another workspace", len(must(w.StepsAt(ctx, "ws_other", started.ID, []string{"a"}))(t)), 0)
	same(t, "of nothing", len(must(w.StepsAt(ctx, ws.ID, started.ID, nil))(t)), 0)
}

// testActivities is about what a list of workflows shows at a glance.
func testActivities(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	busy, idle := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	var started []run.Run
	for range workflow.Recent + 3 {
		started = append(started, w.start(t, busy, "node_1"))
	}
	found := must(w.Activities(ctx, ws.ID, []string{busy.ID, idle.ID, "wf_none"}))(t)
	var ids []string
	for _, r := range found[busy.ID].Runs {
		ids = append(ids, r.ID)
	}
	var want []string
	for i := range workflow.Recent {
		want = append(want, started[len(started)-1-i].ID)
	}
	same(t, "the latest runs, newest first", ids, want)
	same(t, "of one that did nothing", len(found[idle.ID].Runs), 0)
	at := clock.Now().Add(time.Minute)
	armed := w.armed(t, ws.ID, scheduled("a", "1", at), scheduled("b", "1", at.Add(time.Hour)))
	activity := must(w.Activities(ctx, ws.ID, []string{armed.ID}))(t)[armed.ID]
	same(t, "triggers", activity.Triggers, []workflow.TriggerHead{{ID: "a", Type: workflow.ScheduleTrigger}, {ID: "b", Type: workflow.ScheduleTrigger}})
	same(t, "the next time", activity.NextAt, &at)
	same(t, "for another workspace", len(must(w.Activities(ctx, "ws_other", []string{busy.ID}))(t)), 0)
	same(t, "of none", len(must(w.Activities(ctx, ws.ID, nil))(t)), 0)
}
