package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/webhook"
)

// What there is for a webhook is sent by one node at a time: only so are the
// order of its deliveries and the number of requests under way what they should
// be. A node takes a webhook that has something to send and that nobody has; it
// gives it back when there is nothing more, or with its end.

// takenAtOnce bounds how many webhooks one unit takes.
const takenAtOnce = 200

// dueHere lists deliveries that are due, of the webhooks that this node has or
// can take.
func (s *Store) dueHere(ctx context.Context, now time.Time, except []string, limit int) ([]webhook.Due, error) {
	unclaimed := 0
	err := s.read(ctx, func(c Conn) (err error) {
		unclaimed, err = number(c, `SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.next_at <= $1
			AND NOT EXISTS (SELECT 1 FROM couriers c WHERE c.webhook_id = d.webhook_id) LIMIT 1) u`, now)
		return err
	})
	if err == nil && unclaimed > 0 {
		err = s.takeWebhooks(ctx, now)
	}
	if err != nil {
		return nil, err
	}
	statement, args := selectDue+`JOIN couriers c ON c.webhook_id = d.webhook_id AND c.node = $3 WHERE d.next_at <= $1`, []any{now, limit, s.cluster.Node}
	statement, args = without(statement, "d.webhook_id", except, args)
	var due []webhook.Due
	err = s.read(ctx, func(c Conn) (err error) {
		due, err = list(c, statement+` ORDER BY d.next_at, d.seq LIMIT $2`, args, scanDue)
		return err
	})
	return due, err
}

// takeWebhooks makes this node the one that sends for webhooks that nobody sends
// for.
func (s *Store) takeWebhooks(ctx context.Context, now time.Time) error {
	return s.write(ctx, func(u *unit) error {
		return u.Do(`INSERT INTO couriers (webhook_id, node) SELECT DISTINCT d.webhook_id, $1 FROM deliveries d WHERE d.next_at <= $2
			AND NOT EXISTS (SELECT 1 FROM couriers c WHERE c.webhook_id = d.webhook_id) ORDER BY d.webhook_id LIMIT $3 ON CONFLICT (webhook_id) DO NOTHING`,
			s.cluster.Node, now, takenAtOnce)
	})
}

// ReturnWebhooks gives back the webhooks for which there is nothing to send:
// whoever is near the next thing takes them.
func (s *Store) ReturnWebhooks(ctx context.Context) error {
	return s.write(ctx, func(u *unit) error {
		return u.Do(`DELETE FROM couriers WHERE node = $1
			AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = couriers.webhook_id AND d.status = 'pending')`, s.cluster.Node)
	})
}
