package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// withNewTriggers returns a change of the workflow's state and triggers.
func withNewTriggers(of workflow.Workflow, state workflow.State, armed ...workflow.Armed) workflow.Change {
	change := redefined(of, "rearmed")
	change.Workflow.State, change.Armed = state, &armed
	return change
}

// scheduled returns a trigger that fires at a time.
func scheduled(id, spec string, at time.Time) workflow.Armed {
	return workflow.Armed{ID: id, Type: workflow.ScheduleTrigger, Spec: spec, NextAt: &at}
}

// withTriggers creates an active workflow with triggers.
func (w *harness) withTriggers(t *testing.T, workspaceID string, triggers ...workflow.Armed) workflow.Workflow {
	t.Helper()
	change := withNewTriggers(w.workflow(t, workspaceID), workflow.Active, triggers...)
	returns(w.Workflows.UpdateWorkflow(t.Context(), change))(t, "arm", true)
	return change.Workflow
}

// trigger reads the trigger with an id.
func (w *harness) trigger(t *testing.T, of workflow.Workflow, id string) trigger.Trigger {
	t.Helper()
	for _, found := range must(w.Triggers.Triggers(t.Context(), of.WorkspaceID, of.ID))(t) {
		if found.ID == id {
			return found
		}
	}
	t.Fatalf("there is no trigger %s", id)
	return trigger.Trigger{}
}

func testTriggers(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	soon := clock.Now().Add(time.Minute)
	later := soon.Add(time.Hour)

	t.Run("follow changes of their workflow", func(t *testing.T) { testUpdateTriggers(t, w, ws.ID, soon, later) })
	t.Run("start afresh with another type", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, scheduled("a", "1", soon))
		if err := w.Triggers.NoteTrigger(ctx, w.trigger(t, made, "a"), &trigger.Note{At: soon, Code: "c", Message: "m"}, nil); err != nil {
			t.Fatal(err)
		}
		change := withNewTriggers(made, workflow.Active, workflow.Armed{ID: "a", Type: workflow.EventTrigger, Spec: "1"})
		returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "edit", true)
		equal(t, "trigger", w.trigger(t, change.Workflow, "a"), trigger.Trigger{
			WorkspaceID: ws.ID, WorkflowID: made.ID, ID: "a", Type: workflow.EventTrigger, Version: change.Workflow.Version, Active: true,
		})
	})

	t.Run("start afresh when they become active", func(t *testing.T) {
		poll := workflow.Armed{ID: "p", Type: workflow.PollTrigger, Spec: "1", NextAt: &soon}
		made := w.withTriggers(t, ws.ID, poll)
		returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: w.trigger(t, made, "p"), Next: &later, State: []byte("seen"), Failures: 3}))(t, "move", true)
		change := withNewTriggers(made, workflow.Active, poll)
		returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "edit", true)
		kept := w.trigger(t, change.Workflow, "p")
		equal(t, "state", kept.State, []byte("seen"))
		equal(t, "failures", kept.Failures, 3)
		for _, state := range []workflow.State{workflow.Paused, workflow.Active} {
			change = withNewTriggers(change.Workflow, state, poll)
			returns(w.Workflows.UpdateWorkflow(ctx, change))(t, string(state), true)
		}
		fresh := w.trigger(t, change.Workflow, "p")
		equal(t, "state", fresh.State, nil)
		equal(t, "failures", fresh.Failures, 0)
		equal(t, "time", fresh.NextAt, &soon)
	})

	t.Run("belong to their workspace", func(t *testing.T) {
		stranger, made := w.workspace(t), w.withTriggers(t, ws.ID, scheduled("a", "1", soon))
		equal(t, "read by a stranger", len(must(w.Triggers.Triggers(ctx, stranger.ID, made.ID))(t)), 0)
		was := w.trigger(t, made, "a")
		foreign := was
		foreign.WorkspaceID = stranger.ID
		if err := w.Triggers.NoteTrigger(ctx, foreign, &trigger.Note{At: soon, Code: "c", Message: "m"}, nil); err != nil {
			t.Fatal(err)
		}
		start := newFiring(t, made, "a", run.Fire{Was: &soon, Next: &later})
		start.Run.WorkspaceID = stranger.ID
		returns(w.Runs.StartRun(ctx, start))(t, "fired by a stranger", false)
		equal(t, "trigger", w.trigger(t, made, "a"), was)
	})

	t.Run("are found when they are due", func(t *testing.T) { testDueTriggers(t, newHarness(t, w.open)) })
}

