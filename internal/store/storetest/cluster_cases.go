package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

func testSlots(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	a, b := tm.start(t, wf, "node_1"), tm.start(t, wf, "")
	equal(t, "owner of a", *tm.queue(t, a.ID).Node, "node_1")
	equal(t, "owner of b", tm.queue(t, b.ID).Node, nil)
	equal(t, "jobs", mapped(tm.jobs(t), func(j job) string { return j.wake.RunID }), []string{b.ID})
	tm.checkLoad(t, ws.ID, 2, 0)

	c := tm.start(t, wf, "node_1")
	tm.checkLoad(t, ws.ID, 2, 1)
	equal(t, "queued", found(tm.Runs.Run(ctx, ws.ID, c.ID))(t).Queued, true)
	equal(t, "freed before", first.takeFreed(), nil)
	tm.finish(t, a, run.Succeeded)
	tm.checkLoad(t, ws.ID, 1, 1)
	equal(t, "freed", first.takeFreed(), []string{ws.ID})

	first.notified.take()
	returns(first.AdmitThrottled(ctx, ws.ID))(t, "admit", false)
	tm.checkLoad(t, ws.ID, 2, 0)
	woken := first.notified.take().Wakes
	equal(t, "woken", mapped(woken, func(w run.Wake) run.Lease { return run.Lease{RunID: w.RunID, Epoch: w.Epoch} }), []run.Lease{{RunID: c.ID, Epoch: 2}})
	equal(t, "owned", woken[0].Owned, true)

	t.Run("without capacity on this node a job is enqueued", func(t *testing.T) {
		d := tm.start(t, wf, "node_1")
		tm.nodes[1].hasCapacity.Store(false)
		returns(tm.Commit(ctx, run.Lease{RunID: c.ID, Epoch: 2}, c, newFinish(t, c, run.Succeeded)))(t, "finish", true)
		returns(tm.nodes[1].AdmitThrottled(ctx, ws.ID))(t, "admit", false)
		jobs := tm.jobs(t)
		equal(t, "job", jobs[len(jobs)-1].wake.RunID, d.ID)
		tm.checkLoad(t, ws.ID, 2, 0)
		returns(tm.Runs.CancelRun(ctx, newCancellation(t, d)))(t, "cancel a run with a job", true)
		tm.checkLoad(t, ws.ID, 1, 0)
	})
	t.Run("queue limit", func(t *testing.T) { testQueueFull(t, tm) })
}

func testQueueFull(t *testing.T, tm *cluster) {
	ws := tm.workspace(t)
	wf := tm.workflow(t, ws.ID)
	start := newStart(t, wf, "node_1")
	most := start.Plan.Limits().QueuedRuns
	tm.exec(t, `INSERT INTO workspace_load (workspace_id, running, throttled) VALUES ($1, 2, $2)`, ws.ID, most-1)
	returns(tm.Runs.StartRun(t.Context(), start))(t, "the last run that fits", true)
	rejected := newStart(t, wf, "node_1")
	if _, err := tm.Runs.StartRun(t.Context(), rejected); !errors.Is(err, run.ErrQueueFull) {
		t.Errorf("one more: %v", err)
	}
	missing(tm.Runs.Run(t.Context(), ws.ID, rejected.Run.ID))(t, "the rejected run")
	_, throttled := tm.load(t, ws.ID)
	equal(t, "throttled", throttled, most)
}

