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

func testStart(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	hook := w.webhook(t, ws.ID, nil)

	t.Run("on a node", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Run.Trigger.ID, start.Run.RetryOf = "by_hand", "run_before"
		r := start.Run
		answers(w.StartRun(ctx, start))(t, "start", true)
		same(t, "run", found(w.Run(ctx, ws.ID, r.ID))(t), run.Detail{Run: r})
		same(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1")})
		same(t, "events", w.events(t, r.ID, string(event.RunStarted)), 1)
		same(t, "deliveries", w.deliveries(t, start.Event.ID), []string{hook.ID})
		fresh := found(w.Snapshot(ctx, r.ID))(t)
		wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: r.StartedAt, Plan: ws.Plan, Owned: true, Fresh: &fresh}
		same(t, "told", w.told.take(), heard{Wakes: []run.Wake{wake}, Started: []string{ws.ID}})
	})

	t.Run("with a large payload", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Run.Trigger.Payload = json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
		answers(w.StartRun(ctx, start))(t, "start", true)
		if told := w.told.take(); len(told.Wakes) != 1 || !told.Wakes[0].Owned || told.Wakes[0].Fresh != nil {
			t.Error("it is not woken once, or kept in memory until it is taken up")
		}
	})

	t.Run("for whoever wakes", func(t *testing.T) {
		r := w.start(t, wf, "")
		same(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &r.StartedAt})
		wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: r.StartedAt, Plan: ws.Plan}
		same(t, "told", w.told.take(), heard{Wakes: []run.Wake{wake}, Started: []string{ws.ID}})
	})

	t.Run("is told after the commit", func(t *testing.T) {
		var seen *run.Detail
		var err error
		w.told.onWake = func(wake run.Wake) { seen, err = w.Run(ctx, wake.WorkspaceID, wake.RunID) }
		defer func() { w.told.onWake = nil }()
		r := w.start(t, wf, "node_1")
		same(t, "the run as others see it while it is told", found(seen, err)(t).Run, r)
		w.told.take()
	})

	t.Run("by many at once", func(t *testing.T) {
		own := w.workflow(t, ws.ID)
		starts := make([]run.Start, 32)
		for i := range starts {
			starts[i] = newStart(t, own, "node_1")
		}
		started := together(t, len(starts), func(i int) (bool, error) { return w.StartRun(ctx, starts[i]) })
		same(t, "started", started, len(starts))
		same(t, "listed", len(must(w.Runs(ctx, ws.ID, own.ID, run.Running, whole))(t).Items), len(starts))
		told := w.told.take()
		same(t, "told wakes", len(told.Wakes), len(starts))
		same(t, "told starts", len(told.Started), len(starts))
	})

	t.Run("refused", func(t *testing.T) { testStartRefused(t, w, wf) })
}

func testStartRefused(t *testing.T, w *world, wf workflow.Workflow) {
	ctx := t.Context()
	t.Run("of another state of the workflow", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		start.Revision++
		answers(w.StartRun(ctx, start))(t, "start", false)
		w.checkNotStarted(t, start)
	})

	t.Run("of an unknown workflow", func(t *testing.T) {
		unknown, _ := newWorkflow(wf.WorkspaceID)
		start := newStart(t, unknown, "node_1")
		answers(w.StartRun(ctx, start))(t, "start", false)
		w.checkNotStarted(t, start)
	})

	t.Run("of a step whose run has ended", func(t *testing.T) {
		parent := w.start(t, wf, "node_1")
		first, second := newStart(t, wf, "node_1"), newStart(t, wf, "node_1")
		first.Run.Parent = &run.Parent{RunID: parent.ID, StepID: "a", Waits: true}
		second.Run.Parent = &run.Parent{RunID: parent.ID, StepID: "b", Waits: true}
		answers(w.StartRun(ctx, first))(t, "start while it runs", true)
		answers(w.CancelRun(ctx, newCancellation(t, parent)))(t, "cancel", true)
		same(t, "the run it waited for", found(w.Run(ctx, wf.WorkspaceID, first.Run.ID))(t).Status, run.Cancelled)
		w.told.take()
		if _, err := w.StartRun(ctx, first); !errors.Is(err, run.ErrStarted) {
			t.Errorf("the one that was started: %v", err)
		}
		if _, err := w.StartRun(ctx, second); !errors.Is(err, run.ErrParentEnded) {
			t.Errorf("the one that was not: %v", err)
		}
		w.checkNotStarted(t, second)
	})

	t.Run("is written whole or not at all", func(t *testing.T) {
		told := w.start(t, wf, "node_1")
		w.told.take()
		start := newStart(t, wf, "node_1")
		start.Event.ID = collect(t, w, `SELECT id FROM events WHERE run_id = $1`, []any{told.ID}, text)[0]
		fails(w.StartRun(ctx, start))(t, "an event that was told before")
		w.checkNotStarted(t, start)
	})
}

func (w *world) checkNotStarted(t *testing.T, start run.Start) {
	t.Helper()
	gone(w.Run(t.Context(), start.Run.WorkspaceID, start.Run.ID))(t, "the run")
	gone(w.queue(t, start.Run.ID), nil)(t, "its row in the queue")
	same(t, "its events", w.count(t, `SELECT count(*) FROM events WHERE run_id = $1`, start.Run.ID), 0)
	same(t, "its deliveries", w.count(t, `SELECT count(*) FROM deliveries WHERE run_id = $1`, start.Run.ID), 0)
	same(t, "told", w.told.take(), heard{})
}

