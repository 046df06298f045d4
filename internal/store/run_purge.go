package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
)

// part is a table with rows that belong to something: which column says to
// what, and which tell its rows apart.
type part struct{ table, of, key string }

// partsOfRun are the tables that hold what belongs to a run, beside its own row
// and its row in the queue.
var partsOfRun = []part{
	{"steps", "run_id", "path"},
	{"run_drafts", "run_id", "run_id"},
	{"early_answers", "run_id", "path"},
	{"step_attempts", "run_id", "path, attempt"},
	{"step_logs", "run_id", "rev, line"},
}

// budget is what one batch of a purge may still do: others wait to write.
type budget struct {
	rows  int64
	until time.Time
}

const (
	// purgeTime is how long a batch may take. Rows with large bodies take longer
	// than others.
	purgeTime = 50 * time.Millisecond
	// purgeChunk is how many rows go between two looks at the clock: each may hold
	// a megabyte.
	purgeChunk = 10
)

func newBudget(rows int) *budget {
	return &budget{rows: int64(rows), until: clock.Now().Add(purgeTime)}
}

// spent tells whether there is no room for another run: its row, and its row in
// the queue or the note of what remains of it.
func (b *budget) spent() bool { return b.rows < 2 || clock.Now().After(b.until) }

func (b *budget) exec(u *unit, statement string, args ...any) error {
	n, err := u.Exec(statement, args...)
	b.rows -= n
	return err
}

// purgeRun removes a run with the statement given for its own row, and as much
// of what belongs to it as the budget allows. Without its row the run is gone
// for everybody; what is left of it then is noted and goes with later batches.
func (b *budget) purgeRun(u *unit, runID, statement string, args ...any) error {
	n, err := u.Exec(statement, args...)
	if b.rows -= n; err != nil || n == 0 {
		return err
	}
	whole, err := b.purgeParts(u, runID)
	if err != nil || whole {
		return err
	}
	err = u.Do(`INSERT INTO run_remains (run_id) VALUES ($1)`, runID)
	return err
}

// purgeParts removes what belongs to a run and answers whether nothing is left.
func (b *budget) purgeParts(u *unit, runID string) (bool, error) {
	for _, p := range partsOfRun {
		if whole, err := b.purgePart(u, p, runID); err != nil || !whole {
			return false, err
		}
	}
	return true, nil
}

func (b *budget) purgePart(u *unit, p part, owner string) (bool, error) {
	statement := `DELETE FROM ` + p.table + ` WHERE ` + p.of + ` = $1 AND (` + p.key + `) IN
		(SELECT ` + p.key + ` FROM ` + p.table + ` WHERE ` + p.of + ` = $1 LIMIT $2)`
	for b.rows > 0 && !clock.Now().After(b.until) {
		chunk := min(b.rows, purgeChunk)
		n, err := u.Exec(statement, owner, chunk)
		if b.rows -= n; err != nil || n < chunk {
			return err == nil, err
		}
	}
	return false, nil
}

// PurgeRemains removes up to limit rows of runs that are gone. It answers true
// when there may be more.
func (s *Store) PurgeRemains(ctx context.Context, limit int) (bool, error) {
	more := false
	err := s.write(ctx, func(u *unit) error {
		more = true
		b := newBudget(limit)
		for {
			runID, err := one(u, `SELECT run_id FROM run_remains LIMIT 1`, nil, scanText)
			if err != nil || runID == nil {
				more = false
				return err
			}
			whole, err := b.purgeParts(u, *runID)
			if err != nil || !whole {
				return err
			}
			if err := u.Do(`DELETE FROM run_remains WHERE run_id = $1`, *runID); err != nil {
				return err
			}
		}
	})
	return more && err == nil, err
}

// NextKept implements run.PruneStore. Workflows that have no runs are passed over
// where they are, and not one by one.
func (s *Store) NextKept(ctx context.Context, after string) (*run.Kept, error) {
	var next *run.Kept
	err := s.read(ctx, func(c Conn) (err error) {
		next, err = one(c, `SELECT w.id, s.plan FROM workflows w JOIN workspaces s ON s.id = w.workspace_id
			WHERE w.id > $1 AND w.deleted_at IS NULL AND (SELECT r.id FROM runs r WHERE r.workflow_id = w.id LIMIT 1) IS NOT NULL ORDER BY w.id LIMIT 1`, []any{after}, func(r Row) (k run.Kept, err error) {
			err = r.Scan(&k.WorkflowID, (*string)(&k.Plan))
			return k, err
		})
		return err
	})
	return next, err
}

// Expired implements run.PruneStore. Runs are ordered by their start, and none
// has finished before it started: what started later than the bound stays.
func (s *Store) Expired(ctx context.Context, workflowID string, keep auth.Retention, now time.Time, after string, limit int) (run.Expired, error) {
	var found run.Expired
	err := s.read(ctx, func(c Conn) error {
		found = run.Expired{}
		newest, err := oldestKept(c, workflowID, keep.RunsPerWorkflow)
		if err != nil {
			return err
		}
		bound, finished := newest, time.Time{}
		if keep.KeepRuns > 0 {
			finished = now.Add(-keep.KeepRuns)
			bound = max(bound, uid.Least(uid.Run, finished))
		}
		// The ids come from the index alone, so that no other way to them looks
		// cheaper to the database.
		ids, err := list(c, `SELECT id FROM runs WHERE workflow_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4`,
			[]any{workflowID, after, bound, limit}, scanText)
		if err != nil {
			return err
		}
		if len(ids) == limit {
			found.Next = ids[limit-1]
		}
		for _, id := range ids {
			old, err := number(c, `SELECT count(*) FROM runs WHERE id = $1 AND status <> 'running' AND (finished_at < $2 OR id < $3)`, id, finished, newest)
			if err != nil {
				return err
			}
			if old == 1 {
				found.IDs = append(found.IDs, id)
			}
		}
		return nil
	})
	return found, err
}

// oldestKept is the id of the oldest of the newest n runs of a workflow; empty
// when it has no more than that, or n is zero.
func oldestKept(c Conn, workflowID string, n int) (string, error) {
	if n == 0 {
		return "", nil
	}
	id, err := one(c, `SELECT id FROM runs WHERE workflow_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2`, []any{workflowID, n - 1}, scanText)
	if err != nil || id == nil {
		return "", err
	}
	return *id, nil
}

// PurgeRuns implements run.PruneStore. A run that is not finished stays,
// whatever the caller believes of it.
func (s *Store) PurgeRuns(ctx context.Context, workflowID string, ids []string, limit int) ([]string, error) {
	var left []string
	err := s.write(ctx, func(u *unit) error {
		b := newBudget(limit)
		for i, id := range ids {
			if left = slices.Clone(ids[i:]); b.spent() {
				return nil
			}
			if err := b.purgeRun(u, id, `DELETE FROM runs WHERE id = $1 AND workflow_id = $2 AND status <> 'running'`, id, workflowID); err != nil {
				return err
			}
		}
		left = nil
		return nil
	})
	return left, err
}
