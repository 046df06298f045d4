package storetest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

func testStart(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	hook := w.webhook(t, ws.ID, nil)

	t.Run("on a node", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Run.Trigger.ID, start.Run.RetryOf = "by_hand", "run_before"
		r := start.Run
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		equal(t, "run", found(w.Runs.Run(ctx, ws.ID, r.ID))(t), run.Detail{Run: r})
		equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1")})
		equal(t, "events", w.events(t, r.ID, string(event.RunStarted)), 1)
		equal(t, "deliveries", w.deliveries(t, start.Event.ID), []string{hook.ID})
		fresh := found(w.Leases.Snapshot(ctx, r.ID))(t)
		wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: r.StartedAt, Plan: ws.Plan, Owned: true, Fresh: &fresh}
		equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}, Started: []string{ws.ID}})
	})

	t.Run("with a large payload", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Run.Trigger.Payload = json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		if notified := w.notified.take(); len(notified.Wakes) != 1 || !notified.Wakes[0].Owned || notified.Wakes[0].Fresh != nil {
			t.Error("it was not woken once, or its payload was kept in memory")
		}
	})

	t.Run("for any node", func(t *testing.T) {
		r := w.start(t, wf, "")
		equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &r.StartedAt})
		wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: r.StartedAt, Plan: ws.Plan}
		equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}, Started: []string{ws.ID}})
	})

	t.Run("is notified after the commit", func(t *testing.T) {
		var seen *run.Detail
		var err error
		w.notified.onWake = func(wake run.Wake) { seen, err = w.Runs.Run(ctx, wake.WorkspaceID, wake.RunID) }
		defer func() { w.notified.onWake = nil }()
		r := w.start(t, wf, "node_1")
		equal(t, "the run as others see it during the notification", found(seen, err)(t).Run, r)
		w.notified.take()
	})

	t.Run("by many concurrent callers", func(t *testing.T) {
		own := w.workflow(t, ws.ID)
		starts := make([]run.Start, 32)
		for i := range starts {
			starts[i] = newStart(t, own, "node_1")
		}
		started := concurrently(t, len(starts), func(i int) (bool, error) { return w.Runs.StartRun(ctx, starts[i]) })
		equal(t, "started", started, len(starts))
		equal(t, "listed", len(must(w.Runs.Runs(ctx, ws.ID, own.ID, run.Running, fullPage))(t).Items), len(starts))
		notified := w.notified.take()
		equal(t, "wake notifications", len(notified.Wakes), len(starts))
		equal(t, "start notifications", len(notified.Started), len(starts))
	})

	t.Run("rejected", func(t *testing.T) { testStartRejected(t, w, wf) })
}

func testStartRejected(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx := t.Context()
	t.Run("with a stale revision of the workflow", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Revision++
		returns(w.Runs.StartRun(ctx, start))(t, "start", false)
		w.checkNotStarted(t, start)
	})

	t.Run("of an unknown workflow", func(t *testing.T) {
		unknown, _ := newWorkflow(wf.WorkspaceID)
		start := newStart(t, unknown, "node_1")
		returns(w.Runs.StartRun(ctx, start))(t, "start", false)
		w.checkNotStarted(t, start)
	})

	t.Run("of a step whose run has ended", func(t *testing.T) {
		parent := w.start(t, wf, "node_1")
		first, second := newStart(t, wf, "node_1"), newStart(t, wf, "node_1")
		first.Run.Parent = &run.Parent{RunID: parent.ID, StepID: "a", Waits: true}
		second.Run.Parent = &run.Parent{RunID: parent.ID, StepID: "b", Waits: true}
		returns(w.Runs.StartRun(ctx, first))(t, "start while it runs", true)
		returns(w.Runs.CancelRun(ctx, newCancellation(t, parent)))(t, "cancel", true)
		equal(t, "the run it waited for", found(w.Runs.Run(ctx, wf.WorkspaceID, first.Run.ID))(t).Status, run.Cancelled)
		w.notified.take()
		if _, err := w.Runs.StartRun(ctx, first); !errors.Is(err, run.ErrStarted) {
			t.Errorf("the child that was started: %v", err)
		}
		if _, err := w.Runs.StartRun(ctx, second); !errors.Is(err, run.ErrParentEnded) {
			t.Errorf("the child that was not started: %v", err)
		}
		w.checkNotStarted(t, second)
	})

	t.Run("is atomic", func(t *testing.T) {
		existing := w.start(t, wf, "node_1")
		w.notified.take()
		start := newStart(t, wf, "node_1")
		start.Event.ID = collect(t, w, `SELECT id FROM events WHERE run_id = $1`, []any{existing.ID}, text)[0]
		fails(w.Runs.StartRun(ctx, start))(t, "an event id that exists")
		w.checkNotStarted(t, start)
	})
}

func (w *harness) checkNotStarted(t *testing.T, start run.Start) {
	t.Helper()
	missing(w.Runs.Run(t.Context(), start.Run.WorkspaceID, start.Run.ID))(t, "the run")
	missing(w.queue(t, start.Run.ID), nil)(t, "its row in the queue")
	equal(t, "its events", w.count(t, `SELECT count(*) FROM events WHERE run_id = $1`, start.Run.ID), 0)
	equal(t, "its deliveries", w.count(t, `SELECT count(*) FROM deliveries WHERE run_id = $1`, start.Run.ID), 0)
	equal(t, "notifications", w.notified.take(), notifications{})
}

// testEndedOf checks that only a run that existed and has ended is listed.
func testEndedOf(t *testing.T, w *harness, wf workflow.Workflow) {
	over, running, coming := w.start(t, wf, "node_1"), w.start(t, wf, "node_1"), newStart(t, wf, "node_1")
	w.finish(t, over, run.Succeeded)
	ended := must(w.Runs.EndedRuns(t.Context(), []string{running.ID, over.ID, coming.Run.ID}))(t)
	equal(t, "ended", ended, []string{over.ID})
}

