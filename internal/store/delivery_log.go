package store

import (
	"context"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/webhook"
)

const (
	selectDelivery = `SELECT d.id, d.workspace_id, d.webhook_id, d.event_id, e.type, d.run_id, e.workflow_id, e.sample, d.status, d.attempts,
	d.next_at, d.created_at, d.finished_at, a.attempt, a.at, a.duration, a.status, a.error FROM `
	withAttempt = ` LEFT JOIN delivery_attempts a ON a.delivery_id = d.id AND a.attempt = d.attempts `
	fromLog     = `deliveries d JOIN events e ON e.id = d.event_id` + withAttempt
)

func scanDelivery(r database.Row) (d webhook.Delivery, err error) {
	var last webhook.Attempt
	err = r.Scan(&d.ID, &d.WorkspaceID, &d.WebhookID, &d.EventID, (*string)(&d.Event), &d.RunID, &d.WorkflowID, &d.Sample, (*string)(&d.Status), &d.Attempts,
		&d.NextAt, &d.CreatedAt, &d.FinishedAt, &last.Number, &last.At, (*int64)(&last.Duration), &last.Status, &last.Error)
	if last.Number > 0 {
		d.Last = &last
	}
	return d, err
}

// Deliveries implements webhook.Log. It scans one range of one index; the type of
// the event is checked row by row.
func (s Webhooks) Deliveries(ctx context.Context, workspaceID, webhookID string, filter webhook.Filter, page paging.Request) (paging.Page[webhook.Delivery], error) {
	from, below := filter.Span()
	args := []any{webhookID, workspaceID, from, min(below, before(page.After)), maxScanned}
	wanted := `d.webhook_id = $1 AND d.workspace_id = $2 AND d.id >= $3 AND d.id < $4`
	if filter.Status != "" {
		args = append(args, string(filter.Status))
		wanted += ` AND d.status = $` + strconv.Itoa(len(args))
	}
	statement := selectDelivery + fromLog + `WHERE ` + wanted
	if filter.RunID != "" {
		// A run has few events: the outer join makes the database start from
		// them, whatever its statistics say about the sizes of the tables.
		args = append(args, filter.RunID)
		statement = selectDelivery + `events e LEFT JOIN deliveries d ON d.event_id = e.id AND ` + wanted + withAttempt +
			`WHERE e.workspace_id = $2 AND e.run_id = $` + strconv.Itoa(len(args))
	}
	return view(ctx, s.db, func(c database.Conn) (found paging.Page[webhook.Delivery], err error) {
		found, err = scanPage(c, statement+` ORDER BY d.id DESC LIMIT $5`, args, page.Limit, func(d webhook.Delivery) string { return d.ID },
			func(r database.Row) (webhook.Delivery, bool, error) {
				d, err := scanDelivery(r)
				return d, d.ID != "" && (filter.Event == "" || d.Event == filter.Event), err
			})
		return found, err
	})
}

// Delivery implements webhook.Log.
func (s Webhooks) Delivery(ctx context.Context, workspaceID, id string) (*webhook.Detail, error) {
	return view(ctx, s.db, func(c database.Conn) (detail *webhook.Detail, err error) {
		d, err := database.One(c, selectDelivery+fromLog+`JOIN webhooks w ON w.id = d.webhook_id AND w.deleted_at IS NULL WHERE d.id = $1 AND d.workspace_id = $2`,
			[]any{id, workspaceID}, scanDelivery)
		if err != nil || d == nil {
			return detail, err
		}
		detail = &webhook.Detail{Delivery: *d}
		if err := c.Query(`SELECT body FROM events WHERE id = $1 AND workspace_id = $2`, []any{d.EventID, workspaceID},
			func(r database.Row) error { return r.Scan(&detail.Body) }); err != nil {
			return detail, err
		}
		detail.Log, err = database.List(c, `SELECT attempt, at, duration, status, error, response FROM delivery_attempts WHERE delivery_id = $1 ORDER BY attempt`,
			[]any{id}, func(r database.Row) (a webhook.Attempt, err error) {
				err = r.Scan(&a.Number, &a.At, (*int64)(&a.Duration), &a.Status, &a.Error, &a.Response)
				return a, err
			})
		return detail, err
	})
}