func testUpdateTriggers(t *testing.T, w *harness, workspaceID string, soon, later time.Time) {
	ctx := t.Context()
	hook := workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "h", Token: []byte("sealed"), TokenHash: []byte("hash of " + t.Name())}
	made := w.withTriggers(t, workspaceID, scheduled("a", "1", soon), scheduled("b", "1", soon), hook)
	want := trigger.Trigger{
		WorkspaceID: workspaceID, WorkflowID: made.ID, ID: "a", Type: workflow.ScheduleTrigger, Version: made.Version, Active: true, NextAt: &soon,
	}
	equal(t, "armed", w.trigger(t, made, "a"), want)
	equal(t, "notifications", w.notified.take().Scheduled, []time.Time{soon, soon})
	equal(t, "by token", found(w.Triggers.TriggerByToken(ctx, hook.TokenHash))(t).ID, "hook")
	missing(w.Triggers.TriggerByToken(ctx, []byte("another")))(t, "an unknown token")

	again := hook
	again.Token, again.TokenHash = []byte("encrypted again"), []byte("another hash")
	change := withNewTriggers(made, workflow.Active, scheduled("a", "1", later), scheduled("c", "1", later), again)
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "edit", true)
	made = change.Workflow
	equal(t, "number", len(must(w.Triggers.Triggers(ctx, workspaceID, made.ID))(t)), 3)
	want.Version = made.Version
	equal(t, "one that stayed the same", w.trigger(t, made, "a"), want)
	equal(t, "a new one", w.trigger(t, made, "c").NextAt, &later)
	equal(t, "the token", w.trigger(t, made, "hook").SealedToken, []byte("sealed"))

	change = withNewTriggers(made, workflow.Active, scheduled("a", "2", later))
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "edit again", true)
	equal(t, "one that changed", w.trigger(t, change.Workflow, "a").NextAt, &later)

	made = change.Workflow
	change = withNewTriggers(made, workflow.Paused, workflow.Armed{ID: "a", Type: workflow.ScheduleTrigger, Spec: "2"})
	returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "pause", true)
	paused := w.trigger(t, change.Workflow, "a")
	equal(t, "active", paused.Active, false)
	equal(t, "time of a paused one", paused.NextAt, nil)

	stale := withNewTriggers(made, workflow.Active, scheduled("z", "1", soon))
	returns(w.Workflows.UpdateWorkflow(ctx, stale))(t, "with a stale revision", false)
	equal(t, "after a stale update", w.trigger(t, change.Workflow, "a"), paused)

	w.deleteWorkflow(t, change.Workflow)
	equal(t, "rows of a deleted workflow", w.count(t, `SELECT count(*) FROM triggers WHERE workflow_id = $1`, made.ID), 0)
}