func testClaims(t *testing.T, tm *cluster) {
	ctx, ws := t.Context(), tm.workspace(t)
	wf, second := tm.workflow(t, ws.ID), tm.nodes[1]
	claim := func(m *clusterNode, j job, want run.Claimed) run.Wake {
		t.Helper()
		wake, got, err := m.claim(ctx, j)
		if err != nil || got != want {
			t.Errorf("claim: %v, %v; want %v", got, err, want)
		}
		return wake
	}
	tm.start(t, wf, "")
	j := tm.jobs(t)[0]
	wake := claim(second, j, run.ClaimOwned)
	equal(t, "epoch", wake.Epoch, int64(2))
	equal(t, "jobs left", len(tm.jobs(t)), 0)
	claim(tm.nodes[2], j, run.ClaimStale)
	tm.checkLoad(t, ws.ID, 1, 0)

	t.Run("a run that is not due gets a local timer", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		tm.nodes[0].release(t, r, 1, later())
		tm.checkLoad(t, ws.ID, 1, 0)
		waits := tm.jobs(t)[0]
		armed := claim(second, waits, run.ClaimLocalTimer)
		equal(t, "owner of the timer", *tm.queue(t, r.ID).Node, "node_2")
		tm.checkLoad(t, ws.ID, 1, 0)
		claim(tm.nodes[2], waits, run.ClaimStale)
		tm.exec(t, `UPDATE run_queue SET wake_at = 1 WHERE run_id = $1`, r.ID)
		claim(second, job{wake: armed}, run.ClaimOwned)
		tm.checkLoad(t, ws.ID, 2, 0)
		claim(second, job{wake: armed}, run.ClaimStale)
	})
	t.Run("without a slot the run is throttled", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		tm.checkLoad(t, ws.ID, 2, 1)
		waits := run.Wake{RunID: r.ID, Epoch: 1}
		claim(second, job{wake: waits}, run.ClaimStale)
		tm.exec(t, `UPDATE run_queue SET throttled = false WHERE run_id = $1`, r.ID)
		tm.exec(t, `UPDATE workspace_load SET throttled = 0 WHERE workspace_id = $1`, ws.ID)
		claim(second, job{wake: waits}, run.ClaimThrottled)
		tm.checkLoad(t, ws.ID, 2, 1)
	})
	t.Run("an error of the callback rolls the claim back", func(t *testing.T) {
		tm.start(t, tm.workflow(t, tm.workspace(t).ID), "")
		jobs := tm.jobs(t)
		left := jobs[len(jobs)-1]
		broken := errors.New("broken")
		_, _, err := second.Claim(ctx, left.wake, func(context.Context, database.Conn) error { return broken })
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		claim(second, left, run.ClaimOwned)
	})
}

// testRetriedWrites repeats writes, as callers do if they do not know whether the
// first attempt was committed.
func testRetriedWrites(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	tm.start(t, wf, "node_1")
	for name, at := range map[string]time.Time{"for a long time": later(), "briefly": soon()} {
		t.Run("released "+name, func(t *testing.T) {
			r := tm.start(t, wf, "node_1")
			first.release(t, r, 1, at)
			tm.checkLoad(t, ws.ID, 1, 0)
			returns(first.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Release: true, WakeAt: at}))(t, "again", false)
			tm.checkLoad(t, ws.ID, 1, 0)
			returns(tm.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
			tm.checkLoad(t, ws.ID, 1, 0)
		})
	}
	t.Run("released when due, and throttled", func(t *testing.T) {
		r, other := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
		tm.checkLoad(t, ws.ID, 2, 1)
		tm.limit.Store(1)
		first.release(t, r, 1, clock.Now())
		tm.checkLoad(t, ws.ID, 1, 2)
		returns(first.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Release: true, WakeAt: clock.Now()}))(t, "again", false)
		tm.checkLoad(t, ws.ID, 1, 2)
		tm.limit.Store(2)
		for _, r := range []run.Run{r, other} {
			returns(tm.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		}
		tm.checkLoad(t, ws.ID, 1, 0)
	})
	t.Run("ended", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		end := newFinish(t, r, run.Succeeded)
		returns(first.Commit(ctx, firstLease(r), r, end))(t, "finish", true)
		returns(first.Commit(ctx, firstLease(r), r, end))(t, "again", false)
		tm.checkLoad(t, ws.ID, 1, 0)
		equal(t, "events", tm.endings(t, r.ID), 1)
	})
	t.Run("activated", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		wake := run.Wake{RunID: r.ID, Epoch: 1}
		for range 2 { // the second call repeats one whose response was lost
			lease, ok, err := first.Leases.Activate(ctx, wake, "node_1")
			if err != nil || !ok || lease.Epoch != 2 {
				t.Errorf("activate: %v, %t, %v", lease, ok, err)
			}
		}
		if _, ok, err := tm.nodes[1].Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 2}, "node_2"); err != nil || ok {
			t.Errorf("another node activated it: %t, %v", ok, err)
		}
		first.release(t, r, 2, soon())
		if _, ok, err := first.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 2}, "node_1"); err != nil || ok {
			t.Errorf("it was activated without a slot: %t, %v", ok, err)
		}
	})
}

