package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

func testSlots(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	a, b := tm.start(t, wf, "node_1"), tm.start(t, wf, "")
	same(t, "who has a", *tm.queue(t, a.ID).Node, "node_1")
	same(t, "who has b", tm.queue(t, b.ID).Node, nil)
	same(t, "on their way", mapped(tm.handed(t), func(j job) string { return j.wake.RunID }), []string{b.ID})
	tm.loaded(t, ws.ID, 2, 0)

	c := tm.start(t, wf, "node_1")
	tm.loaded(t, ws.ID, 2, 1)
	same(t, "queued", found(tm.Run(ctx, ws.ID, c.ID))(t).Queued, true)
	same(t, "freed before", first.takeFreed(), nil)
	tm.finish(t, a, run.Succeeded)
	tm.loaded(t, ws.ID, 1, 1)
	same(t, "freed", first.takeFreed(), []string{ws.ID})

	first.told.take()
	answers(first.PassOn(ctx, ws.ID))(t, "pass on", false)
	tm.loaded(t, ws.ID, 2, 0)
	woken := first.told.take().Wakes
	same(t, "woken", mapped(woken, func(w run.Wake) run.Lease { return run.Lease{RunID: w.RunID, Epoch: w.Epoch} }), []run.Lease{{RunID: c.ID, Epoch: 2}})
	same(t, "owned", woken[0].Owned, true)

	t.Run("without room here they go on their way", func(t *testing.T) {
		d := tm.start(t, wf, "node_1")
		tm.nodes[1].room.Store(false)
		answers(tm.Commit(ctx, run.Lease{RunID: c.ID, Epoch: 2}, c, newFinish(t, c, run.Succeeded)))(t, "finish", true)
		answers(tm.nodes[1].PassOn(ctx, ws.ID))(t, "pass on", false)
		jobs := tm.handed(t)
		same(t, "on its way", jobs[len(jobs)-1].wake.RunID, d.ID)
		tm.loaded(t, ws.ID, 2, 0)
		answers(tm.CancelRun(ctx, newCancellation(t, d)))(t, "cancel what is on its way", true)
		tm.loaded(t, ws.ID, 1, 0)
	})
	t.Run("no more than may be queued", func(t *testing.T) { testQueueFull(t, tm) })
}

func testQueueFull(t *testing.T, tm *team) {
	ws := tm.workspace(t)
	wf := tm.workflow(t, ws.ID)
	start := newStart(t, wf, "node_1")
	most := start.Plan.Limits().QueuedRuns
	tm.exec(t, `INSERT INTO workspace_load (workspace_id, running, parked) VALUES ($1, 2, $2)`, ws.ID, most-1)
	answers(tm.StartRun(t.Context(), start))(t, "the last that is queued", true)
	refused := newStart(t, wf, "node_1")
	if _, err := tm.StartRun(t.Context(), refused); !errors.Is(err, run.ErrQueueFull) {
		t.Errorf("one more: %v", err)
	}
	gone(tm.Run(t.Context(), ws.ID, refused.Run.ID))(t, "the refused run")
	_, parked := tm.load(t, ws.ID)
	same(t, "parked", parked, most)
}