func testDueTriggers(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Now()
	equal(t, "time of none", must(w.Triggers.NextTrigger(ctx, workflow.ScheduleTrigger))(t), nil)
	made := w.withTriggers(t, ws.ID, scheduled("b", "1", now), scheduled("a", "1", now.Add(-time.Second)), scheduled("c", "1", now.Add(time.Second)))
	ids := func(due []trigger.Trigger) []string {
		return mapped(due, func(t trigger.Trigger) string { return t.ID })
	}
	equal(t, "due", ids(must(w.Triggers.DueTriggers(ctx, workflow.ScheduleTrigger, now, 10))(t)), []string{"a", "b"})
	equal(t, "the first", ids(must(w.Triggers.DueTriggers(ctx, workflow.ScheduleTrigger, now, 1))(t)), []string{"a"})
	first := now.Add(-time.Second)
	equal(t, "due of another type", len(must(w.Triggers.DueTriggers(ctx, workflow.PollTrigger, now, 10))(t)), 0)
	equal(t, "the earliest time", must(w.Triggers.NextTrigger(ctx, workflow.ScheduleTrigger))(t), &first)

	level := `UPDATE workflow_versions SET level = $1 WHERE workflow_id = $2`
	w.exec(t, level, release.Number+1, made.ID)
	equal(t, "due of a newer release", len(must(w.Triggers.DueTriggers(ctx, workflow.ScheduleTrigger, now, 10))(t)), 0)
	equal(t, "time of a newer release", must(w.Triggers.NextTrigger(ctx, workflow.ScheduleTrigger))(t), nil)
	w.exec(t, level, 0, made.ID)

	was := w.trigger(t, made, "a")
	next := now.Add(time.Hour)
	failed, idle := &trigger.Note{At: now, Code: "http_error", Message: "It answered 500."}, &trigger.Note{At: now, Code: "missed", Message: "Too late."}
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: was, Next: &next, Failures: 1, State: []byte("s"), Error: failed, NotFired: idle}))(t, "move", true)
	want := was
	want.NextAt, want.Failures, want.State, want.Error, want.NotFired = &next, 1, []byte("s"), failed, idle
	equal(t, "moved", w.trigger(t, made, "a"), want)
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: was, Next: &now}))(t, "move again", false)
	equal(t, "moved", w.trigger(t, made, "a"), want)
	stranger := want
	stranger.WorkspaceID = "ws_other"
	returns(w.Triggers.MoveTrigger(ctx, trigger.Move{Of: stranger, Next: &now}))(t, "move that of another workspace", false)
}

// newFiring returns the start of a run by a trigger.
func newFiring(t *testing.T, of workflow.Workflow, id string, f run.Fire) run.Start {
	t.Helper()
	start := newStart(t, of, "")
	start.Run.Trigger.Type, start.Run.Trigger.ID = workflow.ScheduleTrigger, id
	if f.At.IsZero() {
		f.At = start.Run.StartedAt
	}
	start.Fire = &f
	return start
}

