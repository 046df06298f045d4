package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// due lists what is due now, without that of some webhooks.
func (w *world) due(t *testing.T, except ...string) []webhook.Due {
	t.Helper()
	return must(w.DueDeliveries(t.Context(), clock.Now(), except, plenty))(t)
}

// parcel reads the delivery of an event to a webhook as it is to be sent.
func (w *world) parcel(t *testing.T, hook webhook.Webhook, eventID string) webhook.Parcel {
	t.Helper()
	id := collect(t, w, `SELECT id FROM deliveries WHERE webhook_id = $1 AND event_id = $2`, []any{hook.ID, eventID}, text)[0]
	return found(w.Parcel(t.Context(), hook.WorkspaceID, id))(t)
}

// newReport is what came of the next attempt of a parcel at a time.
func newReport(p webhook.Parcel, status webhook.Status, at time.Time) webhook.Report {
	r := webhook.Report{
		Parcel: p, Status: status, Attempt: webhook.Attempt{Number: p.Attempts + 1, At: at, Duration: time.Millisecond, Status: 200, Answer: "thank you"},
		FailingSince: at.Add(-5 * 24 * time.Hour), Failures: 3, GaveUp: "nothing but failures", Entry: newEntry(p.WorkspaceID, "webhook.disabled", p.WebhookID),
	}
	if status != webhook.Delivered {
		r.Attempt.Status, r.Attempt.Error = 500, "it answered 500"
	}
	if status == webhook.Pending {
		next := at.Add(time.Minute)
		r.NextAt = &next
	}
	return r
}

func (w *world) record(t *testing.T, r webhook.Report) {
	t.Helper()
	if err := w.ReportDelivery(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (w *world) deliveryStatus(t *testing.T, p webhook.Parcel) string {
	t.Helper()
	return collect(t, w, `SELECT status FROM deliveries WHERE id = $1`, []any{p.DeliveryID}, text)[0]
}

func testOutbox(t *testing.T, w *world) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	first, second := w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil)
	start := newStart(t, wf, "node_1")
	answers(w.StartRun(ctx, start))(t, "start", true)

	t.Run("what is due", func(t *testing.T) {
		got := w.due(t)
		same(t, "how much", len(got), 2)
		same(t, "the first", got[0], webhook.Due{DeliveryID: got[0].DeliveryID, WorkspaceID: ws.ID, WebhookID: first.ID, RunID: start.Run.ID, URL: first.URL})
		same(t, "without a webhook", w.due(t, first.ID), got[1:])
		same(t, "without both", w.due(t, first.ID, second.ID), []webhook.Due{})
		same(t, "at most one", must(w.DueDeliveries(ctx, clock.Now(), nil, 1))(t), got[:1])
		same(t, "before it happened", must(w.DueDeliveries(ctx, start.Event.At.Add(-time.Microsecond), nil, plenty))(t), []webhook.Due{})
		same(t, "when the next is due", *must(w.NextDelivery(ctx, start.Event.At.Add(-time.Second)))(t), start.Event.At)
		gone(w.NextDelivery(ctx, start.Event.At))(t, "one after that")
		many := []string{first.ID}
		for i := range 1_000 {
			many = append(many, fmt.Sprintf("wh_%d", i))
		}
		same(t, "without very many", w.due(t, many...), got[1:])
	})

	t.Run("a parcel", func(t *testing.T) {
		got := w.parcel(t, first, start.Event.ID)
		same(t, "parcel", got, webhook.Parcel{
			DeliveryID: got.DeliveryID, WorkspaceID: ws.ID, WebhookID: first.ID, RunID: start.Run.ID, URL: first.URL, Secret: first.SealedSecret, Event: start.Event,
		})
		gone(w.Parcel(ctx, w.workspace(t).ID, got.DeliveryID))(t, "that of another workspace")
		gone(w.Parcel(ctx, ws.ID, "dlv_none"))(t, "an unknown one")
		until := clock.Now().Add(time.Hour)
		now := first
		now.URL, now.SealedSecret, now.OldSecret, now.OldUntil = "https://example.com/moved", []byte("new"), first.SealedSecret, &until
		now.UpdatedAt = first.UpdatedAt.Add(time.Second)
		answers(w.UpdateWebhook(ctx, now, first.UpdatedAt, newEntry(ws.ID, "webhook.updated", first.ID)))(t, "update", webhook.Done)
		after := w.parcel(t, first, start.Event.ID)
		same(t, "after the webhook was changed", after, webhook.Parcel{
			DeliveryID: got.DeliveryID, WorkspaceID: ws.ID, WebhookID: first.ID, RunID: start.Run.ID, URL: now.URL, Secret: now.SealedSecret,
			OldSecret: now.OldSecret, OldUntil: now.OldUntil, Event: start.Event,
		})
	})

	t.Run("attempts", func(t *testing.T) { testDeliveryAttempts(t, w, wf) })
	t.Run("failures", func(t *testing.T) { testFailures(t, w, wf) })
	t.Run("a webhook that went with its workflow", func(t *testing.T) { testOrphans(t, w) })
}