// Only a run that was there and has ended is over.
func testEndedOf(t *testing.T, w *world, wf workflow.Workflow) {
	over, running, coming := w.start(t, wf, "node_1"), w.start(t, wf, "node_1"), newStart(t, wf, "node_1")
	w.finish(t, over, run.Succeeded)
	ended := must(w.EndedOf(t.Context(), []string{running.ID, over.ID, coming.Run.ID}))(t)
	same(t, "ended", ended, []string{over.ID})
}

func testRuns(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	empty(w.Runs(ctx, ws.ID, wf.ID, "", whole))(t, "a workflow that never ran")
	gone(w.Run(ctx, ws.ID, "run_none"))(t, "an unknown run")
	gone(w.Snapshot(ctx, "run_none"))(t, "the snapshot of an unknown run")
	w.start(t, w.workflow(t, ws.ID), "node_1")

	// Every third run has each status, the newest comes first.
	byStatus := map[run.Status][]string{}
	all := []string{}
	statuses := []run.Status{run.Running, run.Succeeded, run.Failed, run.Cancelled}
	for i := range 12 {
		r, status := w.start(t, wf, "node_1"), statuses[i%len(statuses)]
		switch status {
		case run.Running:
		case run.Cancelled:
			answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		default:
			w.finish(t, r, status)
		}
		all = append([]string{r.ID}, all...)
		byStatus[status] = append([]string{r.ID}, byStatus[status]...)
	}
	ids := func(page paging.Page[run.Item]) []string {
		return mapped(page.Items, func(i run.Item) string { return i.ID })
	}
	same(t, "all", ids(must(w.Runs(ctx, ws.ID, wf.ID, "", whole))(t)), all)
	for status, want := range byStatus {
		page := must(w.Runs(ctx, ws.ID, wf.ID, status, whole))(t)
		same(t, "all "+string(status), ids(page), want)
		for _, item := range page.Items {
			if item.Status != status || item.WorkflowID != wf.ID || (item.FinishedAt == nil) != (status == run.Running) {
				t.Errorf("among the %s ones: %+v", status, item)
			}
		}
		first := must(w.Runs(ctx, ws.ID, wf.ID, status, paging.Request{Limit: 2}))(t)
		same(t, "first page of "+string(status), ids(first), want[:2])
		same(t, "next", first.Next, want[1])
		last := must(w.Runs(ctx, ws.ID, wf.ID, status, paging.Request{Limit: 2, After: first.Next}))(t)
		same(t, "last page of "+string(status), ids(last), want[2:])
		same(t, "no next", last.Next, "")
	}
	empty(w.Runs(ctx, ws.ID, wf.ID, "unheard_of", whole))(t, "an unknown status")
}

func testCancel(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("of a run at work", func(t *testing.T) { testCancelAtWork(t, w, wf) })
	t.Run("who is over", func(t *testing.T) { testEndedOf(t, w, w.workflow(t, w.workspace(t).ID)) })

	t.Run("of a run that nobody took up", func(t *testing.T) {
		r := w.start(t, wf, "")
		answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		for _, wake := range must(w.Due(ctx, clock.Now(), nil, plenty))(t) {
			if wake.RunID == r.ID {
				t.Error("the run is still due")
			}
		}
	})

	t.Run("of a finished run", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		w.finish(t, r, run.Failed)
		w.told.take()
		before := found(w.Run(ctx, ws.ID, r.ID))(t)
		answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", false)
		same(t, "run", found(w.Run(ctx, ws.ID, r.ID))(t), before)
		same(t, "endings", w.endings(t, r.ID), 1)
		same(t, "told", w.told.take(), heard{})
	})

	t.Run("of an unknown run", func(t *testing.T) {
		unknown := newStart(t, wf, "").Run
		answers(w.CancelRun(ctx, newCancellation(t, unknown)))(t, "cancel", false)
		same(t, "events", w.events(t, unknown.ID, string(event.RunCancelled)), 0)
	})
}

func testCancelAtWork(t *testing.T, w *world, wf workflow.Workflow) {
	ctx, ws := t.Context(), wf.WorkspaceID
	hook := w.webhook(t, ws, nil)
	r := w.start(t, wf, "node_1")
	done, open, waiting := newStep("a", 1, run.StepSucceeded), newStep("b", 2, run.StepRunning), newStep("c", 3, run.StepWaiting)
	done.FinishedAt, waiting.WakeAt = new(clock.Now()), new(clock.Now())
	answers(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{done, open, waiting}}))(t, "commit", true)
	w.told.take()

	cancel := newCancellation(t, r)
	answers(w.CancelRun(ctx, cancel))(t, "cancel", true)
	r.Status, r.FinishedAt = run.Cancelled, &cancel.At
	open.Status, open.FinishedAt, open.Rev = run.StepCancelled, &cancel.At, 1
	waiting.Status, waiting.FinishedAt, waiting.WakeAt, waiting.Rev = run.StepCancelled, &cancel.At, nil, 1
	want := run.Detail{Run: r, Steps: []run.Step{done, open, waiting}}
	same(t, "run", found(w.Run(ctx, ws, r.ID))(t), want)
	gone(w.queue(t, r.ID), nil)(t, "its row in the queue")
	same(t, "events", w.events(t, r.ID, string(event.RunCancelled)), 1)
	same(t, "deliveries", w.deliveries(t, w.eventOf(t, r.ID, event.RunCancelled)), []string{hook.ID})
	same(t, "told", w.told.take(), heard{Ended: []ended{{ws, r.ID, run.Cancelled}}})

	answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "once more", false)
	answers(w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "a finish afterwards", false)
	_, ok, err := w.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
	answers(ok, err)(t, "an activation afterwards", false)
	same(t, "run", found(w.Run(ctx, ws, r.ID))(t), want)
	same(t, "endings", w.endings(t, r.ID), 1)
	same(t, "told", w.told.take(), heard{})
}