func testSlotsOfDeletedWorkflow(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	kept, wf := tm.workflow(t, ws.ID), tm.workflow(t, ws.ID)
	tm.start(t, kept, "node_1")
	owned, waits, throttled := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
	tm.checkLoad(t, ws.ID, 2, 2)
	first.release(t, owned, 1, later())
	for range 2 {
		must(first.AdmitThrottled(ctx, ws.ID))(t)
	}
	tm.checkLoad(t, ws.ID, 2, 1)
	tm.deleteWorkflow(t, wf)
	tm.checkLoad(t, ws.ID, 1, 0)
	returns(first.Commit(ctx, run.Lease{RunID: waits.ID, Epoch: 2}, waits, newFinish(t, waits, run.Succeeded)))(t, "finish a deleted run", false)

	// Another node was quick and acquired a slot for one of them.
	tm.exec(t, `UPDATE run_queue SET slot = true, node = 'node_2' WHERE run_id = $1`, throttled.ID)
	tm.exec(t, `UPDATE workspace_load SET running = running + 1 WHERE workspace_id = $1`, ws.ID)
	for more := true; more; {
		more = must(first.Workflows.PurgeDeleted(ctx, 500))(t)
	}
	tm.checkLoad(t, ws.ID, 1, 0)
}

func testTakeOver(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	tm.limit.Store(10)
	wf := tm.workflow(t, ws.ID)
	busy, idle, timed := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
	returns(first.Commit(ctx, firstLease(busy), busy, run.Decision{Rev: 1, Executing: []string{"a"}}))(t, "execute", true)
	at := soon()
	first.release(t, timed, 1, at)
	tm.checkLoad(t, ws.ID, 2, 0)
	count, more, err := tm.nodes[1].TakeOver(ctx, "node_1", true)
	if err != nil || count != 0 || more {
		t.Fatal("taken from a live node: ", count, more, err)
	}
	tm.setDead(t, "node_1", true)
	count, more, err = tm.nodes[1].TakeOver(ctx, "node_1", true)
	if err != nil || count != 3 || more {
		t.Fatal(count, more, err)
	}
	jobs := map[string]run.Wake{}
	for _, j := range tm.jobs(t) {
		jobs[j.wake.RunID] = j.wake
	}
	equal(t, "crashes", [3]int{jobs[busy.ID].Crashes, jobs[idle.ID].Crashes, jobs[timed.ID].Crashes}, [3]int{1, 0, 0})
	equal(t, "wake-up time", jobs[timed.ID].At, at)
	equal(t, "epoch", jobs[busy.ID].Epoch, int64(2))
	tm.checkLoad(t, ws.ID, 2, 0)
	for _, r := range []run.Run{busy, idle, timed} {
		returns(first.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2}))(t, "a write by the old owner", false)
	}
	count, _, err = tm.nodes[1].TakeOver(ctx, "node_1", true)
	equal(t, "taken again", count, 0)
	if err != nil {
		t.Error(err)
	}
	t.Run("in batches", func(t *testing.T) {
		tm.limit.Store(1000)
		runs := tm.startMany(t, wf, 250)
		total := 0
		for more := true; more; {
			var n int
			if n, more, err = tm.nodes[0].TakeOver(ctx, "node_1", false); err != nil {
				t.Fatal(err)
			}
			total += n
		}
		equal(t, "taken", total, len(runs))
	})
}

