package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/uid"
)

// PurgeDeleted deletes up to limit rows of deleted workflows: their runs, then
// their versions and their keys, finally the workflows themselves. It returns true if there is
// more to do, so that callers can pause and let others write.
func (s *Store) PurgeDeleted(ctx context.Context, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(tx *transaction) error {
		var id, workspaceID *string
		err := tx.Query(`SELECT id, workspace_id FROM workflows WHERE deleted_at IS NOT NULL LIMIT 1`, nil, func(r database.Row) error { return r.Scan(&id, &workspaceID) })
		if more = id != nil; err != nil || !more {
			return err
		}
		runs, err := database.List(tx, `SELECT id FROM runs WHERE workflow_id = $1 LIMIT $2`, []any{*id, limit}, scanText)
		if err != nil {
			return err
		}
		b := newBudget(limit)
		for _, runID := range runs {
			if b.exhausted() {
				return nil
			}
			rows, err := tx.queue.Purge(runID)
			if b.rows -= int64(rows); err != nil {
				return err
			}
			if err := b.purgeRun(tx, runID, `DELETE FROM runs WHERE id = $1`, runID); err != nil {
				return err
			}
		}
		versions := part{"workflow_versions", "workflow_id", "version"}
		if done, err := b.purgePart(tx, versions, *id); err != nil || !done {
			return err
		}
		if n, err := removeWorkflowKeys(tx, *workspaceID, *id, limit); err != nil || n == limit {
			return err
		}
		if n, err := dropHoldersOf(tx, *id, clock.Now(), limit); err != nil || n == limit {
			return err
		}
		return tx.Do(`DELETE FROM workflows WHERE id = $1`, *id)
	})
	return more && err == nil, err
}

// PurgeIdempotency deletes up to limit expired idempotency records. It returns
// true if there may be more.
func (s *Store) PurgeIdempotency(ctx context.Context, now time.Time, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`DELETE FROM idempotency WHERE (workspace_id, route, key_hash) IN
			(SELECT workspace_id, route, key_hash FROM idempotency WHERE expires_at <= $1 LIMIT $2)`, now, limit)
		more = n == int64(limit)
		return err
	})
	return more, err
}

// PurgeTriggerKeys deletes up to limit expired keys of trigger calls. It returns
// true if there may be more.
func (s *Store) PurgeTriggerKeys(ctx context.Context, now time.Time, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(tx *transaction) error {
		n, err := tx.Exec(`DELETE FROM trigger_keys WHERE (workflow_id, trigger_id, hash) IN
			(SELECT workflow_id, trigger_id, hash FROM trigger_keys WHERE expires_at <= $1 LIMIT $2)`, now, limit)
		more = n == int64(limit)
		return err
	})
	return more, err
}

// PurgeOld deletes up to limit rows of each kind that are past their retention:
// deliveries with their attempts, events and deleted webhooks. It finds them in key
// order, which is the order of their age. An event stays while it has a delivery
// or a trigger that has yet to fire on it. It returns true if there may be more.
func (s *Store) PurgeOld(ctx context.Context, events time.Time, limit int) (bool, error) {
	const oldest = `(SELECT id FROM deliveries ORDER BY id LIMIT $2)`
	more := false
	err := s.write(ctx, func(tx *transaction) error {
		more = false
		if err := tx.Do(`DELETE FROM delivery_attempts WHERE delivery_id IN (SELECT id FROM deliveries WHERE created_at < $1 AND id IN `+oldest+`)`,
			events, limit); err != nil {
			return err
		}
		for _, purge := range []struct {
			statement string
			args      []any
		}{
			{`DELETE FROM deliveries WHERE created_at < $1 AND id IN ` + oldest, []any{events, limit}},
			{`DELETE FROM events WHERE seq IN (SELECT seq FROM events e WHERE id < $3 AND at < $1
				AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id)
				AND NOT EXISTS (SELECT 1 FROM pending_triggers p WHERE p.event_id = e.id) ORDER BY id LIMIT $2)`, []any{events, limit, uid.LowerBound(uid.Event, events)}},
			{`DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks WHERE deleted_at < $1 LIMIT $2)`, []any{events, limit}},
		} {
			n, err := tx.Exec(purge.statement, purge.args...)
			if err != nil {
				return err
			}
			more = more || n == int64(limit)
		}
		return nil
	})
	return more, err
}

func scanText(r database.Row) (text string, err error) {
	err = r.Scan(&text)
	return text, err
}