func testDeliveryAttempts(t *testing.T, w *world, wf workflow.Workflow) {
	hook := w.webhook(t, wf.WorkspaceID, nil)
	start := newStart(t, wf, "node_1")
	answers(w.StartRun(t.Context(), start))(t, "start", true)
	p := w.parcel(t, hook, start.Event.ID)
	at := clock.Now()

	failed := newReport(p, webhook.Pending, at)
	w.record(t, failed)
	w.record(t, failed) // once more, as after an answer that was lost
	again := w.parcel(t, hook, start.Event.ID)
	same(t, "attempts", again.Attempts, 1)
	same(t, "when the next is due", *must(w.NextDelivery(t.Context(), at))(t), *failed.NextAt)
	same(t, "failures", w.count(t, `SELECT failures FROM webhooks WHERE id = $1`, hook.ID), 1)

	foreign := newReport(again, webhook.Delivered, at)
	foreign.Parcel.WorkspaceID = w.workspace(t).ID
	w.record(t, foreign)
	same(t, "after a report from another workspace", w.deliveryStatus(t, p), "pending")

	w.record(t, newReport(again, webhook.Delivered, at))
	w.record(t, newReport(p, webhook.Pending, at)) // one that comes too late
	same(t, "status", w.deliveryStatus(t, p), "delivered")
	same(t, "failures", w.count(t, `SELECT failures FROM webhooks WHERE id = $1`, hook.ID), 0)
	same(t, "without a time since when", w.count(t, `SELECT count(*) FROM webhooks WHERE id = $1 AND failing_since IS NULL`, hook.ID), 1)
	same(t, "attempts", w.count(t, `SELECT count(*) FROM delivery_attempts WHERE delivery_id = $1`, p.DeliveryID), 2)
	gone(w.Parcel(t.Context(), wf.WorkspaceID, p.DeliveryID))(t, "a parcel of what was delivered")
	same(t, "what is left of it", w.count(t, `SELECT count(*) FROM deliveries WHERE id = $1 AND next_at IS NULL AND finished_at IS NOT NULL`, p.DeliveryID), 1)
}

func testFailures(t *testing.T, w *world, wf workflow.Workflow) {
	ctx := t.Context()
	disabled := func(hook webhook.Webhook) string {
		h := found(w.Webhook(ctx, wf.WorkspaceID, hook.ID))(t)
		if h.Enabled != (h.DisabledReason == "") {
			t.Errorf("enabled is %t and the reason %q", h.Enabled, h.DisabledReason)
		}
		return h.DisabledReason
	}
	entries := func(hook webhook.Webhook) int {
		filter := audit.Filter{TargetID: hook.ID, Action: "webhook.disabled"}
		return len(must(w.AuditEntries(ctx, wf.WorkspaceID, filter, whole))(t).Items)
	}
	hook := w.webhook(t, wf.WorkspaceID, nil)
	var parcels []webhook.Parcel
	for range 5 {
		start := newStart(t, wf, "node_1")
		answers(w.StartRun(ctx, start))(t, "start", true)
		parcels = append(parcels, w.parcel(t, hook, start.Event.ID))
	}
	long := clock.Now()
	w.record(t, newReport(parcels[0], webhook.Exhausted, long))
	w.record(t, newReport(parcels[1], webhook.Pending, long.Add(6*24*time.Hour)))
	same(t, "after too few failures", disabled(hook), "")
	w.record(t, newReport(parcels[2], webhook.Pending, long.Add(24*time.Hour)))
	same(t, "after too short a time", disabled(hook), "")
	w.record(t, newReport(parcels[3], webhook.Pending, long.Add(6*24*time.Hour)))
	same(t, "after many failures over days", disabled(hook), "nothing but failures")
	same(t, "audit entries", entries(hook), 1)
	for i, want := range []string{"exhausted", "dropped", "dropped", "dropped", "dropped"} {
		same(t, fmt.Sprintf("delivery %d", i), w.deliveryStatus(t, parcels[i]), want)
	}
	w.record(t, newReport(parcels[4], webhook.Pending, long.Add(6*24*time.Hour))) // it was under way
	same(t, "audit entries after one more failure", entries(hook), 1)

	refuses := w.webhook(t, wf.WorkspaceID, nil)
	start := newStart(t, wf, "node_1")
	answers(w.StartRun(ctx, start))(t, "start", true)
	r := newReport(w.parcel(t, refuses, start.Event.ID), webhook.Pending, clock.Now())
	r.Disable = "it answered 410"
	w.record(t, r)
	same(t, "after it said to stop", disabled(refuses), "it answered 410")
	same(t, "audit entries", entries(refuses), 1)
	same(t, "the delivery", w.deliveryStatus(t, r.Parcel), "dropped")
}

// Nobody is told of a webhook that is gone, but what it was to get is sent.
func testOrphans(t *testing.T, w *world) {
	ws := w.workspace(t)
	wf := w.workflow(t, ws.ID)
	hook := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.WorkflowID = wf.ID })
	r := w.start(t, wf, "node_1")
	w.finish(t, r, run.Succeeded)
	w.deleteWorkflow(t, wf)
	gone(w.Webhook(t.Context(), ws.ID, hook.ID))(t, "the webhook")
	var mine []webhook.Due
	for _, d := range w.due(t) {
		if d.WebhookID == hook.ID {
			mine = append(mine, d)
		}
	}
	same(t, "what is due", len(mine), 2)
	p := found(w.Parcel(t.Context(), ws.ID, mine[0].DeliveryID))(t)
	stop := newReport(p, webhook.Pending, clock.Now())
	stop.Disable = "it answered 410"
	w.record(t, stop)
	gone(w.Parcel(t.Context(), ws.ID, mine[1].DeliveryID))(t, "the other after it said to stop")
	same(t, "audit entries", len(must(w.AuditEntries(t.Context(), ws.ID, audit.Filter{Action: "webhook.disabled"}, whole))(t).Items), 0)
}