func testClaims(t *testing.T, tm *team) {
	ctx, ws := t.Context(), tm.workspace(t)
	wf, second := tm.workflow(t, ws.ID), tm.nodes[1]
	claim := func(m *member, j job, want run.Claimed) run.Wake {
		t.Helper()
		wake, got, err := m.claim(ctx, j)
		if err != nil || got != want {
			t.Errorf("claim: %v, %v; want %v", got, err, want)
		}
		return wake
	}
	tm.start(t, wf, "")
	j := tm.handed(t)[0]
	wake := claim(second, j, run.ClaimOwned)
	same(t, "epoch", wake.Epoch, int64(2))
	same(t, "left on the way", len(tm.handed(t)), 0)
	claim(tm.nodes[2], j, run.ClaimStale)
	tm.loaded(t, ws.ID, 1, 0)

	t.Run("one that is not due is watched", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		tm.nodes[0].release(t, r, 1, later())
		tm.loaded(t, ws.ID, 1, 0)
		waits := tm.handed(t)[0]
		armed := claim(second, waits, run.ClaimArmed)
		same(t, "who watches", *tm.queue(t, r.ID).Node, "node_2")
		tm.loaded(t, ws.ID, 1, 0)
		claim(tm.nodes[2], waits, run.ClaimStale)
		tm.exec(t, `UPDATE run_queue SET wake_at = 1 WHERE run_id = $1`, r.ID)
		claim(second, job{wake: armed}, run.ClaimOwned)
		tm.loaded(t, ws.ID, 2, 0)
		claim(second, job{wake: armed}, run.ClaimStale)
	})
	t.Run("without a slot it is parked", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		tm.loaded(t, ws.ID, 2, 1)
		waits := run.Wake{RunID: r.ID, Epoch: 1}
		claim(second, job{wake: waits}, run.ClaimStale)
		tm.exec(t, `UPDATE run_queue SET parked = false WHERE run_id = $1`, r.ID)
		tm.exec(t, `UPDATE workspace_load SET parked = 0 WHERE workspace_id = $1`, ws.ID)
		claim(second, job{wake: waits}, run.ClaimParked)
		tm.loaded(t, ws.ID, 2, 1)
	})
	t.Run("what belongs to it fails with it", func(t *testing.T) {
		tm.start(t, tm.workflow(t, tm.workspace(t).ID), "")
		jobs := tm.handed(t)
		left := jobs[len(jobs)-1]
		broken := errors.New("broken")
		_, _, err := second.Claim(ctx, left.wake, func(context.Context, store.Conn) error { return broken })
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		claim(second, left, run.ClaimOwned)
	})
}

// testRepeated lets writes come twice, as they do when nobody knows whether the
// first one was committed.
func testRepeated(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	wf := tm.workflow(t, ws.ID)
	tm.start(t, wf, "node_1")
	for name, at := range map[string]time.Time{"for long": later(), "for a moment": soon()} {
		t.Run("given back "+name, func(t *testing.T) {
			r := tm.start(t, wf, "node_1")
			first.release(t, r, 1, at)
			tm.loaded(t, ws.ID, 1, 0)
			answers(first.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Release: true, WakeAt: at}))(t, "once more", false)
			tm.loaded(t, ws.ID, 1, 0)
			answers(tm.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
			tm.loaded(t, ws.ID, 1, 0)
		})
	}
	t.Run("given back when due, and parked", func(t *testing.T) {
		r, other := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
		tm.loaded(t, ws.ID, 2, 1)
		tm.limit.Store(1)
		first.release(t, r, 1, clock.Now())
		tm.loaded(t, ws.ID, 1, 2)
		answers(first.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Release: true, WakeAt: clock.Now()}))(t, "once more", false)
		tm.loaded(t, ws.ID, 1, 2)
		tm.limit.Store(2)
		for _, gone := range []run.Run{r, other} {
			answers(tm.CancelRun(ctx, newCancellation(t, gone)))(t, "cancel", true)
		}
		tm.loaded(t, ws.ID, 1, 0)
	})
	t.Run("ended", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		end := newFinish(t, r, run.Succeeded)
		answers(first.Commit(ctx, firstLease(r), r, end))(t, "finish", true)
		answers(first.Commit(ctx, firstLease(r), r, end))(t, "once more", false)
		tm.loaded(t, ws.ID, 1, 0)
		same(t, "events", tm.endings(t, r.ID), 1)
	})
	t.Run("taken up", func(t *testing.T) {
		r := tm.start(t, wf, "node_1")
		wake := run.Wake{RunID: r.ID, Epoch: 1}
		for range 2 { // the second time it is not known that it worked
			lease, ok, err := first.Activate(ctx, wake, "node_1")
			if err != nil || !ok || lease.Epoch != 2 {
				t.Errorf("activate: %v, %t, %v", lease, ok, err)
			}
		}
		if _, ok, err := tm.nodes[1].Activate(ctx, run.Wake{RunID: r.ID, Epoch: 2}, "node_2"); err != nil || ok {
			t.Errorf("another node took it up: %t, %v", ok, err)
		}
		first.release(t, r, 2, soon())
		if _, ok, err := first.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 2}, "node_1"); err != nil || ok {
			t.Errorf("it was taken up without a slot: %t, %v", ok, err)
		}
	})
}

