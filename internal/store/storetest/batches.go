package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// newBatch returns the start of several runs by a poll.
func newBatch(t *testing.T, of workflow.Workflow, runs int, f run.Fire) run.Starts {
	t.Helper()
	f.At = clock.Now()
	b := run.Starts{Fire: f, Summarize: func(n int) *run.NotFired {
		return &run.NotFired{Code: "concurrency_limit", Message: string(rune('0' + n))}
	}}
	for range runs {
		start := newStart(t, of, "")
		start.Run.Trigger.Type, start.Run.Trigger.ID = workflow.PollTrigger, "p"
		b.Starts = append(b.Starts, start)
	}
	return b
}

func testFireBatch(t *testing.T, w *harness) {
	ctx, ws, now := t.Context(), w.workspace(t), clock.Now()
	next := now.Add(time.Minute)
	poll := workflow.Armed{ID: "p", Type: workflow.PollTrigger, Spec: "1", NextAt: &now}
	runs := func(of workflow.Workflow) int {
		return w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, of.ID)
	}
	fire := run.Fire{Was: &now, Next: &next, State: []byte("seen")}

	t.Run("start together with the trigger's update", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, poll)
		b := newBatch(t, made, 3, fire)
		started := must(w.Runs.StartRuns(ctx, b))(t)
		equal(t, "started", started, []string{b.Starts[0].Run.ID, b.Starts[1].Run.ID, b.Starts[2].Run.ID})
		kept := w.trigger(t, made, "p")
		equal(t, "state", kept.State, []byte("seen"))
		equal(t, "time", kept.NextAt, &next)
		equal(t, "last run", kept.RunID, started[2])
		equal(t, "runs", runs(made), 3)
		for _, id := range started {
			equal(t, "events", w.events(t, id, "run.started"), 1)
		}
	})

	t.Run("none without the trigger's update", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, poll)
		late := fire
		late.Was = &next
		if _, err := w.Runs.StartRuns(ctx, newBatch(t, made, 3, late)); !errors.Is(err, run.ErrNotDue) {
			t.Errorf("at another time: %v", err)
		}
		stale := newBatch(t, made, 3, fire)
		for i := range stale.Starts {
			stale.Starts[i].Revision--
		}
		equal(t, "started with a stale revision", must(w.Runs.StartRuns(ctx, stale))(t), nil)
		for change := range 2 {
			mixed := newBatch(t, made, 2, fire)
			if last := &mixed.Starts[1]; change == 0 {
				last.Revision--
			} else {
				last.Plan = auth.Free
			}
			equal(t, "started with a part of it stale", must(w.Runs.StartRuns(ctx, mixed))(t), nil)
		}
		equal(t, "runs", runs(made), 0)
		equal(t, "trigger", w.trigger(t, made, "p").State, nil)
	})

	t.Run("runs over the limit are skipped", func(t *testing.T) { testBatchAtLimit(t, w, w.withTriggers(t, ws.ID, poll), fire) })

	t.Run("one of many concurrent polls wins", func(t *testing.T) {
		made := w.withTriggers(t, ws.ID, poll)
		won := concurrently(t, 16, func(int) (bool, error) {
			started, err := w.Runs.StartRuns(t.Context(), newBatch(t, made, 4, fire))
			if errors.Is(err, run.ErrNotDue) {
				return false, nil
			}
			return len(started) == 4, err
		})
		equal(t, "winners", won, 1)
		equal(t, "runs", runs(made), 4)
	})
}

func testBatchAtLimit(t *testing.T, w *harness, made workflow.Workflow, fire run.Fire) {
	share := func(b run.Starts, on workflow.OnLimit) run.Starts {
		for i := range b.Starts {
			b.Starts[i].Concurrency, b.Starts[i].Run.ConcurrencyKey = &workflow.ConcurrencyLimit{Limit: 2, OnLimit: on}, "k"
		}
		return b
	}
	b := share(newBatch(t, made, 5, fire), workflow.Drop)
	b.Rejected = 1
	equal(t, "started", len(must(w.Runs.StartRuns(t.Context(), b))(t)), 2)
	kept := w.trigger(t, made, "p")
	equal(t, "note", kept.NotFired, &trigger.Note{At: b.Fire.At, Code: "concurrency_limit", Message: "4"})
	equal(t, "last run", kept.RunID, b.Starts[1].Run.ID)

	again := fire
	again.Was = fire.Next
	if _, err := w.Runs.StartRuns(t.Context(), share(newBatch(t, made, 2, again), workflow.Drop)); !errors.Is(err, run.ErrAtLimit) {
		t.Errorf("when all are over the limit: %v", err)
	}
	equal(t, "trigger", w.trigger(t, made, "p"), kept)
	equal(t, "runs", w.count(t, `SELECT count(*) FROM runs WHERE workflow_id = $1`, made.ID), 2)
}