func testRuns(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	empty(w.Runs.Runs(ctx, ws.ID, wf.ID, "", fullPage))(t, "a workflow that never ran")
	missing(w.Runs.Run(ctx, ws.ID, "run_none"))(t, "an unknown run")
	missing(w.Leases.Snapshot(ctx, "run_none"))(t, "the snapshot of an unknown run")
	w.start(t, w.workflow(t, ws.ID), "node_1")

	// Every third run has each status; newest first.
	byStatus := map[run.Status][]string{}
	all := []string{}
	statuses := []run.Status{run.Running, run.Succeeded, run.Failed, run.Cancelled}
	for i := range 12 {
		r, status := w.start(t, wf, "node_1"), statuses[i%len(statuses)]
		switch status {
		case run.Running:
		case run.Cancelled:
			returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		default:
			w.finish(t, r, status)
		}
		all = append([]string{r.ID}, all...)
		byStatus[status] = append([]string{r.ID}, byStatus[status]...)
	}
	ids := func(page paging.Page[run.Item]) []string {
		return mapped(page.Items, func(i run.Item) string { return i.ID })
	}
	equal(t, "all", ids(must(w.Runs.Runs(ctx, ws.ID, wf.ID, "", fullPage))(t)), all)
	for status, want := range byStatus {
		page := must(w.Runs.Runs(ctx, ws.ID, wf.ID, status, fullPage))(t)
		equal(t, "all "+string(status), ids(page), want)
		for _, item := range page.Items {
			if item.Status != status || item.WorkflowID != wf.ID || (item.FinishedAt == nil) != (status == run.Running) {
				t.Errorf("among the %s ones: %+v", status, item)
			}
		}
		first := must(w.Runs.Runs(ctx, ws.ID, wf.ID, status, paging.Request{Limit: 2}))(t)
		equal(t, "first page of "+string(status), ids(first), want[:2])
		equal(t, "next", first.Next, want[1])
		last := must(w.Runs.Runs(ctx, ws.ID, wf.ID, status, paging.Request{Limit: 2, After: first.Next}))(t)
		equal(t, "last page of "+string(status), ids(last), want[2:])
		equal(t, "no next", last.Next, "")
	}
	empty(w.Runs.Runs(ctx, ws.ID, wf.ID, "unheard_of", fullPage))(t, "an unknown status")
}

func testCancel(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("of an executing run", func(t *testing.T) { testCancelRunning(t, w, wf) })
	t.Run("ended runs", func(t *testing.T) { testEndedOf(t, w, w.workflow(t, w.workspace(t).ID)) })

	t.Run("of a run without an owner", func(t *testing.T) {
		r := w.start(t, wf, "")
		returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		for _, wake := range must(w.Leases.Due(ctx, clock.Now(), nil, noLimit))(t) {
			if wake.RunID == r.ID {
				t.Error("the run is still due")
			}
		}
	})

	t.Run("of a finished run", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		w.finish(t, r, run.Failed)
		w.notified.take()
		before := found(w.Runs.Run(ctx, ws.ID, r.ID))(t)
		returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", false)
		equal(t, "run", found(w.Runs.Run(ctx, ws.ID, r.ID))(t), before)
		equal(t, "endings", w.endings(t, r.ID), 1)
		equal(t, "notifications", w.notified.take(), notifications{})
	})

	t.Run("of an unknown run", func(t *testing.T) {
		unknown := newStart(t, wf, "").Run
		returns(w.Runs.CancelRun(ctx, newCancellation(t, unknown)))(t, "cancel", false)
		equal(t, "events", w.events(t, unknown.ID, string(event.RunCancelled)), 0)
	})
}

func testCancelRunning(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, ws := t.Context(), wf.WorkspaceID
	hook := w.webhook(t, ws, nil)
	r := w.start(t, wf, "node_1")
	done, open, waiting := newStep("a", 1, run.StepSucceeded), newStep("b", 2, run.StepRunning), newStep("c", 3, run.StepWaiting)
	done.FinishedAt, waiting.WakeAt = new(clock.Now()), new(clock.Now())
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{done, open, waiting}}))(t, "commit", true)
	w.notified.take()

	cancel := newCancellation(t, r)
	returns(w.Runs.CancelRun(ctx, cancel))(t, "cancel", true)
	r.Status, r.FinishedAt = run.Cancelled, &cancel.At
	open.Status, open.FinishedAt, open.Rev = run.StepCancelled, &cancel.At, 1
	waiting.Status, waiting.FinishedAt, waiting.WakeAt, waiting.Rev = run.StepCancelled, &cancel.At, nil, 1
	want := run.Detail{Run: r, Steps: []run.Step{done, open, waiting}}
	equal(t, "run", found(w.Runs.Run(ctx, ws, r.ID))(t), want)
	missing(w.queue(t, r.ID), nil)(t, "its row in the queue")
	equal(t, "events", w.events(t, r.ID, string(event.RunCancelled)), 1)
	equal(t, "deliveries", w.deliveries(t, w.eventOf(t, r.ID, event.RunCancelled)), []string{hook.ID})
	equal(t, "notifications", w.notified.take(), notifications{Ended: []endedRun{{ws, r.ID, run.Cancelled}}})

	returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "again", false)
	returns(w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "a finish afterwards", false)
	_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
	returns(ok, err)(t, "an activation afterwards", false)
	equal(t, "run", found(w.Runs.Run(ctx, ws, r.ID))(t), want)
	equal(t, "endings", w.endings(t, r.ID), 1)
	equal(t, "notifications", w.notified.take(), notifications{})
}
