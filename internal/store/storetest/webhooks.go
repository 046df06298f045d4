package storetest

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

func text(r database.Row) (s string, err error) {
	err = r.Scan(&s)
	return s, err
}

// deliveries lists the webhooks that an event is delivered to, ordered by id.
func (w *harness) deliveries(t *testing.T, eventID string) []string {
	t.Helper()
	return collect(t, w, `SELECT webhook_id FROM deliveries WHERE event_id = $1 ORDER BY webhook_id`, []any{eventID}, text)
}

func testWebhooks(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)

	t.Run("read", func(t *testing.T) {
		empty(w.Webhooks.Webhooks(ctx, ws.ID, fullPage))(t, "a workspace without one")
		made := w.webhook(t, ws.ID, func(h *webhook.Webhook) {
			h.WorkflowID, h.Events, h.Enabled, h.DisabledReason = wf.ID, []event.Type{event.RunFailed}, false, "gone"
		})
		equal(t, "webhook", found(w.Webhooks.Webhook(ctx, ws.ID, made.ID))(t), made)
		missing(w.Webhooks.Webhook(ctx, ws.ID, "wh_none"))(t, "an unknown webhook")
		equal(t, "audit entries", w.audited(t, ws.ID, made.ID), 1)
		second, third := w.webhook(t, ws.ID, nil), w.webhook(t, ws.ID, nil)
		page := must(w.Webhooks.Webhooks(ctx, ws.ID, paging.Request{Limit: 2}))(t)
		equal(t, "first page", page, paging.Page[webhook.Webhook]{Items: []webhook.Webhook{third, second}, Next: second.ID})
		page = must(w.Webhooks.Webhooks(ctx, ws.ID, paging.Request{Limit: 2, After: page.Next}))(t)
		equal(t, "last page", page, paging.Page[webhook.Webhook]{Items: []webhook.Webhook{made}})
	})

	t.Run("for an unknown workflow", func(t *testing.T) {
		hook := newWebhook(ws.ID)
		hook.WorkflowID = "wf_none"
		returns(w.Webhooks.InsertWebhook(ctx, hook, noLimit, newEntry(ws.ID, "webhook.created", hook.ID)))(t, "insert", webhook.NoWorkflow)
		returns(w.Webhooks.InsertWebhook(ctx, hook, 0, newEntry(ws.ID, "webhook.created", hook.ID)))(t, "insert beyond the limit", webhook.NoWorkflow)
		missing(w.Webhooks.Webhook(ctx, ws.ID, hook.ID))(t, "the webhook")
		equal(t, "audit entries", w.audited(t, ws.ID, hook.ID), 0)
	})

	t.Run("update", func(t *testing.T) { testWebhookUpdate(t, w, wf.ID, ws.ID) })

	t.Run("one of many concurrent updates wins", func(t *testing.T) {
		was := w.webhook(t, ws.ID, nil)
		won := concurrently(t, 32, func(int) (bool, error) {
			now := was
			now.UpdatedAt = was.UpdatedAt.Add(time.Second)
			outcome, err := w.Webhooks.UpdateWebhook(ctx, now, was.UpdatedAt, newEntry(ws.ID, "webhook.updated", "race"))
			if outcome != webhook.Done && outcome != webhook.Changed {
				t.Errorf("got %v", outcome)
			}
			return outcome == webhook.Done, err
		})
		equal(t, "winners", won, 1)
		equal(t, "audit entries", w.audited(t, ws.ID, "race"), 1)
	})

	t.Run("delete", func(t *testing.T) {
		made := w.webhook(t, ws.ID, nil)
		returns(w.Webhooks.DeleteWebhook(ctx, ws.ID, "wh_none", clock.Now(), newEntry(ws.ID, "webhook.deleted", "deletion")))(t, "an unknown one", false)
		returns(w.Webhooks.DeleteWebhook(ctx, ws.ID, made.ID, clock.Now(), newEntry(ws.ID, "webhook.deleted", "deletion")))(t, "one", true)
		returns(w.Webhooks.DeleteWebhook(ctx, ws.ID, made.ID, clock.Now(), newEntry(ws.ID, "webhook.deleted", "deletion")))(t, "again", false)
		equal(t, "audit entries", w.audited(t, ws.ID, "deletion"), 1)
		missing(w.Webhooks.Webhook(ctx, ws.ID, made.ID))(t, "the webhook")
		now := made
		now.UpdatedAt = made.UpdatedAt.Add(time.Second)
		returns(w.Webhooks.UpdateWebhook(ctx, now, made.UpdatedAt, newEntry(ws.ID, "webhook.updated", made.ID)))(t, "update", webhook.Changed)
		if slices.ContainsFunc(must(w.Webhooks.Webhooks(ctx, ws.ID, fullPage))(t).Items, func(h webhook.Webhook) bool { return h.ID == made.ID }) {
			t.Error("the webhook is still listed")
		}
	})
}

