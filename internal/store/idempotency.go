package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/idempotency"
)

// Once implements idempotency.Store. Units run one after the other, or block
// on the record's key: of two requests with one key the second finds the
// record of the first.
func (s *Store) Once(ctx context.Context, record idempotency.Record, now time.Time, effect func(context.Context) ([]byte, error)) (*idempotency.Record, error) {
	var earlier *idempotency.Record
	err := s.write(ctx, func(u *unit) error {
		if err := u.Lock(Lock{Kind: lockOnce, Key: record.WorkspaceID + " " + record.Route + " " + record.KeyHash}); err != nil {
			return err
		}
		key := []any{record.WorkspaceID, record.Route, record.KeyHash}
		var err error
		earlier, err = one(u, `SELECT workspace_id, route, key_hash, fingerprint, answer, expires_at FROM idempotency
			WHERE workspace_id = $1 AND route = $2 AND key_hash = $3`, key, scanRecord)
		if err != nil {
			return err
		}
		if earlier != nil && earlier.ExpiresAt.After(now) {
			return nil
		}
		earlier = nil
		if err := u.Do(`DELETE FROM idempotency WHERE workspace_id = $1 AND route = $2 AND key_hash = $3`, key...); err != nil {
			return err
		}
		sealed, err := effect(within(ctx, u))
		if err != nil {
			return err
		}
		err = u.Do(`INSERT INTO idempotency (workspace_id, route, key_hash, fingerprint, expires_at, answer) VALUES ($1, $2, $3, $4, $5, $6)`,
			record.WorkspaceID, record.Route, record.KeyHash, record.Fingerprint, record.ExpiresAt, sealed)
		return err
	})
	return earlier, err
}

func scanRecord(r Row) (rec idempotency.Record, err error) {
	err = r.Scan(&rec.WorkspaceID, &rec.Route, &rec.KeyHash, &rec.Fingerprint, &rec.Sealed, &rec.ExpiresAt)
	return rec, err
}
