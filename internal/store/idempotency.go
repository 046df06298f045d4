package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/txn"
)

// Idempotency implements idempotency.Store.
type Idempotency struct{ db *DB }

var idempotencyTable = Table{Name: "idempotency", Key: "workspace_id route key_hash", Text: "workspace_id route key_hash", Int: "expires_at", Bytes: "fingerprint response"}

const selectRecord = `SELECT workspace_id, route, key_hash, fingerprint, response, expires_at FROM idempotency
	WHERE workspace_id = $1 AND route = $2 AND key_hash = $3`

// IdempotencyRecord implements idempotency.Store.
func (s Idempotency) IdempotencyRecord(ctx context.Context, record idempotency.Record, now time.Time) (found *idempotency.Record, err error) {
	found, err = readOne(ctx, s.db, selectRecord, []any{record.WorkspaceID, record.Route, record.KeyHash}, scanRecord)
	if err != nil || found == nil || !found.ExpiresAt.After(now) {
		return nil, err
	}
	return found, nil
}

// WithIdempotencyKey implements idempotency.Store. Transactions run one at a time
// or block on the record's key, so the second of two requests with the same key
// finds the record of the first.
func (s Idempotency) WithIdempotencyKey(ctx context.Context, record idempotency.Record, now time.Time, effect func(context.Context, txn.Tx) ([]byte, error)) (*idempotency.Record, error) {
	return transact(ctx, s.db, func(tx *transaction) (*idempotency.Record, error) {
		if err := tx.Lock(database.Lock{Kind: database.LockIdempotencyKey, Key: record.WorkspaceID + " " + record.Route + " " + record.KeyHash}); err != nil {
			return nil, err
		}
		key := []any{record.WorkspaceID, record.Route, record.KeyHash}
		earlier, err := database.One(tx, selectRecord, key, scanRecord)
		if err != nil || earlier != nil && earlier.ExpiresAt.After(now) {
			return earlier, err
		}
		if err := tx.Do(`DELETE FROM idempotency WHERE workspace_id = $1 AND route = $2 AND key_hash = $3`, key...); err != nil {
			return nil, err
		}
		// What the effect begins, such as a watch of its run, may outlive the
		// transaction, so this context must not end with it.
		sealed, err := effect(txn.Mark(ctx), tx)
		if err != nil {
			return nil, err
		}
		return nil, tx.Do(`INSERT INTO idempotency (workspace_id, route, key_hash, fingerprint, expires_at, response) VALUES ($1, $2, $3, $4, $5, $6)`,
			record.WorkspaceID, record.Route, record.KeyHash, record.Fingerprint, record.ExpiresAt, sealed)
	})
}

func scanRecord(r database.Row) (rec idempotency.Record, err error) {
	err = r.Scan(&rec.WorkspaceID, &rec.Route, &rec.KeyHash, &rec.Fingerprint, &rec.Sealed, &rec.ExpiresAt)
	return rec, err
}

// PurgeIdempotency deletes up to limit expired idempotency records. It returns
// true if there may be more.
func (s Idempotency) PurgeIdempotency(ctx context.Context, now time.Time, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		n, err := tx.Exec(`DELETE FROM idempotency WHERE (workspace_id, route, key_hash) IN
			(SELECT workspace_id, route, key_hash FROM idempotency WHERE expires_at <= $1 LIMIT $2)`, now, limit)
		return n == int64(limit), err
	})
}
