package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// testBlame lets processes die while they execute steps.
func testBlame(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r, idle := w.start(t, wf, "node_1"), w.start(t, wf, "node_1")
	lease := firstLease(r)
	execute := func(paths ...string) {
		t.Helper()
		answers(w.Commit(ctx, lease, r, run.Decision{Executing: paths}))(t, "execute", true)
	}
	// die ends the node that holds the run, and lets another take it over.
	die := func(next string) int {
		t.Helper()
		if err := w.Blame(ctx, next); err != nil {
			t.Fatal(err)
		}
		for _, wake := range must(w.Orphans(ctx, next, "", plenty))(t) {
			if wake.RunID != r.ID {
				same(t, "crashes of a run that did nothing", wake.Crashes, 0)
				continue
			}
			taken, ok, err := w.Activate(ctx, wake, next)
			answers(ok, err)(t, "take over", true)
			lease = taken
			same(t, "crashes of the run", found(w.Run(ctx, ws.ID, r.ID))(t).Crashes, wake.Crashes)
			return wake.Crashes
		}
		t.Fatal("the run is no orphan")
		return 0
	}
	execute("a", "b")
	if err := w.Blame(ctx, "node_1"); err != nil {
		t.Fatal(err)
	}
	same(t, "blame of the node that lives", found(w.Run(ctx, ws.ID, r.ID))(t).Crashes, 0)
	same(t, "the first crash", die("node_2"), 1)
	same(t, "a crash between steps", die("node_3"), 1)
	execute("a", "b")
	same(t, "a crash at the same steps", die("node_4"), 2)
	execute("a", "b")
	same(t, "another one", die("node_5"), 3)
	execute("b")
	same(t, "a crash at other steps", die("node_6"), 1)
	answers(w.Commit(ctx, lease, r, run.Decision{Steps: []run.Step{newStep("b", 1, run.StepSucceeded)}, Executing: []string{"c"}, Acquit: true}))(t, "acquit", true)
	same(t, "crashes of a run that got further", found(w.Run(ctx, ws.ID, r.ID))(t).Crashes, 0)
	same(t, "a crash after that", die("node_7"), 1)
	same(t, "crashes of the other run", found(w.Run(ctx, ws.ID, idle.ID))(t).Crashes, 0)
	w.told.take()
}

// testKept checks what the engine finds again of what it committed.
func testKept(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("the time that steps were executed", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		same(t, "at first", found(w.Snapshot(ctx, r.ID))(t).Ran, 0)
		answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Ran: time.Second}))(t, "commit", true)
		same(t, "after a commit", found(w.Snapshot(ctx, r.ID))(t).Ran, time.Second)
		answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, Ran: time.Hour + time.Nanosecond, Release: true, WakeAt: clock.Now()}))(t, "release", true)
		same(t, "after it was given back", found(w.Snapshot(ctx, r.ID))(t).Ran, time.Hour+time.Nanosecond)
	})

	t.Run("the steps that a retry takes over", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Run.RetryOf = "run_before"
		done, open := newStep("a", 3, run.StepSucceeded), newStep("each", 5, run.StepRunning)
		done.FinishedAt, done.Reason, done.Attempt = &done.StartedAt, "copied from run_before", 4
		start.Steps = []run.Step{done, open}
		w.told.take()
		answers(w.StartRun(ctx, start))(t, "start", true)
		same(t, "run", found(w.Run(ctx, ws.ID, start.Run.ID))(t), run.Detail{Run: start.Run, Steps: start.Steps})
		same(t, "snapshot", found(w.Snapshot(ctx, start.Run.ID))(t).Steps, start.Steps)
		if told := w.told.take(); len(told.Wakes) != 1 || told.Wakes[0].Fresh != nil {
			t.Error("it is not woken once, or is taken for one without steps")
		}
	})

	t.Run("except what waits in some workspaces", func(t *testing.T) {
		busy, quiet := w.workspace(t), w.workspace(t)
		var want []run.Wake
		for _, workspaceID := range []string{busy.ID, quiet.ID, ws.ID} {
			r := w.start(t, w.workflow(t, workspaceID), "")
			if workspaceID == quiet.ID {
				want = append(want, run.Wake{RunID: r.ID, WorkspaceID: workspaceID, WorkflowID: r.WorkflowID, Epoch: 1, At: r.StartedAt, Plan: quiet.Plan})
			}
		}
		now := clock.Now().Add(time.Hour)
		same(t, "due", must(w.Due(ctx, now, []string{busy.ID, ws.ID}, plenty))(t), want)
		same(t, "of none", must(w.Due(ctx, now, []string{busy.ID, ws.ID, quiet.ID}, plenty))(t), nil)
		if got := must(w.Due(ctx, now, nil, plenty))(t); len(got) < 3 {
			t.Errorf("of all there are %d", len(got))
		}
	})
	w.told.take()
}
