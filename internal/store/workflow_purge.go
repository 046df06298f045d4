package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
)

// PurgeDeleted deletes up to limit rows of deleted workflows: their runs, then
// their versions and their keys, finally the workflows themselves. It returns true if there is
// more to do, so that callers can pause and let others write.
func (s Workflows) PurgeDeleted(ctx context.Context, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		var id, workspaceID *string
		err = tx.Query(`SELECT id, workspace_id FROM workflows WHERE deleted_at IS NOT NULL LIMIT 1`, nil, func(r database.Row) error { return r.Scan(&id, &workspaceID) })
		if more = id != nil; err != nil || !more {
			return more, err
		}
		runs, err := database.List(tx, `SELECT id FROM runs WHERE workflow_id = $1 LIMIT $2`, []any{*id, limit}, scanText)
		if err != nil {
			return more, err
		}
		b := newBudget(limit)
		for _, runID := range runs {
			if b.exhausted() {
				return more, nil
			}
			rows, err := tx.queue.Purge(runID)
			if b.rows -= int64(rows); err != nil {
				return more, err
			}
			if err := b.purgeRun(tx, runID, `DELETE FROM runs WHERE id = $1`, runID); err != nil {
				return more, err
			}
		}
		versions := part{"workflow_versions", "workflow_id", "version"}
		if done, err := b.purgePart(tx, versions, *id); err != nil || !done {
			return more, err
		}
		if n, err := removeWorkflowKeys(tx, *workspaceID, *id, limit); err != nil || n == limit {
			return more, err
		}
		if n, err := dropHoldersOf(tx, *id, clock.Now(), limit); err != nil || n == limit {
			return more, err
		}
		return more, tx.Do(`DELETE FROM workflows WHERE id = $1`, *id)
	})
}