func testSlotsOfDeleted(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	kept, wf := tm.workflow(t, ws.ID), tm.workflow(t, ws.ID)
	tm.start(t, kept, "node_1")
	owned, waits, parked := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
	tm.loaded(t, ws.ID, 2, 2)
	first.release(t, owned, 1, later())
	for range 2 {
		must(first.PassOn(ctx, ws.ID))(t)
	}
	tm.loaded(t, ws.ID, 2, 1)
	tm.deleteWorkflow(t, wf)
	tm.loaded(t, ws.ID, 1, 0)
	answers(first.Commit(ctx, run.Lease{RunID: waits.ID, Epoch: 2}, waits, newFinish(t, waits, run.Succeeded)))(t, "finish a deleted run", false)

	// Somebody was quick: it took a slot for one of them all the same.
	tm.exec(t, `UPDATE run_queue SET slot = true, node = 'node_2' WHERE run_id = $1`, parked.ID)
	tm.exec(t, `UPDATE workspace_load SET running = running + 1 WHERE workspace_id = $1`, ws.ID)
	for more := true; more; {
		more = must(first.PurgeDeleted(ctx, 500))(t)
	}
	tm.loaded(t, ws.ID, 1, 0)
}

func testTakeFrom(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	tm.limit.Store(10)
	wf := tm.workflow(t, ws.ID)
	busy, idle, watched := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
	answers(first.Commit(ctx, firstLease(busy), busy, run.Decision{Rev: 1, Executing: []string{"a"}}))(t, "execute", true)
	at := soon()
	first.release(t, watched, 1, at)
	tm.loaded(t, ws.ID, 2, 0)
	count, more, err := tm.nodes[1].TakeFrom(ctx, "node_1", true)
	if err != nil || count != 0 || more {
		t.Fatal("taken from the living: ", count, more, err)
	}
	tm.dead(t, "node_1", true)
	count, more, err = tm.nodes[1].TakeFrom(ctx, "node_1", true)
	if err != nil || count != 3 || more {
		t.Fatal(count, more, err)
	}
	jobs := map[string]run.Wake{}
	for _, j := range tm.handed(t) {
		jobs[j.wake.RunID] = j.wake
	}
	same(t, "crashes", [3]int{jobs[busy.ID].Crashes, jobs[idle.ID].Crashes, jobs[watched.ID].Crashes}, [3]int{1, 0, 0})
	same(t, "when it was watched for", jobs[watched.ID].At, at)
	same(t, "epoch", jobs[busy.ID].Epoch, int64(2))
	tm.loaded(t, ws.ID, 2, 0)
	for _, r := range []run.Run{busy, idle, watched} {
		answers(first.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2}))(t, "a late write", false)
	}
	count, _, err = tm.nodes[1].TakeFrom(ctx, "node_1", true)
	same(t, "taken once more", count, 0)
	if err != nil {
		t.Error(err)
	}
	t.Run("in parts", func(t *testing.T) {
		tm.limit.Store(1000)
		runs := tm.startMany(t, wf, 250)
		total := 0
		for more := true; more; {
			var n int
			if n, more, err = tm.TakeFrom(ctx, "node_1", false); err != nil {
				t.Fatal(err)
			}
			total += n
		}
		same(t, "taken", total, len(runs))
	})
}

