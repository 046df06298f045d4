package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// Stats is a snapshot of a driver's counters.
type Stats struct {
	Transactions map[string]int64
	// Groups is how many transactions shared a commit, and Commits how long it
	// took until they were durable.
	Groups, Commits counter.Snapshot
	// Errors counts errors of the database, by the driver's kinds.
	Errors map[string]int64
	// Waiting is the number of transactions that wait to be written.
	Waiting int
	// Connections counts the connections of this process by state. It is nil for
	// drivers without a connection pool.
	Connections map[string]int64
}

// Outcomes of a transaction.
const (
	TransactionCommitted  = "done"
	TransactionRolledBack = "rolled_back" // a condition did not hold; nothing was written
	TransactionFailed     = "failed"      // the database rejected it, or its commit
)

// Backlog says how long the oldest pending work has been waiting. A field is nil if
// nothing of its kind is pending.
type Backlog struct {
	// Ready is when the first run that no node owns was due.
	Ready *time.Time
	// Undelivered is when the oldest pending delivery was recorded, and Due when
	// the first pending delivery was due.
	Undelivered, Due *time.Time
}

// Backlog reads the backlog over all workspaces.
func (s Runs) Backlog(ctx context.Context, now time.Time) (Backlog, error) {
	return view(ctx, s.db, func(c database.Conn) (b Backlog, err error) {
		if b.Ready, err = runqueue.DueSince(c, now); err != nil {
			return b, err
		}
		for _, q := range []struct {
			statement string
			args      []any
			into      **time.Time
		}{
			{`SELECT min(next_at) FROM deliveries WHERE next_at <= $1`, []any{now}, &b.Due},
			// Deliveries are numbered in order, and the index on next_at holds
			// their numbers. Without + 0 the database would scan all deliveries
			// for the first match.
			{`SELECT created_at FROM deliveries WHERE seq = (SELECT min(seq + 0) FROM deliveries WHERE next_at IS NOT NULL)`, nil, &b.Undelivered},
		} {
			if err := c.Query(q.statement, q.args, func(r database.Row) error { return r.Scan(q.into) }); err != nil {
				return b, err
			}
		}
		return b, nil
	})
}