func testRequeue(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	tm.limit.Store(10)
	wf := tm.workflow(t, ws.ID)
	idle, timed, since, elsewhere := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_2")
	at := soon()
	first.release(t, timed, 1, at)
	if _, ok, err := first.Leases.Activate(ctx, run.Wake{RunID: since.ID, Epoch: 1}, "node_1"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	var all []run.Wake
	for _, r := range []run.Run{idle, timed, since, elsewhere} {
		all = append(all, run.Wake{RunID: r.ID, Epoch: 1})
	}
	for range 2 { // the second call has nothing left to do
		if err := first.Requeue(ctx, all); err != nil {
			t.Fatal(err)
		}
	}
	tm.checkLoad(t, ws.ID, 3, 0)
	jobs := map[string]run.Wake{}
	for _, j := range tm.jobs(t) {
		jobs[j.wake.RunID] = j.wake
	}
	equal(t, "jobs", len(jobs), 2)
	equal(t, "wake-up time", jobs[timed.ID].At, at)
	equal(t, "epochs", [2]int64{jobs[idle.ID].Epoch, jobs[timed.ID].Epoch}, [2]int64{2, 2})
	returns(first.Commit(ctx, firstLease(idle), idle, run.Decision{Rev: 2}))(t, "a write by the old owner", false)
	for _, j := range tm.jobs(t) {
		want := run.ClaimOwned
		if j.wake.RunID == timed.ID {
			want = run.ClaimLocalTimer
		}
		if w, outcome, err := tm.nodes[1].claim(ctx, j); err != nil || outcome != want {
			t.Errorf("%+v was claimed as %v, want %v (%v)", w, outcome, want, err)
		}
	}
	tm.checkLoad(t, ws.ID, 3, 0)
}

func testOwnedRuns(t *testing.T, tm *cluster) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	tm.limit.Store(10)
	wf := tm.workflow(t, ws.ID)
	executing, timed, waits := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
	first.release(t, timed, 1, soon())
	first.release(t, waits, 1, later())
	deleted := tm.workflow(t, ws.ID)
	tm.start(t, deleted, "node_1")
	tm.deleteWorkflow(t, deleted)
	owned := map[string]run.OwnedRun{}
	for _, h := range must(first.OwnedRuns(ctx, "node_1"))(t) {
		owned[h.RunID] = h
	}
	equal(t, "owned", len(owned), 2)
	equal(t, "the executing run", [2]bool{owned[executing.ID].AnswerArrived, owned[executing.ID].LocalTimer}, [2]bool{})
	equal(t, "the run with a timer", owned[timed.ID].LocalTimer, true)

	t.Run("an answer for a run with a timer", func(t *testing.T) {
		step := waitingStep("a", 1, "answer")
		r := tm.start(t, wf, "node_1")
		decision := run.Decision{Rev: 1, Steps: []run.Step{step}, Release: true, WakeAt: soon()}
		returns(first.Commit(ctx, firstLease(r), r, decision))(t, "ask", true)
		first.notified.take()
		returns(tm.nodes[1].Runs.AnswerStep(ctx, newAnswer(r, "a", `1`)))(t, "answer", true)
		equal(t, "notified", tm.nodes[1].notified.take().AnswersArrived, []string{r.ID})
		wake, outcome, err := first.claim(ctx, job{wake: run.Wake{RunID: r.ID, Epoch: 1}})
		if err != nil || outcome != run.ClaimOwned || wake.Epoch != 2 {
			t.Error(wake, outcome, err)
		}
	})
}

func testWebhookOwners(t *testing.T, tm *cluster) {
	ctx, ws, first, second := t.Context(), tm.workspace(t), tm.nodes[0], tm.nodes[1]
	wf := tm.workflow(t, ws.ID)
	hook := tm.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunStarted} })
	other := tm.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunSucceeded} })
	tm.start(t, wf, "node_1")
	due := func(m *clusterNode) []string {
		t.Helper()
		return mapped(must(m.Webhooks.OutboxOf(m.node).DueDeliveries(ctx, clock.Now(), nil, 10))(t), func(d webhook.Due) string { return d.WebhookID })
	}
	equal(t, "due for the first", due(first), []string{hook.ID})
	equal(t, "due for the second", due(second), nil)
	equal(t, "again for the first", due(first), []string{hook.ID})
	if err := first.Webhooks.OutboxOf(first.node).ReturnWebhooks(ctx); err != nil {
		t.Fatal(err)
	}
	equal(t, "due for the second", due(second), nil)

	tm.exec(t, `UPDATE deliveries SET status = 'delivered', next_at = NULL`)
	if err := first.Webhooks.OutboxOf(first.node).ReturnWebhooks(ctx); err != nil {
		t.Fatal(err)
	}
	tm.endRun(t, wf)
	equal(t, "the other webhook", due(second), []string{other.ID})
	tm.start(t, wf, "node_1")
	equal(t, "the first webhook again", due(second), []string{other.ID, hook.ID})
	equal(t, "all are owned", due(first), nil)
}

// endRun starts a run and finishes it.
func (tm *cluster) endRun(t *testing.T, of workflow.Workflow) {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Event = newEvent(t, event.RunCancelled, subjectOf(start.Run)) // no webhook subscribes to that
	returns(tm.Runs.StartRun(t.Context(), start))(t, "start", true)
	tm.finish(t, start.Run, run.Succeeded)
}
