package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/webhook"
)

// DueDeliveries implements webhook.Outbox. What was queued for a webhook that
// went with its workflow is still sent: its row is kept for that.
func (s *Store) DueDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]webhook.Due, error) {
	if s.cluster != nil {
		return s.dueHere(ctx, now, except, limit)
	}
	statement, args := selectDue+`WHERE d.next_at <= $1`, []any{now, limit}
	statement, args = without(statement, "d.webhook_id", except, args)
	var due []webhook.Due
	err := s.read(ctx, func(c Conn) (err error) {
		due, err = list(c, statement+` ORDER BY d.next_at, d.seq LIMIT $2`, args, scanDue)
		return err
	})
	return due, err
}

const selectDue = `SELECT d.id, d.workspace_id, d.webhook_id, d.run_id, d.attempts, w.url
	FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.workspace_id = d.workspace_id `

func scanDue(r Row) (d webhook.Due, err error) {
	err = r.Scan(&d.DeliveryID, &d.WorkspaceID, &d.WebhookID, &d.RunID, &d.Attempts, &d.URL)
	return d, err
}

// Parcel implements webhook.Outbox.
func (s *Store) Parcel(ctx context.Context, workspaceID, deliveryID string) (*webhook.Parcel, error) {
	var found *webhook.Parcel
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = one(c, `SELECT d.id, d.workspace_id, d.webhook_id, d.run_id, d.attempts, w.url, w.secret, w.old_secret, w.old_until,
			e.id, e.workspace_id, e.type, e.workflow_id, e.run_id, e.at, e.depth, e.body
			FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.workspace_id = d.workspace_id
			JOIN events e ON e.id = d.event_id AND e.workspace_id = d.workspace_id
			WHERE d.id = $1 AND d.workspace_id = $2 AND d.status = 'pending'`, []any{deliveryID, workspaceID}, scanParcel)
		return err
	})
	return found, err
}

func scanParcel(r Row) (p webhook.Parcel, err error) {
	err = r.Scan(&p.DeliveryID, &p.WorkspaceID, &p.WebhookID, &p.RunID, &p.Attempts, &p.URL, &p.Secret, &p.OldSecret, &p.OldUntil,
		&p.Event.ID, &p.Event.WorkspaceID, (*string)(&p.Event.Type), &p.Event.WorkflowID, &p.Event.RunID, &p.Event.At, &p.Event.Depth, &p.Event.Body)
	return p, err
}

// NextDelivery implements webhook.Outbox.
func (s *Store) NextDelivery(ctx context.Context, after time.Time) (*time.Time, error) {
	var next *time.Time
	err := s.read(ctx, func(c Conn) error {
		return c.Query(`SELECT min(next_at) FROM deliveries WHERE next_at > $1`, []any{after}, func(r Row) error { return r.Scan(&next) })
	})
	return next, err
}

// ReportDelivery implements webhook.Outbox. An attempt counts once, also when it
// is reported again; one of a delivery that is gone does not. Like whoever changes
// a webhook, it takes the lock of the workspace, if at all, before the row of the
// webhook, and that before the rows of deliveries.
func (s *Store) ReportDelivery(ctx context.Context, r webhook.Report) error {
	err := s.write(ctx, func(u *unit) error {
		ended := r.Attempt.At.Add(r.Attempt.Duration)
		if r.Status == webhook.Delivered {
			if err := u.Do(`UPDATE webhooks SET failures = 0, failing_since = NULL WHERE id = $1 AND failures > 0`, r.Parcel.WebhookID); err != nil {
				return err
			}
			return reportAttempt(u, r, ended)
		}
		enough, err := lastStraw(u, r, ended)
		if err != nil {
			return err
		}
		if err := u.Do(`UPDATE webhooks SET failures = failures + 1, failing_since = COALESCE(failing_since, $1) WHERE id = $2`, ended, r.Parcel.WebhookID); err != nil {
			return err
		}
		if err := reportAttempt(u, r, ended); err != nil || !enough {
			return err
		}
		return giveUpOn(u, r, ended)
	})
	if errors.Is(err, errReported) {
		return nil
	}
	return err
}

// errReported says that an attempt counts already, or no more.
var errReported = errors.New("the attempt was reported before")

// reportAttempt writes what came of an attempt.
func reportAttempt(u *unit, r webhook.Report, ended time.Time) error {
	var finishedAt any
	if r.Status != webhook.Pending {
		finishedAt = ended
	}
	n, err := u.Exec(`UPDATE deliveries SET status = $1, attempts = $2, next_at = $3, finished_at = $4
		WHERE id = $5 AND workspace_id = $6 AND attempts = $7 AND status = 'pending'`,
		string(r.Status), r.Attempt.Number, timeOrNil(r.NextAt), finishedAt, r.Parcel.DeliveryID, r.Parcel.WorkspaceID, r.Parcel.Attempts)
	if err != nil {
		return err
	}
	if n == 0 {
		return errReported
	}
	return u.Do(`INSERT INTO delivery_attempts (delivery_id, attempt, at, duration, status, error, answer) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.Parcel.DeliveryID, r.Attempt.Number, r.Attempt.At, int64(r.Attempt.Duration), r.Attempt.Status,
		orNil(r.Attempt.Error), orNil(r.Attempt.Answer))
}

// lastStraw tells whether a webhook is given up with one more failure, and then
// locks its workspace. Of failures that come together the next one may be the
// last.
func lastStraw(u *unit, r webhook.Report, ended time.Time) (bool, error) {
	if r.Disable == "" {
		n, err := number(u, `SELECT count(*) FROM webhooks WHERE id = $1 AND COALESCE(failing_since, $2) <= $3 AND failures >= $4`,
			r.Parcel.WebhookID, ended, r.FailingSince, r.Failures-1)
		if err != nil || n == 0 {
			return false, err
		}
	}
	return true, lockWorkspace(u, r.Parcel.WorkspaceID)
}

// giveUpOn disables a webhook that only fails.
func giveUpOn(u *unit, r webhook.Report, at time.Time) error {
	id, reason := r.Parcel.WebhookID, cmp.Or(r.Disable, r.GaveUp)
	u.audienceChanged(r.Parcel.WorkspaceID)
	n, err := u.Exec(`UPDATE webhooks SET enabled = $1, disabled_reason = $2, updated_at = $3 WHERE id = $4 AND enabled AND deleted_at IS NULL`,
		false, reason, at, id)
	if err != nil {
		return err
	}
	if err := dropDeliveries(u, id, at); err != nil || n == 0 {
		return err
	}
	return insertAudit(u, r.Entry)
}

// dropDeliveries ends what waits for a webhook.
func dropDeliveries(u *unit, webhookID string, at time.Time) error {
	err := u.Do(`UPDATE deliveries SET status = 'dropped', next_at = NULL, finished_at = $1 WHERE webhook_id = $2 AND status = 'pending'`, at, webhookID)
	return err
}
