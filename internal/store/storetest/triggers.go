package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// rearmed is a change of the workflow's state and triggers.
func rearmed(of workflow.Workflow, state workflow.State, armed ...workflow.Armed) workflow.Change {
	change := redefined(of, "rearmed")
	change.Workflow.State, change.Armed = state, &armed
	return change
}

// scheduled is a trigger that fires at a time.
func scheduled(id, spec string, at time.Time) workflow.Armed {
	return workflow.Armed{ID: id, Type: workflow.ScheduleTrigger, Spec: spec, NextAt: &at}
}

// armed makes an active workflow with triggers.
func (w *world) armed(t *testing.T, workspaceID string, triggers ...workflow.Armed) workflow.Workflow {
	t.Helper()
	change := rearmed(w.workflow(t, workspaceID), workflow.Active, triggers...)
	answers(w.UpdateWorkflow(t.Context(), change))(t, "arm", true)
	return change.Workflow
}

// trigger reads the trigger with an id.
func (w *world) trigger(t *testing.T, of workflow.Workflow, id string) trigger.Trigger {
	t.Helper()
	for _, found := range must(w.Triggers(t.Context(), of.WorkspaceID, of.ID))(t) {
		if found.ID == id {
			return found
		}
	}
	t.Fatalf("there is no trigger %s", id)
	return trigger.Trigger{}
}

func testTriggers(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	soon := clock.Now().Add(time.Minute)
	later := soon.Add(time.Hour)

	t.Run("are kept in step with their workflow", func(t *testing.T) { testArming(t, w, ws.ID, soon, later) })
	t.Run("are another with another type", func(t *testing.T) {
		made := w.armed(t, ws.ID, scheduled("a", "1", soon))
		if err := w.NoteTrigger(ctx, w.trigger(t, made, "a"), &trigger.Note{At: soon, Code: "c", Message: "m"}, nil); err != nil {
			t.Fatal(err)
		}
		change := rearmed(made, workflow.Active, workflow.Armed{ID: "a", Type: workflow.EventTrigger, Spec: "1"})
		answers(w.UpdateWorkflow(ctx, change))(t, "edit", true)
		same(t, "trigger", w.trigger(t, change.Workflow, "a"), trigger.Trigger{
			WorkspaceID: ws.ID, WorkflowID: made.ID, ID: "a", Type: workflow.EventTrigger, Version: change.Workflow.Version, Active: true,
		})
	})

	t.Run("begin anew when they become active", func(t *testing.T) {
		poll := workflow.Armed{ID: "p", Type: workflow.PollTrigger, Spec: "1", NextAt: &soon}
		made := w.armed(t, ws.ID, poll)
		answers(w.MoveTrigger(ctx, trigger.Move{Of: w.trigger(t, made, "p"), Next: &later, State: []byte("seen"), Failures: 3}))(t, "move", true)
		change := rearmed(made, workflow.Active, poll)
		answers(w.UpdateWorkflow(ctx, change))(t, "edit", true)
		kept := w.trigger(t, change.Workflow, "p")
		same(t, "state", kept.State, []byte("seen"))
		same(t, "failures", kept.Failures, 3)
		for _, state := range []workflow.State{workflow.Paused, workflow.Active} {
			change = rearmed(change.Workflow, state, poll)
			answers(w.UpdateWorkflow(ctx, change))(t, string(state), true)
		}
		fresh := w.trigger(t, change.Workflow, "p")
		same(t, "state", fresh.State, nil)
		same(t, "failures", fresh.Failures, 0)
		same(t, "time", fresh.NextAt, &soon)
	})

	t.Run("belong to their workspace", func(t *testing.T) {
		stranger, made := w.workspace(t), w.armed(t, ws.ID, scheduled("a", "1", soon))
		same(t, "read by a stranger", len(must(w.Triggers(ctx, stranger.ID, made.ID))(t)), 0)
		was := w.trigger(t, made, "a")
		foreign := was
		foreign.WorkspaceID = stranger.ID
		if err := w.NoteTrigger(ctx, foreign, &trigger.Note{At: soon, Code: "c", Message: "m"}, nil); err != nil {
			t.Fatal(err)
		}
		start := newFiring(t, made, "a", run.Fire{Was: &soon, Next: &later})
		start.Run.WorkspaceID = stranger.ID
		answers(w.StartRun(ctx, start))(t, "fired by a stranger", false)
		same(t, "trigger", w.trigger(t, made, "a"), was)
	})

	t.Run("are found when they are due", func(t *testing.T) { testDueTriggers(t, newWorld(t, w.open)) })
}

