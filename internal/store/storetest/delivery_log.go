package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

func deliveryID(d webhook.Delivery) string { return d.ID }

// sent starts a run and returns its delivery to a webhook.
func (w *harness) sent(t *testing.T, start run.Start, hook webhook.Webhook) webhook.Delivery {
	t.Helper()
	returns(w.Runs.StartRun(t.Context(), start))(t, "start", true)
	filter := webhook.Filter{RunID: start.Run.ID}
	return must(w.Webhooks.Deliveries(t.Context(), hook.WorkspaceID, hook.ID, filter, fullPage))(t).Items[0]
}

// report records an attempt of a delivery.
func (w *harness) report(t *testing.T, d webhook.Delivery, status webhook.Status, attempt webhook.Attempt) {
	t.Helper()
	attempt.Number = d.Attempts + 1
	r := webhook.Report{
		OutgoingDelivery: webhook.OutgoingDelivery{DeliveryID: d.ID, WorkspaceID: d.WorkspaceID, WebhookID: d.WebhookID, Attempts: d.Attempts},
		Attempt:          attempt, Status: status, FailingSince: attempt.At.Add(-time.Hour), Failures: noLimit,
	}
	if status == webhook.Pending {
		next := attempt.At.Add(time.Minute)
		r.NextAt = &next
	}
	if err := w.Webhooks.ReportDelivery(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func testDeliveryLog(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf, hook := w.workflow(t, ws.ID), w.webhook(t, ws.ID, nil)
	start := newStart(t, wf, "node_1")
	start.Run.Depth, start.Event.Depth = 3, 3
	first := w.sent(t, start, hook)

	t.Run("before the first attempt", func(t *testing.T) {
		equal(t, "delivery", first, webhook.Delivery{
			ID: first.ID, WorkspaceID: ws.ID, WebhookID: hook.ID, EventID: start.Event.ID, Event: event.RunStarted, RunID: start.Run.ID, WorkflowID: wf.ID,
			Status: webhook.Pending, NextAt: &start.Event.At, CreatedAt: start.Event.At,
		})
		equal(t, "detail", found(w.Webhooks.Delivery(ctx, ws.ID, first.ID))(t), webhook.Detail{Delivery: first, Body: start.Event.Body})
		missing(w.Webhooks.Delivery(ctx, ws.ID, "dlv_none"))(t, "an unknown delivery")
		equal(t, "depth of what is sent", found(w.Webhooks.OutgoingDelivery(ctx, ws.ID, first.ID))(t).Event.Depth, 3)
	})

	t.Run("of attempts", func(t *testing.T) {
		at := clock.Now()
		failed := webhook.Attempt{Number: 1, At: at, Duration: 1500 * time.Microsecond, Status: 500, Error: "the endpoint returned 500", Response: "oops"}
		w.report(t, first, webhook.Pending, failed)
		detail := found(w.Webhooks.Delivery(ctx, ws.ID, first.ID))(t)
		last := failed
		last.Response = "" // lists do not include it
		equal(t, "last", detail.Last, &last)
		equal(t, "status", detail.Status, webhook.Pending)
		equal(t, "failing since", found(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t).FailingSince, new(at.Add(failed.Duration)))
		succeeded := webhook.Attempt{Number: 2, At: at.Add(time.Minute), Status: 204}
		w.report(t, detail.Delivery, webhook.Delivered, succeeded)
		detail = found(w.Webhooks.Delivery(ctx, ws.ID, first.ID))(t)
		equal(t, "attempts", detail.Log, []webhook.Attempt{failed, succeeded})
		equal(t, "delivered", []any{detail.Status, detail.Attempts, detail.NextAt, *detail.FinishedAt}, []any{webhook.Delivered, 2, (*time.Time)(nil), succeeded.At})
		equal(t, "failing since", found(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t).FailingSince, nil)
	})

	t.Run("by filter", func(t *testing.T) { testDeliveryFilters(t, w, ws.ID) })
	t.Run("of samples", func(t *testing.T) { testSamples(t, w, ws.ID) })
	t.Run("of another workspace", func(t *testing.T) {
		stranger := w.workspace(t)
		missing(w.Webhooks.Delivery(ctx, stranger.ID, first.ID))(t, "delivery")
		empty(w.Webhooks.Deliveries(ctx, stranger.ID, hook.ID, webhook.Filter{}, fullPage))(t, "deliveries")
		equal(t, "lost", must(w.Webhooks.Redeliverable(ctx, stranger.ID, hook.ID, webhook.Delivered, "", "~", 10))(t), nil)
		entry := newEntry(stranger.ID, "delivery.redelivered", "attempt")
		made, outcome, err := w.Webhooks.Redeliver(ctx, stranger.ID, hook.ID, []string{first.ID}, clock.Now(), &entry)
		if err != nil || outcome != webhook.Disabled || made != nil {
			t.Errorf("redeliver: %v, %v, %v", made, outcome, err)
		}
		_, there, err := w.Webhooks.SendSamples(ctx, stranger.ID, hook.ID, nil, entry)
		returns(there, err)(t, "send samples", false)
		equal(t, "audit entries", w.audited(t, stranger.ID, "attempt"), 0)
	})
	t.Run("ends with the webhook", func(t *testing.T) {
		returns(w.Webhooks.DeleteWebhook(ctx, ws.ID, hook.ID, clock.Now(), newEntry(ws.ID, "webhook.deleted", hook.ID)))(t, "delete", true)
		missing(w.Webhooks.Delivery(ctx, ws.ID, first.ID))(t, "the delivery")
	})
}

func testDeliveryFilters(t *testing.T, w *harness, workspaceID string) {
	ctx, wf := t.Context(), w.workflow(t, workspaceID)
	hook := w.webhook(t, workspaceID, func(h *webhook.Webhook) { h.WorkflowID = wf.ID })
	var runs []run.Run
	for range 4 {
		runs = append(runs, w.start(t, wf, "node_1"))
	}
	w.finish(t, runs[0], run.Failed)
	all := must(w.Webhooks.Deliveries(ctx, workspaceID, hook.ID, webhook.Filter{}, fullPage))(t).Items
	equal(t, "events", mapped(all, func(d webhook.Delivery) event.Type { return d.Event }),
		[]event.Type{event.RunFailed, event.RunStarted, event.RunStarted, event.RunStarted, event.RunStarted})
	w.report(t, all[1], webhook.Exhausted, webhook.Attempt{At: clock.Now(), Error: "x"})

	ids := func(f webhook.Filter) []string {
		return mapped(must(w.Webhooks.Deliveries(ctx, workspaceID, hook.ID, f, fullPage))(t).Items, deliveryID)
	}
	equal(t, "pending", len(ids(webhook.Filter{Status: webhook.Pending})), 4)
	equal(t, "exhausted", ids(webhook.Filter{Status: webhook.Exhausted}), []string{all[1].ID})
	equal(t, "of a type", ids(webhook.Filter{Event: event.RunFailed}), []string{all[0].ID})
	equal(t, "of a run", ids(webhook.Filter{RunID: runs[0].ID}), []string{all[0].ID, all[4].ID})
	equal(t, "of a run without deliveries to it", ids(webhook.Filter{RunID: w.start(t, w.workflow(t, workspaceID), "node_1").ID}), nil)
	equal(t, "of a run and a status", ids(webhook.Filter{RunID: runs[0].ID, Status: webhook.Exhausted}), nil)
	later, now := clock.Now().Add(time.Hour), all[4].CreatedAt.Truncate(time.Millisecond)
	equal(t, "since", len(ids(webhook.Filter{Since: &now})), 5)
	equal(t, "since later", len(ids(webhook.Filter{Since: &later})), 0)
	equal(t, "until", len(ids(webhook.Filter{Until: &now})), 0)
	equal(t, "until later", len(ids(webhook.Filter{Until: &later})), 5)
	var walked []string
	for after, more := "", true; more; more = after != "" {
		page := must(w.Webhooks.Deliveries(ctx, workspaceID, hook.ID, webhook.Filter{Event: event.RunStarted}, paging.Request{Limit: 3, After: after}))(t)
		walked, after = append(walked, mapped(page.Items, deliveryID)...), page.Next
	}
	equal(t, "page by page", walked, mapped(all[1:], deliveryID))
}

func testSamples(t *testing.T, w *harness, workspaceID string) {
	ctx := t.Context()
	w.webhook(t, workspaceID, nil)
	hook := w.webhook(t, workspaceID, func(h *webhook.Webhook) { h.Enabled = false })
	about := event.Subject{WorkspaceID: workspaceID, WorkflowID: uid.New(uid.Workflow), RunID: uid.New(uid.Run)}
	samples := []event.Event{newEvent(t, event.RunStarted, about), newEvent(t, event.RunFailed, about)}
	before := must(w.Events.EventExtent(ctx, workspaceID, time.Time{}))(t).Newest
	sent, there, err := w.Webhooks.SendSamples(ctx, workspaceID, hook.ID, samples, newEntry(workspaceID, "webhook.tested", "test"))
	returns(there, err)(t, "send", true)
	for i, d := range sent {
		equal(t, "delivery", []any{d.EventID, d.Event, d.Sample, d.Status, *d.NextAt}, []any{samples[i].ID, samples[i].Type, true, webhook.Pending, samples[i].At})
		equal(t, "receivers", w.deliveries(t, d.EventID), []string{hook.ID})
		equal(t, "body", found(w.Webhooks.Delivery(ctx, workspaceID, d.ID))(t).Body, samples[i].Body)
	}
	equal(t, "to send", len(slices.DeleteFunc(must(w.Webhooks.DueDeliveries(ctx, clock.Now(), nil, 100))(t), func(d webhook.Due) bool { return d.WebhookID != hook.ID })), 2)
	equal(t, "audit entries", w.audited(t, workspaceID, "test"), 1)
	followed, _, err := w.Events.EventsAfter(ctx, workspaceID, event.Filter{}, before, 100)
	equal(t, "followed", must(followed, err)(t), nil)
	for _, e := range must(w.Events.Events(ctx, workspaceID, event.Query{}, fullPage))(t).Items {
		if e.WorkflowID == about.WorkflowID {
			t.Errorf("a sample is listed: %+v", e)
		}
	}
	_, there, err = w.Webhooks.SendSamples(ctx, workspaceID, "wh_none", samples, newEntry(workspaceID, "webhook.tested", "none"))
	returns(there, err)(t, "to an unknown webhook", false)
}

func testRedelivery(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf, hook := w.workflow(t, ws.ID), w.webhook(t, ws.ID, nil)
	w.webhook(t, ws.ID, nil) // which is not involved
	var all []webhook.Delivery
	for i := range 5 {
		d := w.sent(t, newStart(t, wf, "node_1"), hook)
		if i < 4 {
			w.report(t, d, webhook.Exhausted, webhook.Attempt{At: clock.Now(), Error: "x"})
		}
		all = append(all, d)
	}
	lost := func(from, below string, limit int) []string {
		return must(w.Webhooks.Redeliverable(ctx, ws.ID, hook.ID, webhook.Exhausted, from, below, limit))(t)
	}
	equal(t, "lost", lost("", "~", 10), mapped(all[:4], deliveryID))
	equal(t, "lost in a range", lost(all[1].ID, all[3].ID, 10), mapped(all[1:3], deliveryID))
	equal(t, "the first that are lost", lost("", "~", 2), mapped(all[:2], deliveryID))

	at, entry := clock.Now(), newEntry(ws.ID, "delivery.redelivered", "many")
	made, outcome, err := w.Webhooks.Redeliver(ctx, ws.ID, hook.ID, []string{all[0].ID, "dlv_none", all[2].ID}, at, &entry)
	returns(outcome, err)(t, "redeliver", webhook.Done)
	for i, of := range []webhook.Delivery{all[0], all[2]} {
		want := of
		want.ID, want.NextAt, want.CreatedAt = made[i], &at, at
		equal(t, "the new delivery", found(w.Webhooks.Delivery(ctx, ws.ID, made[i]))(t).Delivery, want)
	}
	equal(t, "made", len(made), 2)
	equal(t, "audit entries", w.audited(t, ws.ID, "many"), 1)
	equal(t, "lost", lost("", "~", 10), []string{all[1].ID, all[3].ID})
	w.report(t, found(w.Webhooks.Delivery(ctx, ws.ID, made[0]))(t).Delivery, webhook.Exhausted, webhook.Attempt{At: clock.Now(), Error: "x"})
	equal(t, "lost again", lost("", "~", 10), []string{all[1].ID, all[3].ID, made[0]})

	t.Run("to a disabled webhook", func(t *testing.T) {
		off := found(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t)
		was := off.UpdatedAt
		off.Enabled, off.UpdatedAt = false, was.Add(time.Second)
		returns(w.Webhooks.UpdateWebhook(ctx, off, was, newEntry(ws.ID, "webhook.updated", hook.ID)))(t, "disable", webhook.Done)
		equal(t, "what waited", found(w.Webhooks.Delivery(ctx, ws.ID, all[4].ID))(t).Status, webhook.Dropped)
		made, outcome, err := w.Webhooks.Redeliver(ctx, ws.ID, hook.ID, []string{all[1].ID}, at, nil)
		returns(outcome, err)(t, "redeliver", webhook.Disabled)
		equal(t, "made", made, nil)
		// A test delivery to a disabled webhook is not dropped by further
		// changes.
		sample := newEvent(t, event.RunFailed, event.Subject{WorkspaceID: ws.ID, WorkflowID: wf.ID})
		sent, _, err := w.Webhooks.SendSamples(ctx, ws.ID, hook.ID, []event.Event{sample}, newEntry(ws.ID, "webhook.tested", "test"))
		must(sent, err)(t)
		was, off.UpdatedAt = off.UpdatedAt, off.UpdatedAt.Add(time.Second)
		returns(w.Webhooks.UpdateWebhook(ctx, off, was, newEntry(ws.ID, "webhook.updated", hook.ID)))(t, "change", webhook.Done)
		equal(t, "the sample", found(w.Webhooks.Delivery(ctx, ws.ID, sent[0].ID))(t).Status, webhook.Pending)
	})
}

func testEvents(t *testing.T, w *harness) {
	ctx, ws, other := t.Context(), w.workspace(t), w.workspace(t)
	wf, second, foreign := w.workflow(t, ws.ID), w.workflow(t, ws.ID), w.workflow(t, other.ID)
	equal(t, "extent of an empty store", must(w.Events.EventExtent(ctx, ws.ID, time.Time{}))(t), event.Extent{Oldest: 1})
	var starts []run.Start
	for _, of := range []workflow.Workflow{wf, second, foreign, wf} {
		start := newStart(t, of, "node_1")
		start.Run.Depth, start.Event.Depth = 2, 2
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		starts = append(starts, start)
	}
	finish := newFinish(t, starts[0].Run, run.Failed)
	returns(w.Commit(ctx, firstLease(starts[0].Run), starts[0].Run, finish))(t, "finish", true)

	all := must(w.Events.Events(ctx, ws.ID, event.Query{}, fullPage))(t).Items
	equal(t, "events", mapped(all, func(e event.Stored) event.Event { return e.Event }),
		[]event.Event{finish.Finish.Event, starts[3].Event, starts[1].Event, starts[0].Event})
	ids := func(q event.Query) []string {
		return mapped(must(w.Events.Events(ctx, ws.ID, q, fullPage))(t).Items, func(e event.Stored) string { return e.ID })
	}
	equal(t, "of types", ids(event.Query{Filter: event.Filter{Types: []event.Type{event.RunFailed, event.RunCancelled}}}), []string{all[0].ID})
	equal(t, "of a workflow", ids(event.Query{Filter: event.Filter{WorkflowID: second.ID}}), []string{all[2].ID})
	equal(t, "of a run", ids(event.Query{RunID: starts[0].Run.ID}), []string{all[0].ID, all[3].ID})
	equal(t, "of a foreign run", ids(event.Query{RunID: starts[2].Run.ID}), nil)
	equal(t, "after", ids(event.Query{After: all[1].At}), []string{all[0].ID, all[1].ID})
	equal(t, "before", ids(event.Query{Before: &all[1].At}), []string{all[2].ID, all[3].ID})
	ages := clock.Now().Add(-24 * time.Hour)
	equal(t, "long before", ids(event.Query{Before: &ages}), nil)
	equal(t, "long after", ids(event.Query{After: clock.Now().Add(24 * time.Hour)}), nil)
	var walked []event.Stored
	for after, more := "", true; more; more = after != "" {
		page := must(w.Events.Events(ctx, ws.ID, event.Query{}, paging.Request{Limit: 3, After: after}))(t)
		walked, after = append(walked, page.Items...), page.Next
	}
	equal(t, "page by page", walked, all)
	equal(t, "extent", must(w.Events.EventExtent(ctx, ws.ID, time.Time{}))(t), event.Extent{Oldest: all[3].Seq, Newest: all[0].Seq})
	equal(t, "extent after a purge", must(w.Events.EventExtent(ctx, ws.ID, clock.Now().Add(time.Hour)))(t), event.Extent{Oldest: all[0].Seq + 1, Newest: all[0].Seq})
}

// testPurgeDeliveries checks that an event stays while it has a delivery, and
// that attempts are purged with their delivery.
func testPurgeDeliveries(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf, hook := w.workflow(t, ws.ID), w.webhook(t, ws.ID, nil)
	old, now := clock.Now().Add(-time.Hour), clock.Now()
	var all []webhook.Delivery
	for range 3 {
		start := newStart(t, wf, "node_1")
		e := must(event.New(event.RunStarted, subjectOf(start.Run), old, nil))(t)
		e.ID = uid.Derived(uid.Event, old, start.Run.ID)
		start.Event = e
		d := w.sent(t, start, hook)
		w.report(t, d, webhook.Exhausted, webhook.Attempt{At: now, Error: "x"})
		all = append(all, d)
	}
	made, _, err := w.Webhooks.Redeliver(ctx, ws.ID, hook.ID, []string{all[1].ID}, now, nil)
	must(made, err)(t)
	for more := true; more; {
		more = must(w.Events.PurgeOld(ctx, now.Add(-time.Minute), 2))(t)
	}
	equal(t, "deliveries", mapped(must(w.Webhooks.Deliveries(ctx, ws.ID, hook.ID, webhook.Filter{}, fullPage))(t).Items, deliveryID), made)
	equal(t, "attempts", w.count(t, `SELECT count(*) FROM delivery_attempts`), 0)
	equal(t, "events", collect(t, w, `SELECT id FROM events`, nil, text), []string{all[1].EventID})
	equal(t, "what is sent", found(w.Webhooks.Delivery(ctx, ws.ID, made[0]))(t).EventID, all[1].EventID)
	equal(t, "to send", len(must(w.Webhooks.DueDeliveries(ctx, clock.Now(), nil, 10))(t)), 1)
}