func testWebhookUpdate(t *testing.T, w *harness, workflowID, workspaceID string) {
	ctx := t.Context()
	made := w.webhook(t, workspaceID, nil)
	now := made
	now.URL, now.Events, now.WorkflowID = "https://example.com/new", []event.Type{event.RunStarted, event.WorkflowPaused}, workflowID
	now.Enabled, now.DisabledReason, now.UpdatedAt = false, "it answered 410", made.UpdatedAt.Add(time.Microsecond)
	entry := newEntry(workspaceID, "webhook.updated", "update")

	returns(w.Webhooks.UpdateWebhook(ctx, now, made.UpdatedAt.Add(time.Second), entry))(t, "a stale update", webhook.Changed)
	foreign := now
	foreign.WorkflowID = "wf_none"
	returns(w.Webhooks.UpdateWebhook(ctx, foreign, made.UpdatedAt, entry))(t, "for an unknown workflow", webhook.NoWorkflow)
	equal(t, "webhook", found(w.Webhooks.Webhook(ctx, workspaceID, made.ID))(t), made)
	equal(t, "audit entries", w.audited(t, workspaceID, "update"), 0)

	returns(w.Webhooks.UpdateWebhook(ctx, now, made.UpdatedAt, entry))(t, "an update", webhook.Done)
	equal(t, "webhook", found(w.Webhooks.Webhook(ctx, workspaceID, made.ID))(t), now)
	equal(t, "audit entries", w.audited(t, workspaceID, "update"), 1)

	last := now
	last.WorkflowID, last.UpdatedAt = "", now.UpdatedAt.Add(time.Microsecond)
	returns(w.Webhooks.UpdateWebhook(ctx, last, now.UpdatedAt, newEntry(workspaceID, "webhook.updated", "update")))(t, "to all workflows", webhook.Done)
	equal(t, "webhook", found(w.Webhooks.Webhook(ctx, workspaceID, made.ID))(t), last)
}

func testDeliveries(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf, other := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	started := []event.Type{event.RunStarted}
	all := w.webhook(t, ws.ID, nil)
	onStart := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.Events = started })
	onEnd := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.Events = []event.Type{event.RunSucceeded, event.RunFailed} })
	own := w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.WorkflowID = wf.ID })
	w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.WorkflowID = other.ID })
	w.webhook(t, ws.ID, func(h *webhook.Webhook) { h.Enabled = false })
	deleted := w.webhook(t, ws.ID, nil)
	returns(w.Webhooks.DeleteWebhook(ctx, ws.ID, deleted.ID, clock.Now(), newEntry(ws.ID, "webhook.deleted", deleted.ID)))(t, "delete", true)
	w.webhook(t, w.workspace(t).ID, nil)

	t.Run("go to subscribers of the event", func(t *testing.T) {
		start := newStart(t, wf, "node_1")
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		equal(t, "of the start", w.deliveries(t, start.Event.ID), []string{all.ID, onStart.ID, own.ID})
		finish := newFinish(t, start.Run, run.Succeeded)
		returns(w.Commit(ctx, firstLease(start.Run), start.Run, finish))(t, "finish", true)
		equal(t, "of the end", w.deliveries(t, finish.Finish.Event.ID), []string{all.ID, onEnd.ID, own.ID})
		cancelled := w.start(t, wf, "node_1")
		cancel := newCancellation(t, cancelled)
		returns(w.Runs.CancelRun(ctx, cancel))(t, "cancel", true)
		equal(t, "of the cancellation", w.deliveries(t, w.eventOf(t, cancelled.ID, event.RunCancelled)), []string{all.ID, own.ID})
		change := activated(t, wf)
		returns(w.Workflows.UpdateWorkflow(ctx, change))(t, "activate", true)
		equal(t, "of the activation", w.deliveries(t, change.Events[0].ID), []string{all.ID, own.ID})
	})

	t.Run("contain the event unchanged", func(t *testing.T) {
		start := newStart(t, other, "node_1")
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		checkStored(t, w, start.Event, all.ID)
	})

	t.Run("are determined at the commit", func(t *testing.T) {
		start := newStart(t, other, "node_1")
		returns(w.Runs.StartRun(ctx, start))(t, "start", true)
		before := w.deliveries(t, start.Event.ID)
		late := w.webhook(t, ws.ID, nil)
		off := late
		off.Enabled, off.UpdatedAt = false, late.UpdatedAt.Add(time.Second)
		equal(t, "after a webhook was added", w.deliveries(t, start.Event.ID), before)
		returns(w.Webhooks.UpdateWebhook(ctx, off, late.UpdatedAt, newEntry(ws.ID, "webhook.updated", late.ID)))(t, "disable", webhook.Done)
		next := newStart(t, other, "node_1")
		returns(w.Runs.StartRun(ctx, next))(t, "start", true)
		equal(t, "while it is disabled", w.deliveries(t, next.Event.ID), before)
	})

	t.Run("end with the webhook", func(t *testing.T) { testDeliveriesEnd(t, w, other) })

	t.Run("are in commit order", func(t *testing.T) {
		r := w.start(t, other, "node_1")
		w.finish(t, r, run.Succeeded)
		kinds := collect(t, w, `SELECT type FROM events WHERE run_id = $1 ORDER BY seq`, []any{r.ID}, text)
		equal(t, "events", kinds, []string{string(event.RunStarted), string(event.RunSucceeded)})
	})
}

