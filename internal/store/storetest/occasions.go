package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// onEvents is a trigger that fires on events of other workflows.
func onEvents(id, names string) workflow.Armed {
	return workflow.Armed{ID: id, Type: workflow.EventTrigger, Spec: `{"events": [` + names + `]}`}
}

func testOccasions(t *testing.T, w *world) {
	ctx, ws, stranger := t.Context(), w.workspace(t), w.workspace(t)
	source := w.workflow(t, ws.ID)
	same(t, "time of none", must(w.NextOccasion(ctx))(t), nil)
	chain := w.armed(t, ws.ID, onEvents("a", `"run.started"`), onEvents("b", `"run.failed"`))
	w.armed(t, stranger.ID, onEvents("a", `"run.started"`))
	idle := rearmed(w.armed(t, ws.ID, onEvents("a", `"run.started"`)), workflow.Paused, onEvents("a", `"run.started"`))
	answers(w.UpdateWorkflow(ctx, idle))(t, "pause", true)
	w.told.take()
	due := func(at time.Time) []trigger.Occasion { return must(w.DueOccasions(ctx, at, 10))(t) }

	r := w.start(t, source, "")
	same(t, "told", w.told.take().Occasions, 1)
	later := clock.Now().Add(time.Hour)
	found := due(later)
	if len(found) != 1 {
		t.Fatalf("%d occasions", len(found))
	}
	one := found[0]
	same(t, "trigger", one.Of, w.trigger(t, chain, "a"))
	same(t, "event", one.Event.ID, w.eventOf(t, r.ID, event.RunStarted))
	same(t, "run", one.Event.RunID, r.ID)
	if len(one.Event.Body) == 0 {
		t.Error("the event has no body")
	}
	same(t, "too soon", len(due(one.Event.At.Add(-time.Second))), 0)
	same(t, "time", must(w.NextOccasion(ctx))(t), &one.Event.At)

	t.Run("are kept with their event", func(t *testing.T) {
		for must(w.PurgeOld(ctx, later, later.Add(-time.Hour), 100))(t) {
		}
		same(t, "after the purge", due(later), found)
	})

	t.Run("can be put off", func(t *testing.T) {
		note := trigger.Note{At: clock.Now(), Code: "run_queue_full", Message: "Full."}
		put := later.Add(time.Minute)
		if err := w.SettleOccasion(ctx, one, &put, note); err != nil {
			t.Fatal(err)
		}
		same(t, "due", len(due(later)), 0)
		same(t, "due later", len(due(put)), 1)
		same(t, "note", w.trigger(t, chain, "a").Idle, &note)
		foreign := one
		foreign.Of.WorkspaceID = stranger.ID
		if err := w.SettleOccasion(ctx, foreign, nil, note); err != nil {
			t.Fatal(err)
		}
		same(t, "after a stranger", len(due(put)), 1)
	})

	t.Run("are gone with their run, once", func(t *testing.T) { testTaken(t, w, chain, one) })
	t.Run("are gone with their trigger", func(t *testing.T) { testUnsubscribed(t, w, source, chain) })
}

func testTaken(t *testing.T, w *world, chain workflow.Workflow, one trigger.Occasion) {
	ctx := t.Context()
	won := together(t, 16, func(int) (bool, error) {
		ok, err := w.StartRun(t.Context(), newFiring(t, chain, "a", run.Fire{EventID: one.Event.ID}))
		if errors.Is(err, run.ErrNotArmed) {
			return false, nil
		}
		return ok, err
	})
	same(t, "winners", won, 1)
	same(t, "left", w.count(t, `SELECT count(*) FROM occasions WHERE workflow_id = $1`, chain.ID), 0)
	same(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, chain.ID), 1)
	was := w.trigger(t, chain, "a")
	if err := w.SettleOccasion(ctx, one, nil, trigger.Note{At: clock.Now(), Code: "late", Message: "Late."}); err != nil {
		t.Fatal(err)
	}
	same(t, "after settling what is gone", w.trigger(t, chain, "a"), was)
}

func testUnsubscribed(t *testing.T, w *world, source, chain workflow.Workflow) {
	w.start(t, source, "")
	count := func() int {
		return w.count(t, `SELECT count(*) FROM occasions WHERE workflow_id = $1`, chain.ID)
	}
	same(t, "before", count(), 1)
	change := rearmed(chain, workflow.Active, scheduled("a", "1", clock.Now()))
	answers(w.UpdateWorkflow(t.Context(), change))(t, "another type", true)
	same(t, "after another type", count(), 0)
}
