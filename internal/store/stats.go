package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/tally"
)

// Stats is what a driver has done so far, and what it is busy with.
type Stats struct {
	// Units counts the units that were asked for by what came of them.
	Units map[string]int64
	// Groups is how many units shared a commit, and Commits how long it took
	// until they were durable.
	Groups, Commits tally.Snapshot
	// Errors counts what the database itself refused, by the driver's kinds.
	Errors map[string]int64
	// Waiting is how many units wait to be written.
	Waiting int
	// Connections counts those that this process may have, by what they do; nil
	// where they are no matter.
	Connections map[string]int64
}

// What can come of a unit.
const (
	UnitDone       = "done"
	UnitRolledBack = "rolled_back" // a condition did not hold: nothing of it was written
	UnitFailed     = "failed"      // the database refused it, or its commit
)

// Backlog is since when the oldest of what is to be done waits; nil: there is
// nothing.
type Backlog struct {
	// Ready is when the first run was due that nobody holds.
	Ready *time.Time
	// Undelivered is when the oldest delivery was recorded that was neither
	// delivered nor given up, and Due when the first was due that still is.
	Undelivered, Due *time.Time
}

// Backlog reads, over all workspaces, what waits.
func (s *Store) Backlog(ctx context.Context, now time.Time) (Backlog, error) {
	var b Backlog
	err := s.read(ctx, func(c Conn) error {
		for _, q := range []struct {
			statement string
			args      []any
			into      **time.Time
		}{
			{`SELECT wake_at FROM run_queue WHERE node IS NULL AND wake_at <= $1` + notDeleted + ` ORDER BY wake_at LIMIT 1`, []any{now}, &b.Ready},
			{`SELECT min(next_at) FROM deliveries WHERE next_at <= $1`, []any{now}, &b.Due},
			// The numbers of deliveries grow, and are in the index of those to be
			// sent; without + 0 all others would be walked through to find the first.
			{`SELECT created_at FROM deliveries WHERE seq = (SELECT min(seq + 0) FROM deliveries WHERE next_at IS NOT NULL)`, nil, &b.Undelivered},
		} {
			if err := c.Query(q.statement, q.args, func(r Row) error { return r.Scan(q.into) }); err != nil {
				return err
			}
		}
		return nil
	})
	return b, err
}