// SendSamples implements webhook.Log.
func (s Webhooks) SendSamples(ctx context.Context, workspaceID, webhookID string, samples []event.Event, entry audit.Entry) ([]webhook.Delivery, bool, error) {
	var (
		sent  []webhook.Delivery
		found bool
	)
	err := s.db.write(ctx, func(tx *transaction) error {
		sent = nil // the transaction may be retried
		if err := tx.Lock(database.WorkspaceLock(workspaceID)); err != nil {
			return err
		}
		n, err := database.Number(tx, `SELECT count(*) FROM webhooks WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`, webhookID, workspaceID)
		if found = n == 1; err != nil || !found {
			return err
		}
		for _, e := range samples {
			id := uid.At(uid.Delivery, e.At)
			if err := insertEvent(tx, e, true); err != nil {
				return err
			}
			if err := insertDelivery(tx, id, webhookID, e, e.At); err != nil {
				return err
			}
			d, err := database.One(tx, selectDelivery+fromLog+`WHERE d.id = $1 AND d.workspace_id = $2`, []any{id, workspaceID}, scanDelivery)
			if err != nil {
				return err
			}
			sent = append(sent, *d)
		}
		return insertAudit(tx, entry)
	})
	return sent, found, err
}

// Redeliverable implements webhook.Log.
func (s Webhooks) Redeliverable(ctx context.Context, workspaceID, webhookID string, status webhook.Status, from, below string, limit int) ([]string, error) {
	return readList(ctx, s.db, `SELECT d.id FROM deliveries d WHERE d.webhook_id = $1 AND d.workspace_id = $2 AND d.status = $3 AND d.id >= $4 AND d.id < $5
		AND NOT EXISTS (SELECT 1 FROM deliveries n WHERE n.event_id = d.event_id AND n.webhook_id = d.webhook_id AND n.id > d.id)
		ORDER BY d.id LIMIT $6`, []any{webhookID, workspaceID, string(status), from, below, limit}, scanText)
}

// Redeliver implements webhook.Log.
func (s Webhooks) Redeliver(ctx context.Context, workspaceID, webhookID string, ids []string, at time.Time, entry *audit.Entry) ([]string, webhook.Outcome, error) {
	var (
		made    []string
		outcome webhook.Outcome
	)
	err := s.db.write(ctx, func(tx *transaction) error {
		made, outcome = nil, webhook.Done // the transaction may be retried
		if err := tx.Lock(database.WorkspaceLock(workspaceID)); err != nil {
			return err
		}
		n, err := database.Number(tx, `SELECT count(*) FROM webhooks WHERE id = $1 AND workspace_id = $2 AND enabled AND deleted_at IS NULL`, webhookID, workspaceID)
		if err != nil {
			return err
		}
		if n == 0 {
			outcome = webhook.Disabled
			return nil
		}
		for _, id := range ids {
			e, err := database.One(tx, `SELECT event_id, run_id FROM deliveries WHERE id = $1 AND workspace_id = $2 AND webhook_id = $3`,
				[]any{id, workspaceID, webhookID}, func(r database.Row) (e event.Event, err error) {
					e.WorkspaceID = workspaceID
					return e, r.Scan(&e.ID, &e.RunID)
				})
			if err != nil {
				return err
			}
			if e == nil {
				continue // purged meanwhile
			}
			again := uid.At(uid.Delivery, at)
			if err := insertDelivery(tx, again, webhookID, *e, at); err != nil {
				return err
			}
			made = append(made, again)
		}
		if entry == nil || len(made) == 0 {
			return nil
		}
		return insertAudit(tx, *entry)
	})
	return made, outcome, err
}
