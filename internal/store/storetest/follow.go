package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
)

// seen lists changes in order: the path of a step, or a line.
func seen(changes *run.Changes) []string {
	return mapped(changes.List, func(c run.Change) string {
		var what string
		if c.Line != nil {
			what = c.Line.Message
		} else {
			what = c.Step.Path + " " + string(c.Step.Status)
		}
		if c.Complete {
			what += " @" + c.After.String()
		}
		return what
	})
}

func testRunChanges(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	changes := func(t *testing.T, after run.Position, limit int) *run.Changes {
		t.Helper()
		got := found(w.Runs.RunChanges(ctx, ws.ID, r.ID, after, limit))(t)
		return &got
	}
	equal(t, "progress before the first commit", found(w.Runs.RunProgress(ctx, ws.ID, r.ID))(t), run.Progress{Status: run.Running, Rev: -1})
	equal(t, "before the first commit", seen(changes(t, run.Beginning(), 10)), nil)

	one, two, three := newStep("one", 1, run.StepSucceeded), newStep("two", 2, run.StepRunning), newStep("three", 3, run.StepRunning)
	line := run.LogLine{Path: "one", Attempt: 1, At: one.StartedAt, Level: "info", Message: "a line"}
	commit := func(d run.Decision) { returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true) }
	commit(run.Decision{Rev: 1, Steps: []run.Step{two, one}, Logs: []run.LogLine{line, line}})
	commit(run.Decision{Rev: 4, Steps: []run.Step{three}})
	first := []string{"a line @1.0", "a line @1.1", "one succeeded", "two running @1", "three running @4"}
	equal(t, "all", seen(changes(t, run.Beginning(), 10)), first)
	equal(t, "after a line", seen(changes(t, run.AfterLine(1, 0), 10)), first[1:])
	equal(t, "after a commit", seen(changes(t, run.AfterCommit(1), 10)), first[4:])
	equal(t, "after the last one", seen(changes(t, run.AfterCommit(4), 10)), nil)
	progress := found(w.Runs.RunProgress(ctx, ws.ID, r.ID))(t)
	equal(t, "progress", progress.Rev, 4)
	equal(t, "open steps", len(progress.Open), 2)
	for _, step := range progress.Open {
		equal(t, "an open step", step, func() run.Step {
			s := map[string]run.Step{"two": two, "three": three}[step.Path]
			s.Rev, s.Input = step.Rev, nil
			return s
		}())
	}
	var parts []string
	for at := run.Beginning(); ; {
		part := changes(t, at, 2)
		parts = append(parts, seen(part)...)
		if !part.More {
			break
		}
		at = part.List[len(part.List)-1].After
	}
	equal(t, "in parts", parts, first)

	all := changes(t, run.Beginning(), 10)
	slim := r
	slim.Trigger.Payload = nil
	equal(t, "the run", all.Run, slim)
	equal(t, "the step", *all.List[2].Step, func() run.Step { s := one; s.Rev, s.Input = 1, nil; return s }())

	attempt := failedAttempt(two)
	two.Attempt, two.Status = 2, run.StepWaiting
	commit(run.Decision{Rev: 5, Steps: []run.Step{two}, Attempts: []run.Attempt{attempt}})
	again := changes(t, run.AfterCommit(4), 10)
	equal(t, "a step that changed again", seen(again), []string{"two waiting @5"})
	equal(t, "its earlier attempts", again.List[0].Attempts, []run.Attempt{attempt})

	returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
	over := changes(t, run.AfterCommit(5), 10)
	equal(t, "cancelled", seen(over), []string{"two cancelled", "three cancelled @6"})
	equal(t, "the run", over.Status, run.Cancelled)
	equal(t, "the end", found(w.Runs.RunProgress(ctx, ws.ID, r.ID))(t), run.Progress{Status: run.Cancelled, Rev: 6})

	other := w.workspace(t)
	missing(w.Runs.RunChanges(ctx, other.ID, r.ID, run.Beginning(), 10))(t, "for another workspace")
	missing(w.Runs.RunProgress(ctx, other.ID, r.ID))(t, "for another workspace")
	w.deleteWorkflow(t, wf)
	missing(w.Runs.RunChanges(ctx, ws.ID, r.ID, run.Beginning(), 10))(t, "of a deleted workflow")
	missing(w.Runs.RunProgress(ctx, ws.ID, r.ID))(t, "of a deleted workflow")
}

