package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// testWaiting lists runs by whether they wait, and for what.
func testWaiting(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf, other := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	until := clock.Now().Add(time.Hour)
	commit := func(r run.Run, d run.Decision) {
		t.Helper()
		returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
	}
	asks := newStep("ask", 1, run.StepWaiting)
	asks.WakeAt, asks.Deadline, asks.Reason, asks.Awaits = new(clock.Now().Add(time.Minute)), &until, "waits for an answer", action.AwaitsAnswer

	executing, waits, ended := w.start(t, wf, "node_1"), w.start(t, wf, "node_1"), w.start(t, wf, "node_1")
	commit(executing, run.Decision{Steps: []run.Step{newStep("a", 1, run.StepRunning)}, Executing: []string{"a"}})
	commit(waits, run.Decision{Steps: []run.Step{asks}, Release: true, WakeAt: until, WaitingStep: "ask"})
	commit(ended, newFinish(t, ended, run.Succeeded))
	second := w.start(t, other, "node_1")
	heldBack := newStart(t, other, "node_1")
	heldBack.Concurrency, heldBack.Run.ConcurrencyKey = &workflow.ConcurrencyLimit{Limit: 1, OnLimit: workflow.Queue}, "=k"
	first := newStart(t, other, "node_1")
	first.Concurrency, first.Run.ConcurrencyKey = heldBack.Concurrency, heldBack.Run.ConcurrencyKey
	returns(w.Runs.StartRun(ctx, first))(t, "start", true)
	returns(w.Runs.StartRun(ctx, heldBack))(t, "start", true)
	w.notified.take()

	yes, no := new(true), new(false)
	for _, test := range []struct {
		name   string
		filter run.Filter
		want   []run.Run
	}{
		{"that wait", run.Filter{Waiting: yes, Status: run.Running}, []run.Run{heldBack.Run, waits}},
		{"that do not", run.Filter{Waiting: no}, []run.Run{first.Run, second, ended, executing}},
		{"that run and do not wait", run.Filter{Waiting: no, Status: run.Running}, []run.Run{first.Run, second, executing}},
		{"that have ended and do not wait", run.Filter{Waiting: no, Status: run.Succeeded}, []run.Run{ended}},
		{"of a workflow that wait", run.Filter{Waiting: yes, WorkflowID: wf.ID, Status: run.Running}, []run.Run{waits}},
		{"of a workflow that do not", run.Filter{Waiting: no, WorkflowID: wf.ID}, []run.Run{ended, executing}},
		{"in any state", run.Filter{}, []run.Run{heldBack.Run, first.Run, second, ended, waits, executing}},
		{
			"in the queue of a node", run.Filter{Waiting: yes, Status: run.Running, Queued: func(id string) bool { return id == executing.ID }},
			[]run.Run{heldBack.Run, waits, executing},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want []string
			for _, r := range byNewest(test.want) {
				want = append(want, r.ID)
			}
			w.checkListed(t, ws.ID, test.filter, want)
		})
	}

	what := w.waitingFor(t, ws.ID)
	equal(t, "what they wait for", what, map[string]*run.Waiting{
		waits.ID:        {Kind: run.ForAnswer, Reason: "waits for an answer", StepID: "ask", Until: &until},
		heldBack.Run.ID: {Kind: run.ForSlot, Reason: `queued: the concurrency limit of the workflow for key "k" is reached`},
	})
	equal(t, "as the run says", found(w.Runs.Run(ctx, ws.ID, waits.ID))(t).WaitingFor(), what[waits.ID])

	lease, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: waits.ID, Epoch: 1}, "node_2")
	returns(ok, err)(t, "activate", true)
	asks.Status, asks.FinishedAt, asks.WakeAt, asks.Deadline, asks.Reason, asks.Awaits = run.StepSucceeded, new(clock.Now()), nil, nil, "", ""
	returns(w.Commit(ctx, lease, waits, run.Decision{Steps: []run.Step{asks, newStep("b", 2, run.StepRunning)}, Executing: []string{"b"}}))(t, "go on", true)
	equal(t, "once it continues", w.waitingFor(t, ws.ID)[waits.ID], nil)
	w.notified.take()
}

// waitingFor returns what the runs of a workspace wait for, by id.
func (w *harness) waitingFor(t *testing.T, workspaceID string) map[string]*run.Waiting {
	t.Helper()
	out := map[string]*run.Waiting{}
	for _, item := range must(w.Runs.AllRuns(t.Context(), workspaceID, run.Filter{}, fullPage))(t).Items {
		if item.Waiting != nil {
			out[item.ID] = item.Waiting
		}
	}
	return out
}

// byNewest sorts runs as lists do.
func byNewest(runs []run.Run) []run.Run {
	return slices.SortedFunc(slices.Values(runs), func(a, b run.Run) int { return strings.Compare(b.ID, a.ID) })
}

// testStartedBy checks that the starter of a run is stored.
func testStartedBy(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	for name, by := range map[string]*run.Starter{
		"no starter": nil, "a key": {Type: "api_key", ID: "key_1", Name: "CI: Über"}, "a person without a name": {Type: "user", ID: "usr_1"},
	} {
		start := newStart(t, wf, "node_1")
		start.Run.StartedBy, start.Plan = by, auth.Pro
		returns(w.Runs.StartRun(ctx, start))(t, name, true)
		equal(t, name, found(w.Runs.Run(ctx, ws.ID, start.Run.ID))(t).StartedBy, by)
		equal(t, name+" in a list", must(w.Runs.AllRuns(ctx, ws.ID, run.Filter{}, paging.Request{Limit: 1}))(t).Items[0].StartedBy, by)
	}
	w.notified.take()
}
