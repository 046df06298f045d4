package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/clock"
)

const (
	// horizonEvery is how often, at most, the database is asked who holds it back,
	// however many look.
	horizonEvery = 5 * time.Second
	// horizonTime is how long it may take to answer.
	horizonTime = time.Second
)

// horizon is what is known of transactions that keep the database from removing
// rows that nobody needs any more.
type horizon struct {
	mu     sync.Mutex
	asked  time.Time
	oldest time.Duration
	err    error
	// first is when sessions were seen first whose beginning is hidden from us.
	first map[holder]time.Time
}

// holder is a session, and the transaction since which it sees nothing new.
type holder struct {
	pid   int32
	since string
}

// OldestTransaction is the age of the oldest transaction, of anybody, that keeps
// this database from cleaning up. Who asks often gets an answer of some seconds
// ago.
func (db *DB) OldestTransaction(ctx context.Context) (time.Duration, error) {
	h := &db.horizon
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked.IsZero() || time.Since(h.asked) >= horizonEvery {
		ctx, cancel := context.WithTimeout(ctx, horizonTime)
		defer cancel()
		h.oldest, h.err = h.ask(ctx, db.pool)
		h.asked = clock.Mark()
	}
	return h.oldest, h.err
}

// openTransactions lists sessions that still see, or have written, what vacuum
// cannot remove for that reason. Vacuum itself is not among them: it does not
// hold back another one.
const openTransactions = `SELECT pid, COALESCE(backend_xid, backend_xmin)::text, (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint
	FROM pg_stat_activity a WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
	AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)`

func (h *horizon) ask(ctx context.Context, pool *pgxpool.Pool) (oldest time.Duration, err error) {
	rows, err := pool.Query(ctx, openTransactions)
	if err != nil {
		return 0, err
	}
	var (
		who   holder
		age   *int64
		now   = clock.Mark()
		first = map[holder]time.Time{}
	)
	_, err = pgx.ForEachRow(rows, []any{&who.pid, &who.since, &age}, func() error {
		if age != nil {
			oldest = max(oldest, time.Duration(*age)*time.Microsecond)
			return nil
		}
		// Of sessions of other roles only those who may read all statistics see
		// when they began. That one lasts can be seen all the same.
		first[who] = now
		if seen, ok := h.first[who]; ok {
			first[who] = seen
		}
		oldest = max(oldest, now.Sub(first[who]))
		return nil
	})
	if err == nil {
		h.first = first
	}
	return oldest, err
}
