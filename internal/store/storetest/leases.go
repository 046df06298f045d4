package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
)

func testActivate(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("of a waiting run", func(t *testing.T) {
		r := w.start(t, wf, "")
		lease, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_1")
		returns(ok, err)(t, "activate", true)
		equal(t, "lease", lease, run.Lease{RunID: r.ID, Epoch: 2})
		equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 2, Node: new("node_1")})
	})

	t.Run("by a stale wake-up", func(t *testing.T) {
		r := w.start(t, wf, "")
		_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_1")
		returns(ok, err)(t, "the first", true)
		for _, epoch := range []int64{0, 1, 3} {
			_, ok, err = w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: epoch}, "node_2")
			returns(ok, err)(t, "a stale one", false)
		}
		equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 2, Node: new("node_1")})
	})

	t.Run("takes a run away from its node", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		lease, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
		returns(ok, err)(t, "activate", true)
		returns(w.Commit(ctx, firstLease(r), r, newFinish(t, r, run.Succeeded)))(t, "commit of the old node", false)
		returns(w.Commit(ctx, lease, r, newFinish(t, r, run.Failed)))(t, "commit of the new node", true)
		equal(t, "status", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Status, run.Failed)
		equal(t, "endings", w.endings(t, r.ID), 1)
	})

	t.Run("may be repeated by the owner", func(t *testing.T) {
		r := w.start(t, wf, "")
		for range 2 {
			lease, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_1")
			returns(ok, err)(t, "activate", true)
			equal(t, "lease", lease, run.Lease{RunID: r.ID, Epoch: 2})
		}
		returns(w.Commit(ctx, run.Lease{RunID: r.ID, Epoch: 2}, r, run.Decision{Release: true, WakeAt: clock.Now()}))(t, "release", true)
		_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_1")
		returns(ok, err)(t, "activate what was given back", false)
	})

	t.Run("of an unknown run", func(t *testing.T) {
		_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: "run_none", Epoch: 1}, "node_1")
		returns(ok, err)(t, "activate", false)
	})

	t.Run("has one winner", func(t *testing.T) {
		for range 10 {
			r := w.start(t, wf, "")
			won := concurrently(t, 16, func(n int) (bool, error) {
				_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, fmt.Sprintf("node_%d", n))
				return ok, err
			})
			equal(t, "winners", won, 1)
			equal(t, "epoch", w.queue(t, r.ID).Epoch, int64(2))
		}
	})
	w.notified.take()
}

func testCommit(t *testing.T, w *harness) {
	t.Run("steps", func(t *testing.T) { testCommitSteps(t, w) })
	t.Run("attempts", func(t *testing.T) { testAttempts(t, w) })
	t.Run("release", func(t *testing.T) { testRelease(t, w) })
	t.Run("finish", func(t *testing.T) { testFinish(t, w) })
	t.Run("under a lost lease", func(t *testing.T) { testLostLease(t, w) })
	t.Run("is atomic", func(t *testing.T) { testCommitFails(t, w) })
}

func testCommitSteps(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	w.notified.take()
	// Steps are ordered by seq, not by path.
	second, first := newStep("a", 2, run.StepRunning), newStep("b[0].c", 1, run.StepRunning)
	decision := run.Decision{Steps: []run.Step{second, first}, Executing: []string{"a", "b[0].c"}}
	returns(w.Commit(ctx, firstLease(r), r, decision))(t, "start of two steps", true)
	want := run.Detail{Run: r, Steps: []run.Step{first, second}}
	equal(t, "run", found(w.Runs.Run(ctx, ws.ID, r.ID))(t), want)
	equal(t, "snapshot", found(w.Leases.Snapshot(ctx, r.ID))(t), run.Snapshot{Detail: want, WorkflowName: wf.Name, Plan: ws.Plan})
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1"), Executing: new("a\nb[0].c")})

	now := clock.Now()
	first.Status, first.FinishedAt, first.Output = run.StepSucceeded, &now, json.RawMessage(`{"out":[1,2]}`)
	second.Status, second.Attempt, second.FinishedAt, second.Reason = run.StepFailed, 3, &now, "gave up"
	second.Error = &run.Failure{Code: "timed_out", Message: "It took too long.", StepID: "a"}
	skipped := newStep("d", 3, run.StepSkipped)
	skipped.Input, skipped.Reason, skipped.Attempt = nil, "needs", 0
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{second, first, skipped}}))(t, "their results", true)
	equal(t, "steps", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Steps, []run.Step{first, second, skipped})
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1")})

	returns(w.Commit(ctx, firstLease(r), r, run.Decision{}))(t, "nothing", true)
	equal(t, "notifications", w.notified.take(), notifications{})
}

