package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// eventTrigger returns a trigger that fires on events of other workflows.
func eventTrigger(id, names string) workflow.Armed {
	return workflow.Armed{ID: id, Type: workflow.EventTrigger, Spec: `{"events": [` + names + `]}`}
}

func testPendingEvents(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t), w.workspace(t)
	source := w.workflow(t, ws.ID)
	equal(t, "time of none", must(w.Triggers.NextPendingEvent(ctx))(t), nil)
	chain := w.withTriggers(t, ws.ID, eventTrigger("a", `"run.started"`), eventTrigger("b", `"run.failed"`))
	w.withTriggers(t, stranger.ID, eventTrigger("a", `"run.started"`))
	idle := withNewTriggers(w.withTriggers(t, ws.ID, eventTrigger("a", `"run.started"`)), workflow.Paused, eventTrigger("a", `"run.started"`))
	returns(w.Workflows.UpdateWorkflow(ctx, idle))(t, "pause", true)
	w.notified.take()
	due := func(at time.Time) []trigger.PendingEvent { return must(w.Triggers.DuePendingEvents(ctx, at, 10))(t) }

	r := w.start(t, source, "")
	equal(t, "notifications", w.notified.take().PendingEvents, 1)
	later := clock.Now().Add(time.Hour)
	found := due(later)
	if len(found) != 1 {
		t.Fatalf("%d pending events", len(found))
	}
	one := found[0]
	equal(t, "trigger", one.Of, w.trigger(t, chain, "a"))
	equal(t, "event", one.Event.ID, w.eventOf(t, r.ID, event.RunStarted))
	equal(t, "run", one.Event.RunID, r.ID)
	if len(one.Event.Body) == 0 {
		t.Error("the event has no body")
	}
	equal(t, "too soon", len(due(one.Event.At.Add(-time.Second))), 0)
	equal(t, "time", must(w.Triggers.NextPendingEvent(ctx))(t), &one.Event.At)

	t.Run("are left to newer nodes if only they know the trigger", func(t *testing.T) {
		level := `UPDATE workflow_versions SET level = $1 WHERE workflow_id = $2`
		w.exec(t, level, release.Number+1, chain.ID)
		equal(t, "due", len(due(later)), 0)
		equal(t, "time", must(w.Triggers.NextPendingEvent(ctx))(t), nil)
		w.exec(t, level, 0, chain.ID)
	})

	t.Run("keep their event", func(t *testing.T) {
		for must(w.Events.PurgeOld(ctx, later, 100))(t) {
		}
		equal(t, "after the purge", due(later), found)
	})

	t.Run("can be postponed", func(t *testing.T) {
		note := trigger.Note{At: clock.Now(), Code: "run_queue_full", Message: "Full."}
		put := later.Add(time.Minute)
		if err := w.Triggers.SettlePendingEvent(ctx, one, &put, note); err != nil {
			t.Fatal(err)
		}
		equal(t, "due", len(due(later)), 0)
		equal(t, "due later", len(due(put)), 1)
		equal(t, "note", w.trigger(t, chain, "a").NotFired, &note)
		foreign := one
		foreign.Of.WorkspaceID = stranger.ID
		if err := w.Triggers.SettlePendingEvent(ctx, foreign, nil, note); err != nil {
			t.Fatal(err)
		}
		equal(t, "after a stranger", len(due(put)), 1)
	})

	t.Run("are settled once, with their run", func(t *testing.T) { testPendingEventSettled(t, w, chain, one) })
	t.Run("are deleted with their trigger", func(t *testing.T) { testUnsubscribed(t, w, source, chain) })
}

func testPendingEventSettled(t *testing.T, w *harness, chain workflow.Workflow, one trigger.PendingEvent) {
	ctx := t.Context()
	won := concurrently(t, 16, func(int) (bool, error) {
		ok, err := w.Runs.StartRun(t.Context(), newFiring(t, chain, "a", run.Fire{EventID: one.Event.ID}))
		if errors.Is(err, run.ErrNotDue) {
			return false, nil
		}
		return ok, err
	})
	equal(t, "winners", won, 1)
	equal(t, "left", w.count(t, `SELECT count(*) FROM pending_triggers WHERE workflow_id = $1`, chain.ID), 0)
	equal(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, chain.ID), 1)
	was := w.trigger(t, chain, "a")
	if err := w.Triggers.SettlePendingEvent(ctx, one, nil, trigger.Note{At: clock.Now(), Code: "late", Message: "Late."}); err != nil {
		t.Fatal(err)
	}
	equal(t, "after settling an event that is already settled", w.trigger(t, chain, "a"), was)
}

func testUnsubscribed(t *testing.T, w *harness, source, chain workflow.Workflow) {
	w.start(t, source, "")
	count := func() int {
		return w.count(t, `SELECT count(*) FROM pending_triggers WHERE workflow_id = $1`, chain.ID)
	}
	equal(t, "before", count(), 1)
	change := withNewTriggers(chain, workflow.Active, scheduled("a", "1", clock.Now()))
	returns(w.Workflows.UpdateWorkflow(t.Context(), change))(t, "another type", true)
	equal(t, "after another type", count(), 0)
}
