package storetest

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/webhook"
)

func testBacklog(t *testing.T, w *world) {
	ctx := t.Context()
	ws, wf := w.workspace(t), w.workflow(t, w.workspace(t).ID)
	now := clock.Now()
	backlog := func(t *testing.T, at time.Time) store.Backlog {
		t.Helper()
		return must(w.Backlog(ctx, at))(t)
	}
	same(t, "when there is nothing", backlog(t, now), store.Backlog{})

	t.Run("runs", func(t *testing.T) {
		release := func(node string, at time.Time) run.Run {
			r := w.start(t, wf, node)
			answers(w.Commit(ctx, firstLease(r), r, run.Decision{Release: true, WakeAt: at}))(t, "release", true)
			return r
		}
		w.start(t, wf, "node_1") // somebody holds it
		release("node_1", now.Add(time.Hour))
		same(t, "when none is due", backlog(t, now), store.Backlog{})
		late, later := now.Add(-time.Hour), now.Add(-time.Minute)
		release("node_1", later)
		first := release("node_2", late)
		same(t, "when two are due", backlog(t, now).Ready, &late)
		same(t, "in time", backlog(t, late.Add(-time.Microsecond)).Ready, nil)
		_, ok, err := w.Activate(ctx, run.Wake{RunID: first.ID, Epoch: 1}, "node_3")
		answers(ok, err)(t, "take up", true)
		same(t, "when the first is taken up", backlog(t, now).Ready, &later)
		gone := w.workflow(t, ws.ID)
		r := w.start(t, gone, "node_1")
		answers(w.Commit(ctx, firstLease(r), r, run.Decision{Release: true, WakeAt: late}))(t, "release", true)
		w.deleteWorkflow(t, gone)
		same(t, "when the first is deleted", backlog(t, now).Ready, &later)
	})

	t.Run("deliveries", func(t *testing.T) {
		hook := w.webhook(t, ws.ID, nil)
		of := w.workflow(t, ws.ID)
		var parcels []webhook.Parcel
		var at []time.Time
		for range 3 {
			start := newStart(t, of, "node_1")
			answers(w.StartRun(ctx, start))(t, "start", true)
			parcels, at = append(parcels, w.parcel(t, hook, start.Event.ID)), append(at, start.Event.At)
		}
		now := clock.Now()
		got := backlog(t, now)
		same(t, "the oldest", got.Undelivered, &at[0])
		same(t, "the first that is due", got.Due, &at[0])
		again := newReport(parcels[0], webhook.Pending, now)
		w.record(t, again)
		got = backlog(t, now)
		same(t, "one that will be tried again is not delivered", got.Undelivered, &at[0])
		same(t, "and not due", got.Due, &at[1])
		w.record(t, newReport(parcels[1], webhook.Delivered, now))
		w.record(t, newReport(parcels[2], webhook.Exhausted, now))
		got = backlog(t, now)
		same(t, "when the others are done", got.Undelivered, &at[0])
		same(t, "none is due", got.Due, nil)
		same(t, "until its time", backlog(t, again.NextAt.Add(time.Second)).Due, again.NextAt)
		w.record(t, newReport(w.parcel(t, hook, parcels[0].Event.ID), webhook.Delivered, now))
		got = backlog(t, now.Add(time.Hour))
		got.Ready = nil
		same(t, "when all are done", got, store.Backlog{})
	})
}