func testAttempts(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	for _, end := range []run.StepStatus{run.StepSucceeded, run.StepFailed, run.StepCancelled} {
		r := w.start(t, wf, "node_1")
		steps := []run.Step{newStep("b", 1, run.StepRunning), newStep("a", 2, run.StepRunning)}
		var want []run.Attempt
		for range 2 {
			// Both fail at the same time, wait, and are retried.
			failed := []run.Attempt{failedAttempt(steps[0]), failedAttempt(steps[1])}
			want = append(want, failed...)
			steps[0].Status, steps[1].Status = run.StepWaiting, run.StepWaiting
			decision := run.Decision{Steps: steps, Attempts: failed}
			returns(w.Commit(ctx, firstLease(r), r, decision))(t, "failed attempts", true)
			decision.Attempts = []run.Attempt{failed[0], failed[1]}
			decision.Attempts[0].Error.Message = "a commit that is repeated changes nothing"
			returns(w.Commit(ctx, firstLease(r), r, decision))(t, "the same attempts again", true)
			slices.SortFunc(want, func(x, y run.Attempt) int { return cmp.Or(cmp.Compare(x.Path, y.Path), x.Number-y.Number) })
			equal(t, "attempts while the next is waited for", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Attempts, want)
			if end == run.StepCancelled {
				break
			}
			for i := range steps {
				steps[i].Attempt, steps[i].Status, steps[i].AttemptAt = steps[i].Attempt+1, run.StepRunning, clock.Now()
			}
		}
		if end == run.StepCancelled {
			returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		} else {
			steps[0].Status, steps[1].Status = end, end
			returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: steps}))(t, "the end of the steps", true)
		}
		detail := found(w.Runs.Run(ctx, ws.ID, r.ID))(t)
		equal(t, "attempts of steps that are "+string(end), detail.Attempts, want)
		equal(t, "status", detail.Steps[0].Status, end)
	}
	w.notified.take()
}

func testRelease(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	executing := run.Decision{Executing: []string{"a"}, Steps: []run.Step{newStep("a", 1, run.StepRunning)}}
	returns(w.Commit(ctx, firstLease(r), r, executing))(t, "start", true)
	w.notified.take()

	at := clock.Now().Add(time.Hour)
	step := newStep("a", 1, run.StepWaiting)
	step.WakeAt = &at
	step.Error = &run.Failure{Code: "timed_out", Message: "It took too long.", StepID: "a[0].b"}
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{step}, Release: true, WakeAt: at}))(t, "release", true)
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &at})
	equal(t, "steps", found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Steps, []run.Step{step})
	wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: at, Plan: ws.Plan}
	equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}})
	due := must(w.Leases.Due(ctx, at, nil, noLimit))(t)
	equal(t, "due", due[len(due)-1], wake)

	lease, ok, err := w.Leases.Activate(ctx, wake, "node_2")
	returns(ok, err)(t, "activate", true)
	returns(w.Commit(ctx, firstLease(r), r, executing))(t, "commit under the lease that was given back", false)
	returns(w.Commit(ctx, lease, r, executing))(t, "commit under the new lease", true)
}