func testArming(t *testing.T, w *world, workspaceID string, soon, later time.Time) {
	ctx := t.Context()
	hook := workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "h", Token: []byte("sealed"), TokenHash: []byte("hash of " + t.Name())}
	made := w.armed(t, workspaceID, scheduled("a", "1", soon), scheduled("b", "1", soon), hook)
	want := trigger.Trigger{
		WorkspaceID: workspaceID, WorkflowID: made.ID, ID: "a", Type: workflow.ScheduleTrigger, Version: made.Version, Active: true, NextAt: &soon,
	}
	same(t, "armed", w.trigger(t, made, "a"), want)
	same(t, "told", w.told.take().Scheduled, []time.Time{soon, soon})
	same(t, "by token", found(w.TriggerByToken(ctx, hook.TokenHash))(t).ID, "hook")
	gone(w.TriggerByToken(ctx, []byte("another")))(t, "an unknown token")

	again := hook
	again.Token, again.TokenHash = []byte("sealed anew"), []byte("another hash")
	change := rearmed(made, workflow.Active, scheduled("a", "1", later), scheduled("c", "1", later), again)
	answers(w.UpdateWorkflow(ctx, change))(t, "edit", true)
	made = change.Workflow
	same(t, "number", len(must(w.Triggers(ctx, workspaceID, made.ID))(t)), 3)
	want.Version = made.Version
	same(t, "one that stayed the same", w.trigger(t, made, "a"), want)
	same(t, "a new one", w.trigger(t, made, "c").NextAt, &later)
	same(t, "the token", w.trigger(t, made, "hook").SealedToken, []byte("sealed"))

	change = rearmed(made, workflow.Active, scheduled("a", "2", later))
	answers(w.UpdateWorkflow(ctx, change))(t, "edit again", true)
	same(t, "one that changed", w.trigger(t, change.Workflow, "a").NextAt, &later)

	made = change.Workflow
	change = rearmed(made, workflow.Paused, workflow.Armed{ID: "a", Type: workflow.ScheduleTrigger, Spec: "2"})
	answers(w.UpdateWorkflow(ctx, change))(t, "pause", true)
	paused := w.trigger(t, change.Workflow, "a")
	same(t, "active", paused.Active, false)
	same(t, "time of a paused one", paused.NextAt, nil)

	stale := rearmed(made, workflow.Active, scheduled("z", "1", soon))
	answers(w.UpdateWorkflow(ctx, stale))(t, "with a stale revision", false)
	same(t, "after a stale update", w.trigger(t, change.Workflow, "a"), paused)

	w.deleteWorkflow(t, change.Workflow)
	same(t, "rows of a deleted workflow", w.count(t, `SELECT count(*) FROM triggers WHERE workflow_id = $1`, made.ID), 0)
}

func testDueTriggers(t *testing.T, w *world) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Now()
	same(t, "time of none", must(w.NextTrigger(ctx, workflow.ScheduleTrigger))(t), nil)
	made := w.armed(t, ws.ID, scheduled("b", "1", now), scheduled("a", "1", now.Add(-time.Second)), scheduled("c", "1", now.Add(time.Second)))
	ids := func(due []trigger.Trigger) []string {
		return mapped(due, func(t trigger.Trigger) string { return t.ID })
	}
	same(t, "due", ids(must(w.DueTriggers(ctx, workflow.ScheduleTrigger, now, 10))(t)), []string{"a", "b"})
	same(t, "the first", ids(must(w.DueTriggers(ctx, workflow.ScheduleTrigger, now, 1))(t)), []string{"a"})
	first := now.Add(-time.Second)
	same(t, "due of another type", len(must(w.DueTriggers(ctx, workflow.PollTrigger, now, 10))(t)), 0)
	same(t, "the earliest time", must(w.NextTrigger(ctx, workflow.ScheduleTrigger))(t), &first)

	was := w.trigger(t, made, "a")
	next := now.Add(time.Hour)
	failed, idle := &trigger.Note{At: now, Code: "http_error", Message: "It answered 500."}, &trigger.Note{At: now, Code: "missed", Message: "Too late."}
	answers(w.MoveTrigger(ctx, trigger.Move{Of: was, Next: &next, Failures: 1, State: []byte("s"), Error: failed, Idle: idle}))(t, "move", true)
	want := was
	want.NextAt, want.Failures, want.State, want.Error, want.Idle = &next, 1, []byte("s"), failed, idle
	same(t, "moved", w.trigger(t, made, "a"), want)
	answers(w.MoveTrigger(ctx, trigger.Move{Of: was, Next: &now}))(t, "move once more", false)
	same(t, "moved", w.trigger(t, made, "a"), want)
	stranger := want
	stranger.WorkspaceID = "ws_other"
	answers(w.MoveTrigger(ctx, trigger.Move{Of: stranger, Next: &now}))(t, "move that of another workspace", false)
}

// newFiring is the start of a run by a trigger.
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

