package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
)

// part is a table whose rows belong to a run: of is the column with its id, key
// the columns that identify a row.
type part struct{ table, of, key string }

var purgedRunsTable = Table{Name: "purged_runs", Key: "run_id", Text: "run_id"}

// partsOfRun are the tables with rows that belong to a run, other than runs and
// run_queue.
var partsOfRun = []part{
	{"steps", "run_id", "path"},
	{"run_drafts", "run_id", "run_id"},
	{"early_answers", "run_id", "path"},
	{"step_attempts", "run_id", "path, attempt"},
	{"step_chunks", "run_id", "path, number"},
	{"step_logs", "run_id", "rev, line"},
}

// budget is what one batch of a purge may still do before others get to write.
type budget struct {
	rows  int64
	until time.Time
}

const (
	// purgeTime bounds how long a batch may take: rows with large bodies take
	// longer than others.
	purgeTime = 50 * time.Millisecond
	// purgeChunk is the number of rows deleted between two checks of the clock. A
	// row may be a megabyte.
	purgeChunk = 10
)

func newBudget(rows int) *budget {
	return &budget{rows: int64(rows), until: clock.Monotonic().Add(purgeTime)}
}

// exhausted reports whether another run no longer fits: its own row, and its row
// in the queue or in purged_runs.
func (b *budget) exhausted() bool { return b.rows < 2 || clock.Monotonic().After(b.until) }

// purgeRun deletes a run with the given statement for its own row, and as many of
// its other rows as the budget allows. Without its own row the run is no longer
// visible; the rest is recorded in purged_runs for later batches.
func (b *budget) purgeRun(tx *transaction, runID, statement string, args ...any) error {
	n, err := tx.Exec(statement, args...)
	if b.rows -= n; err != nil || n == 0 {
		return err
	}
	done, err := b.purgeParts(tx, runID)
	if err != nil || done {
		return err
	}
	return tx.Do(`INSERT INTO purged_runs (run_id) VALUES ($1)`, runID)
}

// purgeParts deletes the rows that belong to a run and reports whether none are
// left.
func (b *budget) purgeParts(tx *transaction, runID string) (bool, error) {
	if done, err := b.purgeRefs(tx, runID, clock.Now()); err != nil || !done {
		return false, err
	}
	for _, p := range partsOfRun {
		if done, err := b.purgePart(tx, p, runID); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

func (b *budget) purgePart(tx *transaction, p part, owner string) (bool, error) {
	statement := `DELETE FROM ` + p.table + ` WHERE ` + p.of + ` = $1 AND (` + p.key + `) IN
		(SELECT ` + p.key + ` FROM ` + p.table + ` WHERE ` + p.of + ` = $1 LIMIT $2)`
	for b.rows > 0 && !clock.Monotonic().After(b.until) {
		chunk := min(b.rows, purgeChunk)
		n, err := tx.Exec(statement, owner, chunk)
		if b.rows -= n; err != nil || n < chunk {
			return err == nil, err
		}
	}
	return false, nil
}

// PurgeRemains deletes up to limit remaining rows of deleted runs. It returns
// true if there may be more.
func (s Runs) PurgeRemains(ctx context.Context, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		more = true
		b := newBudget(limit)
		for {
			runID, err := database.One(tx, `SELECT run_id FROM purged_runs LIMIT 1`, nil, scanText)
			if err != nil || runID == nil {
				more = false
				return more, err
			}
			done, err := b.purgeParts(tx, *runID)
			if err != nil || !done {
				return more, err
			}
			if err := tx.Do(`DELETE FROM purged_runs WHERE run_id = $1`, *runID); err != nil {
				return more, err
			}
		}
	})
}

// NextRetained implements run.PruneStore. The query itself skips workflows that have
// no runs.
func (s Runs) NextRetained(ctx context.Context, after string) (*run.RetainedWorkflow, error) {
	return readOne(ctx, s.db, `SELECT w.id, s.plan FROM workflows w JOIN workspaces s ON s.id = w.workspace_id
		WHERE w.id > $1 AND w.deleted_at IS NULL AND (SELECT r.id FROM runs r WHERE r.workflow_id = w.id LIMIT 1) IS NOT NULL ORDER BY w.id LIMIT 1`, []any{after}, func(r database.Row) (k run.RetainedWorkflow, err error) {
		err = r.Scan(&k.WorkflowID, (*string)(&k.Plan))
		return k, err
	})
}

// Expired implements run.PruneStore. Runs are ordered by start time and none
// finishes before it starts, so runs that started after the bound are not
// expired.
func (s Runs) Expired(ctx context.Context, workflowID string, keep auth.Retention, now time.Time, after string, limit int) (run.Expired, error) {
	return view(ctx, s.db, func(c database.Conn) (found run.Expired, err error) {
		newest, err := oldestRetained(c, workflowID, keep.RunsPerWorkflow)
		if err != nil {
			return found, err
		}
		bound, finished := newest, time.Time{}
		if keep.KeepRuns > 0 {
			finished = now.Add(-keep.KeepRuns)
			bound = max(bound, uid.LowerBound(uid.Run, finished))
		}
		// The ids come from the index alone, so that no other plan looks cheaper
		// to the database.
		ids, err := database.List(c, `SELECT id FROM runs WHERE workflow_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4`,
			[]any{workflowID, after, bound, limit}, scanText)
		if err != nil {
			return found, err
		}
		if len(ids) == limit {
			found.Next = ids[limit-1]
		}
		for _, id := range ids {
			old, err := database.Number(c, `SELECT count(*) FROM runs WHERE id = $1 AND status <> 'running' AND (finished_at < $2 OR id < $3)`, id, finished, newest)
			if err != nil {
				return found, err
			}
			if old == 1 {
				found.IDs = append(found.IDs, id)
			}
		}
		return found, nil
	})
}

// oldestRetained returns the id of the oldest of the newest n runs of a workflow.
// It is empty if the workflow has fewer runs, or n is zero.
func oldestRetained(c database.Conn, workflowID string, n int) (string, error) {
	if n == 0 {
		return "", nil
	}
	id, err := database.One(c, `SELECT id FROM runs WHERE workflow_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2`, []any{workflowID, n - 1}, scanText)
	if err != nil || id == nil {
		return "", err
	}
	return *id, nil
}

// PurgeRuns implements run.PruneStore. It never deletes a run that is not
// finished.
func (s Runs) PurgeRuns(ctx context.Context, workflowID string, ids []string, limit int) ([]string, error) {
	return transact(ctx, s.db, func(tx *transaction) (left []string, err error) {
		b := newBudget(limit)
		for i, id := range ids {
			if left = slices.Clone(ids[i:]); b.exhausted() {
				return left, nil
			}
			if err := b.purgeRun(tx, id, `DELETE FROM runs WHERE id = $1 AND workflow_id = $2 AND status <> 'running'`, id, workflowID); err != nil {
				return left, err
			}
		}
		left = nil
		return left, nil
	})
}