func testFinish(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	hook := w.webhook(t, ws.ID, nil)
	failure := &run.Failure{Code: "timed_out", Message: "It took too long.", StepID: "a"}
	for name, tc := range map[string]struct {
		status  run.Status
		failure *run.Failure
	}{
		"succeeded":                 {status: run.Succeeded},
		"failed in a step":          {status: run.Failed, failure: failure},
		"failed outside of a step":  {status: run.Failed, failure: &run.Failure{Code: run.CodeCorruptState, Message: "Unreadable."}},
		"failed without more words": {status: run.Failed},
	} {
		r := w.start(t, wf, "node_1")
		w.notified.take()
		decision := newFinish(t, r, tc.status)
		decision.Finish.Error = tc.failure
		decision.Steps = []run.Step{newStep("b", 2, run.StepSucceeded), newStep("a", 1, run.StepSucceeded)}
		decision.Rev = 1
		var whole *run.Detail
		w.notified.onEnd = func(e run.Completion) { whole = e.Detail }
		returns(w.Commit(ctx, firstLease(r), r, decision))(t, name, true)
		want := run.Detail{Run: r, Steps: []run.Step{decision.Steps[1], decision.Steps[0]}}
		want.Steps[0].Rev, want.Steps[1].Rev = 1, 1
		want.Status, want.FinishedAt, want.Error = tc.status, &decision.Finish.At, tc.failure
		equal(t, name, found(w.Runs.Run(ctx, ws.ID, r.ID))(t), want)
		equal(t, name+", as notified", found(whole, nil)(t), want)
		missing(w.queue(t, r.ID), nil)(t, "the row in the queue of a run that "+name)
		equal(t, "deliveries", w.deliveries(t, decision.Finish.Event.ID), []string{hook.ID})
		equal(t, "notifications", w.notified.take(), notifications{Ended: []endedRun{{ws.ID, r.ID, tc.status}}})

		for _, late := range []run.Decision{newFinish(t, r, run.Failed), {Steps: []run.Step{newStep("b", 2, run.StepRunning)}}} {
			returns(w.Commit(ctx, firstLease(r), r, late))(t, "a commit after the end", false)
		}
		equal(t, name+", afterwards", found(w.Runs.Run(ctx, ws.ID, r.ID))(t), want)
		equal(t, "endings", w.endings(t, r.ID), 1)
		equal(t, "notifications", w.notified.take(), notifications{})
	}
}

func testLostLease(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Steps: []run.Step{newStep("a", 1, run.StepRunning)}}))(t, "a step", true)
	_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
	returns(ok, err)(t, "take over", true)
	w.notified.take()
	before, queue := found(w.Runs.Run(ctx, ws.ID, r.ID))(t), w.queue(t, r.ID)

	overwrite := newStep("a", 1, run.StepSucceeded)
	steps := []run.Step{overwrite, newStep("b", 2, run.StepRunning)}
	attempts := []run.Attempt{failedAttempt(overwrite)}
	finish := newFinish(t, r, run.Succeeded)
	finish.Steps, finish.Attempts = steps, attempts
	for _, epoch := range []int64{0, 1, 3} {
		lease := run.Lease{RunID: r.ID, Epoch: epoch}
		returns(w.Commit(ctx, lease, r, run.Decision{Steps: steps, Attempts: attempts, Executing: []string{"b"}}))(t, "steps", false)
		returns(w.Commit(ctx, lease, r, run.Decision{Steps: steps, Attempts: attempts, Release: true, WakeAt: clock.Now()}))(t, "release", false)
		returns(w.Commit(ctx, lease, r, finish))(t, "finish", false)
	}
	equal(t, "run", found(w.Runs.Run(ctx, ws.ID, r.ID))(t), before)
	equal(t, "queue", w.queue(t, r.ID), queue)
	equal(t, "endings", w.endings(t, r.ID), 0)
	equal(t, "attempts", w.count(t, `SELECT count(*) FROM step_attempts WHERE run_id = $1`, r.ID), 0)
	equal(t, "deliveries", w.count(t, `SELECT count(*) FROM deliveries WHERE event_id = $1`, finish.Finish.Event.ID), 0)
	equal(t, "notifications", w.notified.take(), notifications{})
}

func testCommitFails(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	start := newStart(t, w.workflow(t, ws.ID), "node_1")
	r := start.Run
	returns(w.Runs.StartRun(ctx, start))(t, "start", true)
	w.notified.take()
	finish := newFinish(t, r, run.Succeeded)
	finish.Steps = []run.Step{newStep("a", 1, run.StepSucceeded)}
	finish.Finish.Event.ID = start.Event.ID
	fails(w.Commit(ctx, firstLease(r), r, finish))(t, "an event id that exists")
	equal(t, "run", found(w.Runs.Run(ctx, ws.ID, r.ID))(t), run.Detail{Run: r})
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1")})
	equal(t, "notifications", w.notified.take(), notifications{})
	finish.Finish.Event = newEvent(t, event.RunSucceeded, subjectOf(r))
	returns(w.Commit(ctx, firstLease(r), r, finish))(t, "the same with an event of its own", true)
}
