package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
)

// PurgeDeleted removes up to limit rows of deleted workflows: their runs, then
// their versions, last the workflows themselves. It answers true when there is
// more to do, so that callers can pause in between and let others write.
func (s *Store) PurgeDeleted(ctx context.Context, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(u *unit) error {
		id, err := one(u, `SELECT id FROM workflows WHERE deleted_at IS NOT NULL LIMIT 1`, nil, scanText)
		if more = id != nil; err != nil || !more {
			return err
		}
		runs, err := list(u, `SELECT id FROM runs WHERE workflow_id = $1 LIMIT $2`, []any{*id, limit}, scanText)
		if err != nil {
			return err
		}
		b := newBudget(limit)
		for _, runID := range runs {
			if b.spent() {
				return nil
			}
			if err := s.purgeQueued(u, b, runID); err != nil {
				return err
			}
			if err := b.purgeRun(u, runID, `DELETE FROM runs WHERE id = $1`, runID); err != nil {
				return err
			}
		}
		versions := part{"workflow_versions", "workflow_id", "version"}
		if whole, err := b.purgePart(u, versions, *id); err != nil || !whole {
			return err
		}
		err = u.Do(`DELETE FROM workflows WHERE id = $1`, *id)
		return err
	})
	return more && err == nil, err
}

// purgeQueued removes the row of a run from the queue, with what it may still
// hold.
func (s *Store) purgeQueued(u *unit, b *budget, runID string) error {
	if s.cluster == nil {
		return b.exec(u, `DELETE FROM run_queue WHERE run_id = $1`, runID)
	}
	return u.Query(`DELETE FROM run_queue WHERE run_id = $1 RETURNING workspace_id, slot, parked`, []any{runID}, func(r Row) error {
		b.rows--
		var (
			workspaceID  string
			slot, parked bool
		)
		if err := r.Scan(&workspaceID, &slot, &parked); err != nil {
			return err
		}
		u.giveBack(workspaceID, slot, parked)
		return nil
	})
}

// PurgeIdempotency removes up to limit saved answers that have expired. It
// answers true when there may be more.
func (s *Store) PurgeIdempotency(ctx context.Context, now time.Time, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(u *unit) error {
		n, err := u.Exec(`DELETE FROM idempotency WHERE (workspace_id, route, key_hash) IN
			(SELECT workspace_id, route, key_hash FROM idempotency WHERE expires_at <= $1 LIMIT $2)`, now, limit)
		more = n == int64(limit)
		return err
	})
	return more, err
}

// PurgeTriggerKeys removes up to limit keys of calls that have expired. It
// answers true when there may be more.
func (s *Store) PurgeTriggerKeys(ctx context.Context, now time.Time, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(u *unit) error {
		n, err := u.Exec(`DELETE FROM trigger_keys WHERE (workflow_id, trigger_id, hash) IN
			(SELECT workflow_id, trigger_id, hash FROM trigger_keys WHERE expires_at <= $1 LIMIT $2)`, now, limit)
		more = n == int64(limit)
		return err
	})
	return more, err
}

// PurgeOld removes up to limit rows of each kind that are older than they are
// kept: deliveries with their attempts, events, webhooks that were deleted,
// audit entries. All of them are found by the order of their keys, which is that
// of their age. An event stays as long as one of its deliveries does, or a
// trigger has to fire on it. It answers true when there may be more.
func (s *Store) PurgeOld(ctx context.Context, events, entries time.Time, limit int) (bool, error) {
	const oldest = `(SELECT id FROM deliveries ORDER BY id LIMIT $2)`
	more := false
	err := s.write(ctx, func(u *unit) error {
		more = false
		if err := u.Do(`DELETE FROM delivery_attempts WHERE delivery_id IN (SELECT id FROM deliveries WHERE created_at < $1 AND id IN `+oldest+`)`,
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
				AND NOT EXISTS (SELECT 1 FROM occasions o WHERE o.event_id = e.id) ORDER BY id LIMIT $2)`, []any{events, limit, uid.Least(uid.Event, events)}},
			{`DELETE FROM audit WHERE at < $1 AND id IN (SELECT id FROM audit ORDER BY id LIMIT $2)`, []any{entries, limit}},
			{`DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks WHERE deleted_at < $1 LIMIT $2)`, []any{events, limit}},
		} {
			n, err := u.Exec(purge.statement, purge.args...)
			if err != nil {
				return err
			}
			more = more || n == int64(limit)
		}
		return nil
	})
	return more, err
}

func scanText(r Row) (text string, err error) {
	err = r.Scan(&text)
	return text, err
}