func testFire(t *testing.T, w *world) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Now()
	next := now.Add(time.Hour)
	refused := func(t *testing.T, start run.Start, why error) {
		t.Helper()
		if _, err := w.StartRun(ctx, start); !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		gone(w.Run(ctx, ws.ID, start.Run.ID))(t, "the run")
		same(t, "rows in the queue", w.count(t, `SELECT count(*) FROM run_queue WHERE run_id = $1`, start.Run.ID), 0)
		same(t, "events", w.count(t, `SELECT count(*) FROM events WHERE run_id = $1`, start.Run.ID), 0)
	}

	t.Run("moves the time with the run", func(t *testing.T) {
		made := w.armed(t, ws.ID, scheduled("a", "1", now))
		start := newFiring(t, made, "a", run.Fire{Was: &now, Next: &next})
		answers(w.StartRun(ctx, start))(t, "fire", true)
		fired := w.trigger(t, made, "a")
		same(t, "time", fired.NextAt, &next)
		same(t, "run", fired.RunID, start.Run.ID)
		same(t, "when", fired.FiredAt, &start.Run.StartedAt)
		refused(t, newFiring(t, made, "a", run.Fire{Was: &now, Next: &next}), run.ErrNotArmed)
		same(t, "trigger", w.trigger(t, made, "a"), fired)
	})

	t.Run("one of many wins a time", func(t *testing.T) {
		made := w.armed(t, ws.ID, scheduled("a", "1", now))
		won := together(t, 32, func(int) (bool, error) {
			ok, err := w.StartRun(t.Context(), newFiring(t, made, "a", run.Fire{Was: &now, Next: &next}))
			if errors.Is(err, run.ErrNotArmed) {
				return false, nil
			}
			return ok, err
		})
		same(t, "winners", won, 1)
		same(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, made.ID), 1)
	})

	t.Run("only while the workflow is active", func(t *testing.T) {
		made := w.armed(t, ws.ID, scheduled("a", "1", now))
		change := rearmed(made, workflow.Paused, scheduled("a", "1", now))
		answers(w.UpdateWorkflow(ctx, change))(t, "pause", true)
		refused(t, newFiring(t, change.Workflow, "a", run.Fire{Was: &now, Next: &next}), run.ErrNotArmed)
		refused(t, newFiring(t, change.Workflow, "a", run.Fire{}), run.ErrNotArmed)
		refused(t, newFiring(t, change.Workflow, "none", run.Fire{}), run.ErrNotArmed)
	})
}

// Keys tell calls of webhooks apart.
func testDedupe(t *testing.T, w *world) {
	ctx, ws, next := t.Context(), w.workspace(t), clock.Now().Add(time.Hour)

	t.Run("a key counts once until it expires", func(t *testing.T) {
		made := w.armed(t, ws.ID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "1"}, workflow.Armed{ID: "other", Type: workflow.WebhookTrigger, Spec: "1"})
		key := &run.Dedupe{Hash: []byte("key"), Until: next}
		first := newFiring(t, made, "hook", run.Fire{Dedupe: key})
		answers(w.StartRun(ctx, first))(t, "first", true)
		second := newFiring(t, made, "hook", run.Fire{Dedupe: key})
		_, err := w.StartRun(ctx, second)
		if twin, ok := errors.AsType[*run.DuplicateError](err); !ok || twin.RunID != first.Run.ID {
			t.Errorf("second: %v", err)
		}
		gone(w.Run(ctx, ws.ID, second.Run.ID))(t, "the run")
		same(t, "last run", w.trigger(t, made, "hook").RunID, first.Run.ID)
		answers(w.StartRun(ctx, newFiring(t, made, "other", run.Fire{Dedupe: key})))(t, "by another trigger", true)
		answers(w.StartRun(ctx, newFiring(t, made, "hook", run.Fire{Dedupe: &run.Dedupe{Hash: []byte("b"), Until: next}})))(t, "another key", true)
		answers(w.StartRun(ctx, newFiring(t, made, "hook", run.Fire{At: next, Dedupe: &run.Dedupe{Hash: []byte("key"), Until: next.Add(time.Hour)}})))(t, "after its time", true)
	})

	t.Run("keys that have expired are purged", func(t *testing.T) {
		made := w.armed(t, ws.ID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "1"})
		for i, until := range []time.Time{next.Add(-time.Minute), next.Add(-time.Minute), next.Add(time.Minute)} {
			key := &run.Dedupe{Hash: []byte{byte(i)}, Until: until}
			answers(w.StartRun(ctx, newFiring(t, made, "hook", run.Fire{Dedupe: key})))(t, "fire", true)
		}
		kept := func() int { return w.count(t, `SELECT count(*) FROM trigger_keys WHERE workflow_id = $1`, made.ID) }
		answers(w.PurgeTriggerKeys(ctx, next.Add(-2*time.Minute), 100))(t, "too soon", false)
		same(t, "keys", kept(), 3)
		for must(w.PurgeTriggerKeys(ctx, next.Add(-time.Second), 1))(t) {
		}
		same(t, "keys", kept(), 1)
	})

	t.Run("one of many calls with a key wins", func(t *testing.T) {
		made := w.armed(t, ws.ID, workflow.Armed{ID: "hook", Type: workflow.WebhookTrigger, Spec: "1"})
		won := together(t, 64, func(int) (bool, error) {
			ok, err := w.StartRun(t.Context(), newFiring(t, made, "hook", run.Fire{Dedupe: &run.Dedupe{Hash: []byte("key"), Until: next}}))
			if _, twin := errors.AsType[*run.DuplicateError](err); twin {
				return false, nil
			}
			return ok, err
		})
		same(t, "winners", won, 1)
		same(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, made.ID), 1)
	})
}
