package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/webhook"
)

var deliveryAttemptsTable = Table{Name: "delivery_attempts", Key: "delivery_id attempt", Text: "delivery_id error response", Int: "attempt at duration status"}

// DueDeliveries implements webhook.Outbox. Deliveries to a webhook that was
// deleted with its workflow are still sent; its row stays for that.
func (s Webhooks) DueDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]webhook.Due, error) {
	statement, args := selectDue+`WHERE d.next_at <= $1`, []any{now, limit}
	statement, args = database.NotIn(statement, "d.webhook_id", except, args)
	return readList(ctx, s.db, statement+` ORDER BY d.next_at, d.seq LIMIT $2`, args, scanDue)
}

const selectDue = `SELECT d.id, d.workspace_id, d.webhook_id, d.run_id, d.attempts, w.url
	FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.workspace_id = d.workspace_id `

func scanDue(r database.Row) (d webhook.Due, err error) {
	err = r.Scan(&d.DeliveryID, &d.WorkspaceID, &d.WebhookID, &d.RunID, &d.Attempts, &d.URL)
	return d, err
}

// OutgoingDelivery implements webhook.Outbox.
func (s Webhooks) OutgoingDelivery(ctx context.Context, workspaceID, deliveryID string) (*webhook.OutgoingDelivery, error) {
	return readOne(ctx, s.db, `SELECT d.id, d.workspace_id, d.webhook_id, d.run_id, d.attempts, w.url, w.secret, w.old_secret, w.old_until,
		e.id, e.workspace_id, e.type, e.workflow_id, e.run_id, e.at, e.depth, e.body
		FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.workspace_id = d.workspace_id
		JOIN events e ON e.id = d.event_id AND e.workspace_id = d.workspace_id
		WHERE d.id = $1 AND d.workspace_id = $2 AND d.status = 'pending'`, []any{deliveryID, workspaceID}, scanOutgoingDelivery)
}

func scanOutgoingDelivery(r database.Row) (p webhook.OutgoingDelivery, err error) {
	err = r.Scan(&p.DeliveryID, &p.WorkspaceID, &p.WebhookID, &p.RunID, &p.Attempts, &p.URL, &p.Secret, &p.OldSecret, &p.OldUntil,
		&p.Event.ID, &p.Event.WorkspaceID, (*string)(&p.Event.Type), &p.Event.WorkflowID, &p.Event.RunID, &p.Event.At, &p.Event.Depth, &p.Event.Body)
	return p, err
}

// NextDelivery implements webhook.Outbox.
func (s Webhooks) NextDelivery(ctx context.Context, after time.Time) (*time.Time, error) {
	return readValue[*time.Time](ctx, s.db, `SELECT min(next_at) FROM deliveries WHERE next_at > $1`, after)
}

// ReportDelivery implements webhook.Outbox. An attempt counts once, even if it is
// reported again; an attempt of a deleted delivery does not count. Like every
// change to a webhook, it acquires the workspace's lock, if it needs it, before
// the row of the webhook, and that before the rows of deliveries.
func (s Webhooks) ReportDelivery(ctx context.Context, r webhook.Report) error {
	err := s.db.write(ctx, func(tx *transaction) error {
		ended := r.Attempt.At.Add(r.Attempt.Duration)
		if r.Status == webhook.Delivered {
			if err := tx.Do(`UPDATE webhooks SET failures = 0, failing_since = NULL WHERE id = $1 AND failures > 0`, r.OutgoingDelivery.WebhookID); err != nil {
				return err
			}
			return reportAttempt(tx, r, ended)
		}
		disable, err := reachesFailureLimit(tx, r, ended)
		if err != nil {
			return err
		}
		if err := tx.Do(`UPDATE webhooks SET failures = failures + 1, failing_since = COALESCE(failing_since, $1) WHERE id = $2`, ended, r.OutgoingDelivery.WebhookID); err != nil {
			return err
		}
		if err := reportAttempt(tx, r, ended); err != nil || !disable {
			return err
		}
		return disableFailing(tx, r, ended)
	})
	if errors.Is(err, errReported) {
		return nil
	}
	return err
}

// errReported means that the attempt was already counted, or no longer counts.
var errReported = errors.New("the attempt was already reported")

func reportAttempt(tx *transaction, r webhook.Report, ended time.Time) error {
	var finishedAt any
	if r.Status != webhook.Pending {
		finishedAt = ended
	}
	n, err := tx.Exec(`UPDATE deliveries SET status = $1, attempts = $2, next_at = $3, finished_at = $4
		WHERE id = $5 AND workspace_id = $6 AND attempts = $7 AND status = 'pending'`,
		string(r.Status), r.Attempt.Number, database.TimeOrNil(r.NextAt), finishedAt, r.OutgoingDelivery.DeliveryID, r.OutgoingDelivery.WorkspaceID, r.OutgoingDelivery.Attempts)
	if err != nil {
		return err
	}
	if n == 0 {
		return errReported
	}
	return tx.Do(`INSERT INTO delivery_attempts (delivery_id, attempt, at, duration, status, error, response) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.OutgoingDelivery.DeliveryID, r.Attempt.Number, r.Attempt.At, int64(r.Attempt.Duration), r.Attempt.Status,
		database.OrNil(r.Attempt.Error), database.OrNil(r.Attempt.Response))
}

// reachesFailureLimit reports whether one more failure disables the webhook, and
// if so locks its workspace. Among concurrent failures the next one may be the
// last.
func reachesFailureLimit(tx *transaction, r webhook.Report, ended time.Time) (bool, error) {
	if r.Disable == "" {
		n, err := database.Number(tx, `SELECT count(*) FROM webhooks WHERE id = $1 AND COALESCE(failing_since, $2) <= $3 AND failures >= $4`,
			r.OutgoingDelivery.WebhookID, ended, r.FailingSince, r.Failures-1)
		if err != nil || n == 0 {
			return false, err
		}
	}
	return true, tx.Lock(database.WorkspaceLock(r.OutgoingDelivery.WorkspaceID))
}

func disableFailing(tx *transaction, r webhook.Report, at time.Time) error {
	id, reason := r.OutgoingDelivery.WebhookID, cmp.Or(r.Disable, r.FailingReason)
	tx.queue.SubscribersChanged(r.OutgoingDelivery.WorkspaceID)
	n, err := tx.Exec(`UPDATE webhooks SET enabled = $1, disabled_reason = $2, updated_at = $3 WHERE id = $4 AND enabled AND deleted_at IS NULL`,
		false, reason, at, id)
	if err != nil {
		return err
	}
	if err := dropDeliveries(tx, id, at); err != nil || n == 0 {
		return err
	}
	return insertAudit(tx, r.Entry)
}

func dropDeliveries(tx *transaction, webhookID string, at time.Time) error {
	return tx.Do(`UPDATE deliveries SET status = 'dropped', next_at = NULL, finished_at = $1 WHERE webhook_id = $2 AND status = 'pending'`, at, webhookID)
}
