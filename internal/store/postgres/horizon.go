package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/clock"
)

// horizonInterval bounds how often the database is queried, however many callers
// there are.
const horizonInterval = 5 * time.Second

// horizon caches the age of the transactions that keep vacuum from removing dead
// rows.
type horizon struct {
	mu        sync.Mutex
	queriedAt time.Time
	oldest    time.Duration
	err       error
	// firstSeen is when a session was first seen whose start time is hidden from
	// this role.
	firstSeen map[holder]time.Time
}

// holder is a session and the transaction that determines its snapshot.
type holder struct {
	pid   int32
	since string
}

// OldestTransaction returns the age of the oldest transaction, of any client,
// that holds back vacuum in this database. The result may be a few seconds old.
func (db *DB) OldestTransaction(ctx context.Context) (time.Duration, error) {
	h := &db.horizon
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.queriedAt.IsZero() || time.Since(h.queriedAt) >= horizonInterval {
		ctx, cancel := context.WithTimeout(ctx, db.limits.horizon)
		defer cancel()
		h.oldest, h.err = h.query(ctx, db.pool)
		h.queriedAt = clock.Monotonic()
	}
	return h.oldest, h.err
}

// openTransactions lists sessions with a snapshot or a transaction id that vacuum
// has to respect. Vacuum itself is not included: it does not hold back other
// vacuums.
const openTransactions = `SELECT pid, COALESCE(backend_xid, backend_xmin)::text, (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint
	FROM pg_stat_activity a WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
	AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)`

func (h *horizon) query(ctx context.Context, pool *pgxpool.Pool) (oldest time.Duration, err error) {
	rows, err := pool.Query(ctx, openTransactions)
	if err != nil {
		return 0, err
	}
	var (
		session   holder
		age       *int64
		now       = clock.Monotonic()
		firstSeen = map[holder]time.Time{}
	)
	_, err = pgx.ForEachRow(rows, []any{&session.pid, &session.since, &age}, func() error {
		if age != nil {
			oldest = max(oldest, time.Duration(*age)*time.Microsecond)
			return nil
		}
		// The start time of other roles' sessions is visible only to members of
		// pg_read_all_stats. How long a session has been there can be observed
		// anyway.
		firstSeen[session] = now
		if seen, ok := h.firstSeen[session]; ok {
			firstSeen[session] = seen
		}
		oldest = max(oldest, now.Sub(firstSeen[session]))
		return nil
	})
	if err == nil {
		h.firstSeen = firstSeen
	}
	return oldest, err
}
