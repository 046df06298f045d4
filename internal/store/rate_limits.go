package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/database"
)

// RateLimits implements ratelimit.TokenStore.
type RateLimits struct{ db *DB }

// TakeTokens implements ratelimit.TokenStore. It is a single conditional write: a
// concurrent caller blocks on the row and then sees what the first one took.
func (s RateLimits) TakeTokens(ctx context.Context, workspaceID string, window time.Time, want, limit int) (granted, left int, err error) {
	if want <= 0 || limit <= 0 {
		return 0, max(0, limit), nil
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		granted, left = 0, 0 // no row means that nothing is left
		return tx.Query(`INSERT INTO rate_windows (window_start, workspace_id, taken, granted) VALUES ($1, $2, $3, $3)
			ON CONFLICT (window_start, workspace_id) DO UPDATE SET
			granted = CASE WHEN rate_windows.taken + $4 > $5 THEN $5 - rate_windows.taken ELSE $4 END,
			taken = CASE WHEN rate_windows.taken + $4 > $5 THEN $5 ELSE rate_windows.taken + $4 END
			WHERE rate_windows.taken < $5
			RETURNING granted, $5 - taken`,
			[]any{window, workspaceID, min(want, limit), want, limit}, func(r database.Row) error { return r.Scan(&granted, &left) })
	})
	if err != nil {
		return 0, 0, err
	}
	return granted, left, nil
}

// PurgeTokens deletes up to limit windows that began before the given time. It
// returns true if there may be more.
func (s RateLimits) PurgeTokens(ctx context.Context, before time.Time, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		n, err := tx.Exec(`DELETE FROM rate_windows WHERE (window_start, workspace_id) IN
			(SELECT window_start, workspace_id FROM rate_windows WHERE window_start < $1 LIMIT $2)`, before, limit)
		return n == int64(limit), err
	})
}