func testFire(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Now()
	next := now.Add(time.Hour)
	rejects := func(t *testing.T, start run.Start, why error) {
		t.Helper()
		if _, err := w.Runs.StartRun(ctx, start); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		missing(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t, "the run")
		equal(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE run_id = $1`, start.Run.ID), 0)
		equal(t, "events", w.count(t, `SELECT count(*) FROM events WHERE run_id = $1`, start.Run.ID), 0)
	}

	t.Run("moves the schedule together with the run", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, scheduled("a", "1", now))
		start := newFiring(t, made, "a", run.Fire{Was: &now, Next: &next})
		returns(w.Runs.StartRun(ctx, start))(t, "fire", true)
		fired := w.trigger(t, made, "a")
		equal(t, "time", fired.NextAt, &next)
		equal(t, "run", fired.RunID, start.Run.ID)
		equal(t, "when", fired.FiredAt, &start.Run.StartedAt)
		rejects(t, newFiring(t, made, "a", run.Fire{Was: &now, Next: &next}), run.ErrNotDue)
		equal(t, "trigger", w.trigger(t, made, "a"), fired)
	})

	t.Run("one of many concurrent firings wins", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, scheduled("a", "1", now))
		won := concurrently(t, 32, func(int) (bool, error) {
			ok, err := w.Runs.StartRun(t.Context(), newFiring(t, made, "a", run.Fire{Was: &now, Next: &next}))
			if errors.Is(err, run.ErrNotDue) {
				return false, nil
			}
			return ok, err
		})
		equal(t, "winners", won, 1)
		equal(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, made.ID), 1)
	})

	t.Run("only while the workflow is active", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, scheduled("a", "1", now))
		change := withNewTriggers(made, workflow.Paused, scheduled("a", "1", now))
		returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "pause", true)
		rejects(t, newFiring(t, change.Workflow, "a", run.Fire{Was: &now, Next: &next}), run.ErrNotDue)
		rejects(t, newFiring(t, change.Workflow, "a", run.Fire{}), run.ErrNotDue)
		rejects(t, newFiring(t, change.Workflow, "none", run.Fire{}), run.ErrNotDue)
	})
}

// testTriggerKeys tests the idempotency keys of webhook calls.
func testTriggerKeys(t *testing.T, w *harness) {
	ctx, ws, next := t.Context(), w.workspace(t), clock.Now().Add(time.Hour)

	t.Run("a key counts once until it expires", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "1"}, workflow.Armed{ID: "other", Type: workflow.WebhookTrigger, Spec: "1"})
		key := &run.Dedupe{Hash: []byte("key"), Until: next}
		first := newFiring(t, made, "hook", run.Fire{Dedupe: key})
		returns(w.Runs.StartRun(ctx, first))(t, "first", true)
		second := newFiring(t, made, "hook", run.Fire{Dedupe: key})
		_, err := w.Runs.StartRun(ctx, second)
		if twin, ok := errors.AsType[*run.DuplicateError](err); !ok || twin.RunID != first.Run.ID {
			t.Errorf("second: %v", err)
		}
		missing(w.Runs.Run(ctx, ws.ID, second.Run.ID))(t, "the run")
		equal(t, "last run", w.trigger(t, made, "hook").RunID, first.Run.ID)
		returns(w.Runs.StartRun(ctx, newFiring(t, made, "other", run.Fire{Dedupe: key})))(t, "by another trigger", true)
		returns(w.Runs.StartRun(ctx, newFiring(t, made, "hook", run.Fire{Dedupe: &run.Dedupe{Hash: []byte("b"), Until: next}})))(t, "another key", true)
		returns(w.Runs.StartRun(ctx, newFiring(t, made, "hook", run.Fire{At: next, Dedupe: &run.Dedupe{Hash: []byte("key"), Until: next.Add(time.Hour)}})))(t, "after its time", true)
	})

	t.Run("keys that have expired are purged", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "1"})
		for i, until := range []time.Time{next.Add(-time.Minute), next.Add(-time.Minute), next.Add(time.Minute)} {
			key := &run.Dedupe{Hash: []byte{byte(i)}, Until: until}
			returns(w.Runs.StartRun(ctx, newFiring(t, made, "hook", run.Fire{Dedupe: key})))(t, "fire", true)
		}
		kept := func() int { return w.count(t, `SELECT count(*) FROM trigger_keys WHERE workflow_id = $1`, made.ID) }
		returns(w.Triggers.PurgeTriggerKeys(ctx, next.Add(-2*time.Minute), 100))(t, "too soon", false)
		equal(t, "keys", kept(), 3)
		for must(w.Triggers.PurgeTriggerKeys(ctx, next.Add(-time.Second), 1))(t) {
		}
		equal(t, "keys", kept(), 1)
	})

	t.Run("one of many concurrent calls with a key wins", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "1"})
		won := concurrently(t, 64, func(int) (bool, error) {
			ok, err := w.Runs.StartRun(t.Context(), newFiring(t, made, "hook", run.Fire{Dedupe: &run.Dedupe{Hash: []byte("key"), Until: next}}))
			if _, twin := errors.AsType[*run.DuplicateError](err); twin {
				return false, nil
			}
			return ok, err
		})
		equal(t, "winners", won, 1)
		equal(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, made.ID), 1)
	})
}
