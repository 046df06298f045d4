package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// testRecordCrash lets processes die while they execute steps.
func testRecordCrash(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r, idle := w.start(t, wf, "node_1"), w.start(t, wf, "node_1")
	lease := firstLease(r)
	execute := func(paths ...string) {
		t.Helper()
		returns(w.Commit(ctx, lease, r, run.Decision{Executing: paths}))(t, "execute", true)
	}
	// die ends the node that owns the run and lets another take it over.
	die := func(next string) int {
		t.Helper()
		if err := w.Leases.RecordCrash(ctx, next); err != nil {
			t.Fatal(err)
		}
		for _, wake := range must(w.Leases.Orphans(ctx, next, "", noLimit))(t) {
			if wake.RunID != r.ID {
				equal(t, "crashes of a run that did nothing", wake.Crashes, 0)
				continue
			}
			taken, ok, err := w.Leases.Activate(ctx, wake, next)
			returns(ok, err)(t, "take over", true)
			lease = taken
			equal(t, "crashes of the run", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Crashes, wake.Crashes)
			return wake.Crashes
		}
		t.Fatal("the run is not listed as an orphan")
		return 0
	}
	execute("a", "b")
	if err := w.Leases.RecordCrash(ctx, "node_1"); err != nil {
		t.Fatal(err)
	}
	equal(t, "blame of the node that lives", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Crashes, 0)
	equal(t, "the first crash", die("node_2"), 1)
	equal(t, "a crash between steps", die("node_3"), 1)
	execute("a", "b")
	equal(t, "a crash at the same steps", die("node_4"), 2)
	execute("a", "b")
	equal(t, "another one", die("node_5"), 3)
	execute("b")
	equal(t, "a crash at other steps", die("node_6"), 1)
	returns(w.Commit(ctx, lease, r, run.Decision{Steps: []run.Step{newStep("b", 1, run.StepSucceeded)}, Executing: []string{"c"}, ClearCrashes: true}))(t, "acquit", true)
	equal(t, "crashes of a run that got further", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Crashes, 0)
	equal(t, "a crash after that", die("node_7"), 1)
	equal(t, "crashes of the other run", found(w.Runs.Run(ctx, ws.ID, idle.ID))(t).Crashes, 0)
	w.notified.take()
}

// testRunState checks the state that the engine reads back after a commit.
func testRunState(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("the execution time of steps", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		equal(t, "at first", found(w.Leases.Snapshot(ctx, r.ID))(t).ExecutionTime, 0)
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, ExecutionTime: time.Second}))(t, "commit", true)
		equal(t, "after a commit", found(w.Leases.Snapshot(ctx, r.ID))(t).ExecutionTime, time.Second)
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, ExecutionTime: time.Hour + time.Nanosecond, Release: true, WakeAt: clock.Now()}))(t, "release", true)
		equal(t, "after it was released", found(w.Leases.Snapshot(ctx, r.ID))(t).ExecutionTime, time.Hour+time.Nanosecond)
	})

	t.Run("the steps that a retry reuses", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Run.RetryOf = "run_before"
		done, open := newStep("a", 3, run.StepSucceeded), newStep("each", 5, run.StepRunning)
		done.FinishedAt, done.Reason, done.Attempt = &done.StartedAt, "copied from run_before", 4
		start.Steps = []run.Step{done, open}
		w.notified.take()
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		equal(t, "run", found(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t), run.Detail{Run: start.Run, Steps: start.Steps})
		equal(t, "snapshot", found(w.Leases.Snapshot(ctx, start.Run.ID))(t).Steps, start.Steps)
		if notified := w.notified.take(); len(notified.Wakes) != 1 || notified.Wakes[0].Fresh != nil {
			t.Error("it was not woken once, or was treated as a run without steps")
		}
	})

	t.Run("due runs except those of some workspaces", func(t *testing.T) {
		busy, quiet := w.workspace(t), w.workspace(t)
		var want []run.Wake
		for _, workspaceID := range []string{busy.ID, quiet.ID, ws.ID} {
			r := w.start(t, w.workflow(t, workspaceID), "")
			if workspaceID == quiet.ID {
				want = append(want, run.Wake{RunID: r.ID, WorkspaceID: workspaceID, WorkflowID: r.WorkflowID, Epoch: 1, At: r.StartedAt, Plan: quiet.Plan})
			}
		}
		now := clock.Now().Add(time.Hour)
		equal(t, "due", must(w.Leases.Due(ctx, now, []string{busy.ID, ws.ID}, noLimit))(t), want)
		equal(t, "of none", must(w.Leases.Due(ctx, now, []string{busy.ID, ws.ID, quiet.ID}, noLimit))(t), nil)
		if got := must(w.Leases.Due(ctx, now, nil, noLimit))(t); len(got) < 3 {
			t.Errorf("without exceptions there are %d", len(got))
		}
	})
	w.notified.take()
}
