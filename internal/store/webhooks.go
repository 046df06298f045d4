package store

import (
	"context"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/webhook"
)

// Webhooks implements webhook.Store and webhook.Outbox.
type Webhooks struct{ db *DB }

// In implements webhook.Store.
func (s Webhooks) In(tx txn.Tx) webhook.Store { return s.db.in(tx).Webhooks }

var webhookRows = mapTable("webhooks", "id", func(w *webhook.Webhook) []any {
	return []any{
		"id", &w.ID, "workspace_id", &w.WorkspaceID, "url", &w.URL, "events", eventList(&w.Events), "workflow_id", &w.WorkflowID,
		"enabled", &w.Enabled, "disabled_reason", &w.DisabledReason, "secret", &w.SealedSecret, "secret_hint", &w.SecretHint,
		"old_secret", &w.OldSecret, "old_until", &w.OldUntil, "failures", unbound(archive.Int), "failing_since", &w.FailingSince,
		"created_at", &w.CreatedAt, "updated_at", &w.UpdatedAt, "deleted_at", unbound(archive.Int),
	}
})

// eventList is stored as names separated by commas.
func eventList(events *[]event.Type) converted {
	names := new(string)
	decode := func() error {
		for name := range strings.SplitSeq(*names, ",") {
			*events = append(*events, event.Type(name))
		}
		return nil
	}
	return converted{archive.Text, names, decode, func() (any, error) { return joinEvents(*events), nil }}
}

func joinEvents(events []event.Type) string {
	names := make([]string, len(events))
	for i, name := range events {
		names[i] = string(name)
	}
	return strings.Join(names, ",")
}

// hasWorkflow reports whether the webhook's workflow belongs to its workspace.
func hasWorkflow(tx *transaction, w webhook.Webhook) (bool, error) {
	if w.WorkflowID == "" {
		return true, nil
	}
	if err := tx.Lock(database.Lock{Kind: database.LockWorkflow, Key: w.WorkflowID, Shared: true}); err != nil {
		return false, err
	}
	n, err := database.Number(tx, `SELECT count(*) FROM workflows WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, w.WorkflowID, w.WorkspaceID)
	return n == 1, err
}

// InsertWebhook implements webhook.Store.
func (s Webhooks) InsertWebhook(ctx context.Context, w webhook.Webhook, atMost int, entry audit.Entry) (webhook.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (webhook.Outcome, error) {
		known, err := hasWorkflow(tx, w)
		if err != nil || !known {
			return webhook.NoWorkflow, err
		}
		if err := tx.Lock(database.WorkspaceLock(w.WorkspaceID)); err != nil {
			return webhook.Done, err
		}
		room, err := incrementUsage(tx, "webhooks", w.WorkspaceID, atMost)
		if err != nil || !room {
			return webhook.TooMany, err
		}
		tx.queue.SubscribersChanged(w.WorkspaceID)
		if err := webhookRows.insertInto(tx, w); err != nil {
			return webhook.Done, err
		}
		return webhook.Done, insertAudit(tx, entry)
	})
}

// Webhook implements webhook.Store.
func (s Webhooks) Webhook(ctx context.Context, workspaceID, id string) (*webhook.Webhook, error) {
	return readOne(ctx, s.db, webhookRows.selects()+`WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, []any{id, workspaceID}, webhookRows.scan)
}

// Webhooks implements webhook.Store.
func (s Webhooks) Webhooks(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[webhook.Webhook], error) {
	found, err := readList(ctx, s.db, webhookRows.selects()+`WHERE workspace_id = $1 AND deleted_at IS NULL AND id < $2 ORDER BY id DESC LIMIT $3`,
		[]any{workspaceID, before(page.After), page.Limit + 1}, webhookRows.scan)
	return paging.Cut(found, page.Limit, func(w webhook.Webhook) string { return w.ID }), err
}

// UpdateWebhook implements webhook.Store.
func (s Webhooks) UpdateWebhook(ctx context.Context, w webhook.Webhook, was time.Time, entry audit.Entry) (webhook.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (webhook.Outcome, error) {
		known, err := hasWorkflow(tx, w)
		if err != nil || !known {
			return webhook.NoWorkflow, err
		}
		if err := tx.Lock(database.WorkspaceLock(w.WorkspaceID)); err != nil {
			return webhook.Done, err
		}
		on, err := database.Number(tx, `SELECT count(*) FROM webhooks WHERE id = $1 AND workspace_id = $2 AND enabled`, w.ID, w.WorkspaceID)
		if err != nil {
			return webhook.Done, err
		}
		// Enabling a webhook again resets its failure count.
		n, err := tx.Exec(`UPDATE webhooks SET url = $1, events = $2, workflow_id = $3, disabled_reason = $5, updated_at = $6,
			secret = $10, secret_hint = $11, old_secret = $12, old_until = $13,
			failures = CASE WHEN enabled = $4 THEN failures ELSE 0 END, failing_since = CASE WHEN enabled = $4 THEN failing_since END, enabled = $4
			WHERE id = $7 AND workspace_id = $8 AND updated_at = $9 AND deleted_at IS NULL`,
			w.URL, joinEvents(w.Events), w.WorkflowID, w.Enabled, w.DisabledReason, w.UpdatedAt, w.ID, w.WorkspaceID, was,
			w.SealedSecret, w.SecretHint, database.BytesOrNil(w.OldSecret), database.TimeOrNil(w.OldUntil))
		if err != nil || n == 0 {
			return webhook.Changed, err
		}
		tx.queue.SubscribersChanged(w.WorkspaceID)
		if on == 1 && !w.Enabled {
			if err := dropDeliveries(tx, w.ID, w.UpdatedAt); err != nil {
				return webhook.Done, err
			}
		}
		return webhook.Done, insertAudit(tx, entry)
	})
}

// DeleteWebhook implements webhook.Store.
func (s Webhooks) DeleteWebhook(ctx context.Context, workspaceID, id string, at time.Time, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (deleted bool, err error) {
		if err := tx.Lock(database.WorkspaceLock(workspaceID)); err != nil {
			return deleted, err
		}
		n, err := tx.Exec(`UPDATE webhooks SET deleted_at = $1 WHERE id = $2 AND workspace_id = $3 AND deleted_at IS NULL`, at, id, workspaceID)
		if deleted = n == 1; err != nil || !deleted {
			return deleted, err
		}
		tx.queue.SubscribersChanged(workspaceID)
		if err := decrementUsage(tx, "webhooks", workspaceID, 1); err != nil {
			return deleted, err
		}
		if err := tx.Do(`DELETE FROM deliveries WHERE webhook_id = $1 AND status = 'pending'`, id); err != nil {
			return deleted, err
		}
		return deleted, insertAudit(tx, entry)
	})
}
