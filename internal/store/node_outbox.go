package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/webhook"
)

// NodeOutbox is the webhook.Outbox of one of several nodes. Each webhook is served
// by one node at a time, which keeps its deliveries in order and bounds its
// requests in flight. A node claims webhooks that have something to send and no
// owner. It releases them when there is nothing left to send, or when it stops.
type NodeOutbox struct {
	Webhooks
	node string
}

// OutboxOf returns the outbox of a node. Its statements are for PostgreSQL only.
func (s Webhooks) OutboxOf(node string) NodeOutbox { return NodeOutbox{s, node} }

// claimBatch bounds how many webhooks one transaction claims.
const claimBatch = 200

// DueDeliveries implements webhook.Outbox. It lists due deliveries of the webhooks
// that the node owns or can claim.
func (o NodeOutbox) DueDeliveries(ctx context.Context, now time.Time, except []string, limit int) ([]webhook.Due, error) {
	unclaimed, err := readValue[int](ctx, o.db, `SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.next_at <= $1
		AND NOT EXISTS (SELECT 1 FROM webhook_owners o WHERE o.webhook_id = d.webhook_id) LIMIT 1) u`, now)
	if err == nil && unclaimed > 0 {
		err = o.claimWebhooks(ctx, now)
	}
	if err != nil {
		return nil, err
	}
	statement, args := selectDue+`JOIN webhook_owners o ON o.webhook_id = d.webhook_id AND o.node = $3 WHERE d.next_at <= $1`, []any{now, limit, o.node}
	statement, args = database.NotIn(statement, "d.webhook_id", except, args)
	var due []webhook.Due
	err = o.db.read(ctx, func(c database.Conn) (err error) {
		due, err = database.List(c, statement+` ORDER BY d.next_at, d.seq LIMIT $2`, args, scanDue)
		return err
	})
	return due, err
}

// claimWebhooks makes the node the owner of webhooks that have none.
func (o NodeOutbox) claimWebhooks(ctx context.Context, now time.Time) error {
	return o.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`INSERT INTO webhook_owners (webhook_id, node) SELECT DISTINCT d.webhook_id, $1 FROM deliveries d WHERE d.next_at <= $2
			AND NOT EXISTS (SELECT 1 FROM webhook_owners o WHERE o.webhook_id = d.webhook_id) ORDER BY d.webhook_id LIMIT $3 ON CONFLICT (webhook_id) DO NOTHING`,
			o.node, now, claimBatch)
	})
}

// ReturnWebhooks releases the webhooks that have nothing to send, so that any
// node can claim them next.
func (o NodeOutbox) ReturnWebhooks(ctx context.Context) error {
	return o.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`DELETE FROM webhook_owners WHERE node = $1
			AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = webhook_owners.webhook_id AND d.status = 'pending')`, o.node)
	})
}