func testEventsAfter(t *testing.T, w *harness) {
	ctx := t.Context()
	ws, other := w.workspace(t), w.workspace(t)
	equal(t, "extent of an empty store", must(w.Events.EventExtent(ctx, ws.ID, time.Time{}))(t), event.Extent{Oldest: 1})
	wf, second := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	begun := w.start(t, wf, "node_1")
	w.start(t, w.workflow(t, other.ID), "node_1")
	w.finish(t, begun, run.Failed)
	w.start(t, second, "node_1")
	equal(t, "extent", must(w.Events.EventExtent(ctx, ws.ID, time.Time{}))(t), event.Extent{Oldest: 1, Newest: 4})

	for _, tc := range []struct {
		name  string
		want  event.Filter
		after int64
		limit int
		seqs  []int64
		upTo  int64
	}{
		{name: "all", limit: 10, seqs: []int64{1, 3, 4}, upTo: 4},
		{name: "after one", after: 1, limit: 10, seqs: []int64{3, 4}, upTo: 4},
		{name: "a part", limit: 2, seqs: []int64{1, 3}, upTo: 3},
		{name: "of a type", want: event.Filter{Types: []event.Type{event.RunFailed}}, limit: 10, seqs: []int64{3}, upTo: 4},
		{name: "of two types", want: event.Filter{Types: []event.Type{event.RunFailed, event.RunStarted}}, limit: 10, seqs: []int64{1, 3, 4}, upTo: 4},
		{name: "of a workflow", want: event.Filter{WorkflowID: second.ID}, limit: 10, seqs: []int64{4}, upTo: 4},
		{name: "of a type and a workflow", want: event.Filter{WorkflowID: second.ID, Types: []event.Type{event.RunFailed}}, limit: 10, upTo: 4},
		{name: "after the last", after: 4, limit: 10, upTo: 4},
		{name: "after what never was", after: 9, limit: 10, upTo: 9},
	} {
		events, upTo, err := w.Events.EventsAfter(ctx, ws.ID, tc.want, tc.after, tc.limit)
		if err != nil || upTo != tc.upTo {
			t.Errorf("%s: up to %d, %v; want %d", tc.name, upTo, err, tc.upTo)
		}
		equal(t, tc.name, mapped(events, func(e event.Stored) int64 { return e.Seq }), tc.seqs)
	}
	events, _, err := w.Events.EventsAfter(ctx, ws.ID, event.Filter{}, 1, 1)
	equal(t, "error", err, nil)
	equal(t, "type", events[0].Type, event.RunFailed)
	equal(t, "body", string(events[0].Body), string(collect(t, w, `SELECT body FROM events WHERE seq = 3`, nil, func(r database.Row) (body []byte, err error) {
		err = r.Scan(&body)
		return body, err
	})[0]))

	w.exec(t, `DELETE FROM events WHERE seq < 3`)
	equal(t, "extent after a purge", must(w.Events.EventExtent(ctx, ws.ID, time.Time{}))(t), event.Extent{Oldest: 3, Newest: 4})
}

// testNotifications checks that followers are notified once a change can be read.
func testNotifications(t *testing.T, w *harness) {
	var (
		mu       sync.Mutex
		notified []string
	)
	tell := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		notified = append(notified, what)
	}
	took := func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { notified = nil }()
		return notified
	}
	own := &harness{notified: &recorder{}, open: w.open}
	own.DB = w.open(t, store.Notify{
		Changed:  func(runID string) { tell("changed " + runID) },
		Ended:    func(e run.Completion) { tell("ended " + e.RunID) },
		Recorded: func(workspaceID string) { tell("recorded " + workspaceID) },

		WorkspaceCreated: func() { tell("workspace created") },
	})
	own.rows = *driverOf(own.DB)
	ws := own.workspace(t)
	equal(t, "a workspace", took(), []string{"workspace created"})
	r := own.start(t, own.workflow(t, ws.ID), "node_1")
	equal(t, "start", took(), []string{"recorded " + ws.ID})
	step := newStep("one", 1, run.StepRunning)
	returns(own.Commit(t.Context(), firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}}))(t, "commit", true)
	equal(t, "a commit with steps", took(), []string{"changed " + r.ID})
	returns(own.Commit(t.Context(), firstLease(r), r, run.Decision{Rev: 2, Release: true, WakeAt: r.StartedAt.Add(time.Hour)}))(t, "release", true)
	equal(t, "a commit without", took(), nil)
	returns(own.Runs.CancelRun(t.Context(), newCancellation(t, r)))(t, "cancel", true)
	equal(t, "the end", took(), []string{"ended " + r.ID, "recorded " + ws.ID})
	returns(own.Runs.CancelRun(t.Context(), newCancellation(t, r)))(t, "cancel again", false)
	equal(t, "nothing", took(), nil)
}