func testDeliveriesEnd(t *testing.T, w *harness, wf workflow.Workflow) {
	ctx, ws := t.Context(), wf.WorkspaceID
	hook := w.webhook(t, ws, nil)
	start := newStart(t, wf, "node_1")
	returns(w.Runs.StartRun(ctx, start))(t, "start", true)
	sent := newStart(t, wf, "node_1")
	returns(w.Runs.StartRun(ctx, sent))(t, "start", true)
	w.exec(t, `UPDATE deliveries SET status = 'delivered', next_at = NULL WHERE event_id = $1`, sent.Event.ID)
	before := w.deliveries(t, start.Event.ID)
	returns(w.Webhooks.DeleteWebhook(ctx, ws, hook.ID, clock.Now(), newEntry(ws, "webhook.deleted", hook.ID)))(t, "delete", true)
	equal(t, "of others", w.deliveries(t, start.Event.ID), slices.DeleteFunc(before, func(id string) bool { return id == hook.ID }))
	if !slices.Contains(w.deliveries(t, sent.Event.ID), hook.ID) {
		t.Error("the log of sent deliveries is missing")
	}
}

// checkStored checks the rows of an event and of its delivery to a webhook.
func checkStored(t *testing.T, w *harness, e event.Event, hookID string) {
	t.Helper()
	stored := collect(t, w, `SELECT id, workspace_id, type, workflow_id, run_id, at, depth, body FROM events WHERE id = $1`, []any{e.ID},
		func(r database.Row) (got event.Event, err error) {
			err = r.Scan(&got.ID, &got.WorkspaceID, (*string)(&got.Type), &got.WorkflowID, &got.RunID, &got.At, &got.Depth, &got.Body)
			return got, err
		})[0]
	equal(t, "event", stored, e)
	if !bytes.Equal(stored.Body, e.Body) {
		t.Errorf("the body is %q, not %q", stored.Body, e.Body)
	}
	type delivery struct {
		Workspace, Run, Status string
		Attempt                int
		NextAt, CreatedAt      time.Time
	}
	pending := collect(t, w, `SELECT workspace_id, run_id, status, attempts, next_at, created_at FROM deliveries
		WHERE event_id = $1 AND webhook_id = $2`, []any{e.ID, hookID}, func(r database.Row) (d delivery, err error) {
		err = r.Scan(&d.Workspace, &d.Run, &d.Status, &d.Attempt, &d.NextAt, &d.CreatedAt)
		return d, err
	})
	equal(t, "delivery", pending, []delivery{{Workspace: e.WorkspaceID, Run: e.RunID, Status: "pending", NextAt: e.At, CreatedAt: e.At}})
}
