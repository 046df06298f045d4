package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/webhook"
)

func testBacklog(t *testing.T, w *harness) {
	ctx := t.Context()
	ws, wf := w.workspace(t), w.workflow(t, w.workspace(t).ID)
	now := clock.Now()
	backlog := func(t *testing.T, at time.Time) store.Backlog {
		t.Helper()
		return must(w.Runs.Backlog(ctx, at))(t)
	}
	equal(t, "when there is nothing", backlog(t, now), store.Backlog{})

	t.Run("runs", func(t *testing.T) {
		release := func(node string, at time.Time) run.Run {
			r := w.start(t, wf, node)
			returns(w.Commit(ctx, firstLease(r), r, run.Decision{Release: true, WakeAt: at}))(t, "release", true)
			return r
		}
		w.start(t, wf, "node_1") // has an owner
		release("node_1", now.Add(time.Hour))
		equal(t, "when none is due", backlog(t, now), store.Backlog{})
		late, later := now.Add(-time.Hour), now.Add(-time.Minute)
		release("node_1", later)
		first := release("node_2", late)
		equal(t, "when two are due", backlog(t, now).Ready, &late)
		equal(t, "in time", backlog(t, late.Add(-time.Microsecond)).Ready, nil)
		_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: first.ID, Epoch: 1}, "node_3")
		returns(ok, err)(t, "activate", true)
		equal(t, "when the first is activated", backlog(t, now).Ready, &later)
		deleted := w.workflow(t, ws.ID)
		r := w.start(t, deleted, "node_1")
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Release: true, WakeAt: late}))(t, "release", true)
		w.deleteWorkflow(t, deleted)
		equal(t, "when the first is deleted", backlog(t, now).Ready, &later)
	})

	t.Run("deliveries", func(t *testing.T) {
		hook := w.webhook(t, ws.ID, nil)
		of := w.workflow(t, ws.ID)
		var parcels []webhook.OutgoingDelivery
		var at []time.Time
		for range 3 {
			start := newStart(t, of, "node_1")
			returns(w.Runs.StartRun(ctx, start))(t, "start", true)
			parcels, at = append(parcels, w.outgoing(t, hook, start.Event.ID)), append(at, start.Event.At)
		}
		now := clock.Now()
		got := backlog(t, now)
		equal(t, "the oldest", got.Undelivered, &at[0])
		equal(t, "the first that is due", got.Due, &at[0])
		again := newReport(parcels[0], webhook.Pending, now)
		w.record(t, again)
		got = backlog(t, now)
		equal(t, "one that will be tried again is not delivered", got.Undelivered, &at[0])
		equal(t, "and not due", got.Due, &at[1])
		w.record(t, newReport(parcels[1], webhook.Delivered, now))
		w.record(t, newReport(parcels[2], webhook.Exhausted, now))
		got = backlog(t, now)
		equal(t, "when the others are done", got.Undelivered, &at[0])
		equal(t, "none is due", got.Due, nil)
		equal(t, "until its time", backlog(t, again.NextAt.Add(time.Second)).Due, again.NextAt)
		w.record(t, newReport(w.outgoing(t, hook, parcels[0].Event.ID), webhook.Delivered, now))
		got = backlog(t, now.Add(time.Hour))
		got.Ready = nil
		equal(t, "when all are done", got, store.Backlog{})
	})
}