func testGiveBack(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	tm.limit.Store(10)
	wf := tm.workflow(t, ws.ID)
	idle, watched, since, elsewhere := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_2")
	at := soon()
	first.release(t, watched, 1, at)
	if _, ok, err := first.Activate(ctx, run.Wake{RunID: since.ID, Epoch: 1}, "node_1"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	var all []run.Wake
	for _, r := range []run.Run{idle, watched, since, elsewhere} {
		all = append(all, run.Wake{RunID: r.ID, Epoch: 1})
	}
	for range 2 { // the second time there is nothing more
		if err := first.GiveBack(ctx, all); err != nil {
			t.Fatal(err)
		}
	}
	tm.loaded(t, ws.ID, 3, 0)
	jobs := map[string]run.Wake{}
	for _, j := range tm.handed(t) {
		jobs[j.wake.RunID] = j.wake
	}
	same(t, "handed over", len(jobs), 2)
	same(t, "when it was watched for", jobs[watched.ID].At, at)
	same(t, "epochs", [2]int64{jobs[idle.ID].Epoch, jobs[watched.ID].Epoch}, [2]int64{2, 2})
	answers(first.Commit(ctx, firstLease(idle), idle, run.Decision{Rev: 2}))(t, "a late write", false)
	for _, j := range tm.handed(t) {
		want := run.ClaimOwned
		if j.wake.RunID == watched.ID {
			want = run.ClaimArmed
		}
		if w, outcome, err := tm.nodes[1].claim(ctx, j); err != nil || outcome != want {
			t.Errorf("%+v was taken up as %v, want %v (%v)", w, outcome, want, err)
		}
	}
	tm.loaded(t, ws.ID, 3, 0)
}

func testHeld(t *testing.T, tm *team) {
	ctx, ws, first := t.Context(), tm.workspace(t), tm.nodes[0]
	tm.limit.Store(10)
	wf := tm.workflow(t, ws.ID)
	works, watched, waits := tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1"), tm.start(t, wf, "node_1")
	first.release(t, watched, 1, soon())
	first.release(t, waits, 1, later())
	gone := tm.workflow(t, ws.ID)
	tm.start(t, gone, "node_1")
	tm.deleteWorkflow(t, gone)
	held := map[string]run.Held{}
	for _, h := range must(first.Held(ctx, "node_1"))(t) {
		held[h.RunID] = h
	}
	same(t, "held", len(held), 2)
	same(t, "the one that is worked on", [2]bool{held[works.ID].News, held[works.ID].Armed}, [2]bool{})
	same(t, "the one that is watched", held[watched.ID].Armed, true)

	t.Run("an answer for one that is watched", func(t *testing.T) {
		step := waitingStep("a", 1, "answer")
		r := tm.start(t, wf, "node_1")
		decision := run.Decision{Rev: 1, Steps: []run.Step{step}, Release: true, WakeAt: soon()}
		answers(first.Commit(ctx, firstLease(r), r, decision))(t, "ask", true)
		first.told.take()
		answers(tm.nodes[1].AnswerStep(ctx, newAnswer(r, "a", `1`)))(t, "answer", true)
		same(t, "who is told", tm.nodes[1].told.take().Stirred, []string{r.ID})
		wake, outcome, err := first.claim(ctx, job{wake: run.Wake{RunID: r.ID, Epoch: 1}})
		if err != nil || outcome != run.ClaimOwned || wake.Epoch != 2 {
			t.Error(wake, outcome, err)
		}
	})
}

func testCouriers(t *testing.T, tm *team) {
	ctx, ws, first, second := t.Context(), tm.workspace(t), tm.nodes[0], tm.nodes[1]
	wf := tm.workflow(t, ws.ID)
	hook := tm.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunStarted} })
	other := tm.webhook(t, ws.ID, func(w *webhook.Webhook) { w.Events = []event.Type{event.RunSucceeded} })
	tm.start(t, wf, "node_1")
	due := func(m *member) []string {
		t.Helper()
		return mapped(must(m.DueDeliveries(ctx, clock.Now(), nil, 10))(t), func(d webhook.Due) string { return d.WebhookID })
	}
	same(t, "due for the first", due(first), []string{hook.ID})
	same(t, "due for the second", due(second), nil)
	same(t, "once more for the first", due(first), []string{hook.ID})
	if err := first.ReturnWebhooks(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "due for the second", due(second), nil)

	tm.exec(t, `UPDATE deliveries SET status = 'delivered', next_at = NULL`)
	if err := first.ReturnWebhooks(ctx); err != nil {
		t.Fatal(err)
	}
	tm.endRun(t, wf)
	same(t, "the other webhook", due(second), []string{other.ID})
	tm.start(t, wf, "node_1")
	same(t, "the first webhook again", due(second), []string{other.ID, hook.ID})
	same(t, "all are taken", due(first), nil)
}

// endRun starts a run and ends it.
func (tm *team) endRun(t *testing.T, of workflow.Workflow) {
	t.Helper()
	start := newStart(t, of, "node_1")
	start.Event = newEvent(t, event.RunCancelled, subjectOf(start.Run)) // nobody wants that
	answers(tm.StartRun(t.Context(), start))(t, "start", true)
	tm.finish(t, start.Run, run.Succeeded)
}
