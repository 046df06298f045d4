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

// due lists the due deliveries, except those of some webhooks.
func (w *harness) due(t *testing.T, except ...string) []webhook.Due {
	t.Helper()
	return must(w.Webhooks.DueDeliveries(t.Context(), clock.Now(), except, noLimit))(t)
}

// outgoing reads the delivery of an event to a webhook as it will be sent.
func (w *harness) outgoing(t *testing.T, hook webhook.Webhook, eventID string) webhook.OutgoingDelivery {
	t.Helper()
	id := collect(t, w, `SELECT id FROM deliveries WHERE webhook_id = $1 AND event_id = $2`, []any{hook.ID, eventID}, text)[0]
	return found(w.Webhooks.OutgoingDelivery(t.Context(), hook.WorkspaceID, id))(t)
}

// newReport returns a report of the next attempt of a delivery.
func newReport(p webhook.OutgoingDelivery, status webhook.Status, at time.Time) webhook.Report {
	r := webhook.Report{
		OutgoingDelivery: p, Status: status, Attempt: webhook.Attempt{Number: p.Attempts + 1, At: at, Duration: time.Millisecond, Status: 200, Response: "thank you"},
		FailingSince: at.Add(-5 * 24 * time.Hour), Failures: 3, FailingReason: "nothing but failures", Entry: newEntry(p.WorkspaceID, "webhook.disabled", p.WebhookID),
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

func (w *harness) record(t *testing.T, r webhook.Report) {
	t.Helper()
	if err := w.Webhooks.ReportDelivery(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (w *harness) deliveryStatus(t *testing.T, p webhook.OutgoingDelivery) string {
	t.Helper()
	return collect(t, w, `SELECT status FROM deliveries WHERE id = $1`, []any{p.DeliveryID}, text)[0]
}

func testOutbox(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	first, second := w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil)
	start := newStart(t, wf, "node_1")
	returns(w.Runs.StartRun(ctx, start))(t, "start", true)

	t.Run("due deliveries", func(t *testing.T) {
		got := w.due(t)
		equal(t, "how much", len(got), 2)
		equal(t, "the first", got[0], webhook.Due{DeliveryID: got[0].DeliveryID, WorkspaceID: ws.ID, WebhookID: first.ID, RunID: start.Run.ID, URL: first.URL})
		equal(t, "without a webhook", w.due(t, first.ID), got[1:])
		equal(t, "without both", w.due(t, first.ID, second.ID), []webhook.Due{})
		equal(t, "at most one", must(w.Webhooks.DueDeliveries(ctx, clock.Now(), nil, 1))(t), got[:1])
		equal(t, "before it happened", must(w.Webhooks.DueDeliveries(ctx, start.Event.At.Add(-time.Microsecond), nil, noLimit))(t), []webhook.Due{})
		equal(t, "the next due time", *must(w.Webhooks.NextDelivery(ctx, start.Event.At.Add(-time.Second)))(t), start.Event.At)
		missing(w.Webhooks.NextDelivery(ctx, start.Event.At))(t, "one after that")
		many := []string{first.ID}
		for i := range 1_000 {
			many = append(many, fmt.Sprintf("wh_%d", i))
		}
		equal(t, "without very many", w.due(t, many...), got[1:])
	})

	t.Run("an outgoing delivery", func(t *testing.T) {
		got := w.outgoing(t, first, start.Event.ID)
		equal(t, "outgoing delivery", got, webhook.OutgoingDelivery{
			DeliveryID: got.DeliveryID, WorkspaceID: ws.ID, WebhookID: first.ID, RunID: start.Run.ID, URL: first.URL, Secret: first.SealedSecret, Event: start.Event,
		})
		missing(w.Webhooks.OutgoingDelivery(ctx, w.workspace(t).ID, got.DeliveryID))(t, "that of another workspace")
		missing(w.Webhooks.OutgoingDelivery(ctx, ws.ID, "dlv_none"))(t, "an unknown one")
		until := clock.Now().Add(time.Hour)
		now := first
		now.URL, now.SealedSecret, now.OldSecret, now.OldUntil = "https://example.com/moved", []byte("new"), first.SealedSecret, &until
		now.UpdatedAt = first.UpdatedAt.Add(time.Second)
		returns(w.Webhooks.UpdateWebhook(ctx, now, first.UpdatedAt, newEntry(ws.ID, "webhook.updated", first.ID)))(t, "update", webhook.Done)
		after := w.outgoing(t, first, start.Event.ID)
		equal(t, "after the webhook was changed", after, webhook.OutgoingDelivery{
			DeliveryID: got.DeliveryID, WorkspaceID: ws.ID, WebhookID: first.ID, RunID: start.Run.ID, URL: now.URL, Secret: now.SealedSecret,
			OldSecret: now.OldSecret, OldUntil: now.OldUntil, Event: start.Event,
		})
	})

	t.Run("attempts", func(t *testing.T) { testDeliveryAttempts(t, w, wf) })
	t.Run("failures", func(t *testing.T) { testFailures(t, w, wf) })
	t.Run("a webhook deleted with its workflow", func(t *testing.T) { testOrphans(t, w) })
}

func testDeliveryAttempts(t *testing.T, w *harness, wf workflow.Workflow) {
	hook := w.webhook(t, wf.WorkspaceID, nil)
	start := newStart(t, wf, "node_1")
	returns(w.Runs.StartRun(t.Context(), start))(t, "start", true)
	p := w.outgoing(t, hook, start.Event.ID)
	at := clock.Now()

	failed := newReport(p, webhook.Pending, at)
	w.record(t, failed)
	w.record(t, failed) // again, as after a lost response
	again := w.outgoing(t, hook, start.Event.ID)
	equal(t, "attempts", again.Attempts, 1)
	equal(t, "the next due time", *must(w.Webhooks.NextDelivery(t.Context(), at))(t), *failed.NextAt)
	equal(t, "failures", w.count(t, `SELECT failures FROM webhooks WHERE id = $1`, hook.ID), 1)

	foreign := newReport(again, webhook.Delivered, at)
	foreign.OutgoingDelivery.WorkspaceID = w.workspace(t).ID
	w.record(t, foreign)
	equal(t, "after a report from another workspace", w.deliveryStatus(t, p), "pending")

	w.record(t, newReport(again, webhook.Delivered, at))
	w.record(t, newReport(p, webhook.Pending, at)) // one that is too late
	equal(t, "status", w.deliveryStatus(t, p), "delivered")
	equal(t, "failures", w.count(t, `SELECT failures FROM webhooks WHERE id = $1`, hook.ID), 0)
	equal(t, "without a time since when", w.count(t, `SELECT count(*) FROM webhooks WHERE id = $1 AND failing_since IS NULL`, hook.ID), 1)
	equal(t, "attempts", w.count(t, `SELECT count(*) FROM delivery_attempts WHERE delivery_id = $1`, p.DeliveryID), 2)
	missing(w.Webhooks.OutgoingDelivery(t.Context(), wf.WorkspaceID, p.DeliveryID))(t, "a parcel of what was delivered")
	equal(t, "remaining rows", w.count(t, `SELECT count(*) FROM deliveries WHERE id = $1 AND next_at IS NULL AND finished_at IS NOT NULL`, p.DeliveryID), 1)
}

func testFailures(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx := t.Context()
	disabled := func(hook webhook.Webhook) string {
		h := found(w.Webhooks.Webhook(ctx, wf.WorkspaceID, hook.ID))(t)
		if h.Enabled != (h.DisabledReason == "") {
			t.Errorf("enabled is %t and the reason %q", h.Enabled, h.DisabledReason)
		}
		return h.DisabledReason
	}
	entries := func(hook webhook.Webhook) int {
		filter := audit.Filter{TargetID: hook.ID, Action: "webhook.disabled"}
		return len(must(w.Audit.AuditEntries(ctx, wf.WorkspaceID, filter, fullPage))(t).Items)
	}
	hook := w.webhook(t, wf.WorkspaceID, nil)
	var deliveries []webhook.OutgoingDelivery
	for range 5 {
		start := newStart(t, wf, "node_1")
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		deliveries = append(deliveries, w.outgoing(t, hook, start.Event.ID))
	}
	long := clock.Now()
	w.record(t, newReport(deliveries[0], webhook.Exhausted, long))
	w.record(t, newReport(deliveries[1], webhook.Pending, long.Add(6*24*time.Hour)))
	equal(t, "after too few failures", disabled(hook), "")
	w.record(t, newReport(deliveries[2], webhook.Pending, long.Add(24*time.Hour)))
	equal(t, "after too short a time", disabled(hook), "")
	w.record(t, newReport(deliveries[3], webhook.Pending, long.Add(6*24*time.Hour)))
	equal(t, "after many failures over days", disabled(hook), "nothing but failures")
	equal(t, "audit entries", entries(hook), 1)
	for i, want := range []string{"exhausted", "dropped", "dropped", "dropped", "dropped"} {
		equal(t, fmt.Sprintf("delivery %d", i), w.deliveryStatus(t, deliveries[i]), want)
	}
	w.record(t, newReport(deliveries[4], webhook.Pending, long.Add(6*24*time.Hour))) // it was in flight
	equal(t, "audit entries after one more failure", entries(hook), 1)

	refuses := w.webhook(t, wf.WorkspaceID, nil)
	start := newStart(t, wf, "node_1")
	returns(w.Runs.StartRun(ctx, start))(t, "start", true)
	r := newReport(w.outgoing(t, refuses, start.Event.ID), webhook.Pending, clock.Now())
	r.Disable = "it answered 410"
	w.record(t, r)
	equal(t, "after it said to stop", disabled(refuses), "it answered 410")
	equal(t, "audit entries", entries(refuses), 1)
	equal(t, "the delivery", w.deliveryStatus(t, r.OutgoingDelivery), "dropped")
}

// testOrphans checks that a deleted webhook gets no new deliveries, but that
// pending ones are sent.
func testOrphans(t *testing.T, w *harness) {
	ws := w.workspace(t)
	wf := w.workflow(t, ws.ID)
	hook := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.WorkflowID = wf.ID })
	r := w.start(t, wf, "node_1")
	w.finish(t, r, run.Succeeded)
	w.deleteWorkflow(t, wf)
	missing(w.Webhooks.Webhook(t.Context(), ws.ID, hook.ID))(t, "the webhook")
	var mine []webhook.Due
	for _, d := range w.due(t) {
		if d.WebhookID == hook.ID {
			mine = append(mine, d)
		}
	}
	equal(t, "what is due", len(mine), 2)
	p := found(w.Webhooks.OutgoingDelivery(t.Context(), ws.ID, mine[0].DeliveryID))(t)
	stop := newReport(p, webhook.Pending, clock.Now())
	stop.Disable = "it answered 410"
	w.record(t, stop)
	missing(w.Webhooks.OutgoingDelivery(t.Context(), ws.ID, mine[1].DeliveryID))(t, "the other after it said to stop")
	equal(t, "audit entries", len(must(w.Audit.AuditEntries(t.Context(), ws.ID, audit.Filter{Action: "webhook.disabled"}, fullPage))(t).Items), 0)
}
