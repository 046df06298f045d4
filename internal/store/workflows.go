package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Workflows implements workflow.Store and workflow.Definitions.
type Workflows struct {
	db *DB
	definitionReader
	fileReader
}

// In implements workflow.Store.
func (s Workflows) In(tx txn.Tx) workflow.Store { return s.db.in(tx).Workflows }

var workflowRows = mapTable("workflows", "id", func(w *workflow.Workflow) []any {
	return []any{
		"id", &w.ID, "workspace_id", &w.WorkspaceID, "name", &w.Name, "description", &w.Description, "state", (*string)(&w.State),
		"version", &w.Version, "revision", &w.Revision, "created_at", &w.CreatedAt, "updated_at", &w.UpdatedAt, "layout", jsonText(&w.Layout),
		"source", &w.Source, "source_stale", &w.SourceStale, "pinned", jsonText(&w.Pinned), "pinned_files", pinFiles(&w.Pinned),
		"deleted_at", unbound(archive.Int),
	}
})

// pinFiles is stored as the JSON pointers of the files in pinned outputs. It is read after
// them.
func pinFiles(pins *workflow.Pins) converted {
	pointers := new(filePointers)
	decode := func() error { return pointers.decodePins(*pins) }
	return converted{archive.Text, (*[]byte)(pointers), decode, func() (any, error) { return pointersOrNil(pins.FilePointers()) }}
}

var versionRows = mapTable("workflow_versions", "workflow_id version", func(v *workflow.Version) []any {
	return []any{
		"workflow_id", &v.WorkflowID, "version", &v.Number, "created_at", &v.CreatedAt, "created_by", &v.CreatedBy,
		"definition", unbound(archive.Text), "source", unbound(archive.Text), "files", unbound(archive.Text), "level", unbound(archive.Int),
	}
})

// InsertWorkflow implements workflow.Store.
func (s Workflows) InsertWorkflow(
	ctx context.Context, w workflow.Workflow, first workflow.Version, atMost int, entry audit.Entry, armed ...workflow.Armed,
) (bool, error) {
	row, err := workflowRows.args(w)
	if err != nil {
		return false, err
	}
	inserted := false
	err = s.db.write(ctx, func(tx *transaction) error {
		var err error
		if inserted, err = incrementUsage(tx, "workflows", w.WorkspaceID, atMost); err != nil || !inserted {
			return err
		}
		if err := tx.Do(workflowRows.insert, row...); err != nil {
			return err
		}
		if err := insertVersion(tx, w.WorkspaceID, first); err != nil {
			return err
		}
		if err := holdFiles(tx, w.WorkspaceID, file.HeldByPins(w.ID), w.Pinned.FileIDs(), w.UpdatedAt); err != nil {
			return err
		}
		if err := updateConnectionUsers(tx, w); err != nil {
			return err
		}
		if len(armed) > 0 {
			if err := updateTriggers(tx, w, armed); err != nil {
				return err
			}
		}
		return insertAudit(tx, entry)
	})
	return inserted, err
}

// insertVersion stores a version, which holds the files that its definition refers to.
func insertVersion(tx *transaction, workspaceID string, v workflow.Version) error {
	definition, err := v.Definition.Canonical()
	if err != nil {
		return err
	}
	files, err := pointersOrNil(v.Definition.Files.Pointers())
	if err != nil {
		return err
	}
	if err := versionRows.insertInto(tx, v, "definition", string(definition), "source", v.Source, "files", files, "level", v.Definition.Level); err != nil {
		return err
	}
	return holdFiles(tx, workspaceID, file.HeldByVersion(v.WorkflowID, v.Number), v.Definition.Files.IDs(), v.CreatedAt)
}

// Workflow implements workflow.Store.
func (s Workflows) Workflow(ctx context.Context, workspaceID, id string) (*workflow.Workflow, error) {
	return readOne(ctx, s.db, `SELECT `+workflowRows.columns("w.")+`, v.definition, v.level
		FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id AND v.version = w.version
		WHERE w.id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL`, []any{id, workspaceID}, scanWorkflow)
}

func scanWorkflow(r database.Row) (w workflow.Workflow, err error) {
	definition, level := []byte(nil), 0
	if err := workflowRows.scanInto(r, &w, &definition, &level); err != nil {
		return w, fmt.Errorf("decode the workflow %s: %w", w.ID, err)
	}
	w.Definition, err = workflow.ParseStored(definition, level)
	return w, err
}

// UpdateWorkflow implements workflow.Store.
func (s Workflows) UpdateWorkflow(ctx context.Context, change workflow.Change) (bool, error) {
	w := change.Workflow
	row, err := workflowRows.values(w, "name", "description", "state", "version", "revision", "updated_at", "layout", "source", "source_stale",
		"pinned", "pinned_files", "id", "workspace_id")
	if err != nil {
		return false, err
	}
	return transact(ctx, s.db, func(tx *transaction) (updated bool, err error) {
		if err := tx.Lock(database.Lock{Kind: database.LockWorkflow, Key: w.ID}); err != nil {
			return updated, err
		}
		if exist, err := lockConnections(tx, w.WorkspaceID, change.Connections); err != nil || !exist {
			return updated, err
		}
		if exist, err := lockAllFiles(tx, w.WorkspaceID, change.Files(), w.UpdatedAt); err != nil || !exist {
			return updated, err
		}
		n, err := tx.Exec(`UPDATE workflows SET name = $1, description = $2, state = $3, version = $4, revision = $5, updated_at = $6, layout = $7,
			source = $8, source_stale = $9, pinned = $10, pinned_files = $11
			WHERE id = $12 AND workspace_id = $13 AND revision = $14 AND deleted_at IS NULL`, append(row, change.WasRevision)...)
		if updated = n == 1; err != nil || !updated {
			return updated, err
		}
		if change.NewVersion != nil {
			if err := insertVersion(tx, w.WorkspaceID, *change.NewVersion); err != nil {
				return updated, err
			}
			if err := updateConnectionUsers(tx, w); err != nil {
				return updated, err
			}
		}
		if change.Repinned {
			if err := replaceFiles(tx, w.WorkspaceID, file.HeldByPins(w.ID), w.Pinned.FileIDs(), w.UpdatedAt); err != nil {
				return updated, err
			}
		}
		if change.Rewritten {
			if err := tx.Do(`UPDATE workflow_versions SET source = $1 WHERE workflow_id = $2 AND version = $3`, w.Source, w.ID, w.Version); err != nil {
				return updated, err
			}
		}
		if change.Armed != nil {
			if err := updateTriggers(tx, w, *change.Armed); err != nil {
				return updated, err
			}
		}
		tx.addEvents(change.Events...)
		return updated, insertAudit(tx, change.Entries...)
	})
}

// DeleteWorkflow implements workflow.Store. It only marks the workflow: reads of
// runs and every write of the engine check the mark. PurgeDeleted deletes the
// rows in small batches.
func (s Workflows) DeleteWorkflow(ctx context.Context, w workflow.Workflow, at time.Time, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (deleted bool, err error) {
		if err := tx.Lock(database.Lock{Kind: database.LockWorkflow, Key: w.ID}); err != nil {
			return deleted, err
		}
		n, err := tx.Exec(`UPDATE workflows SET deleted_at = $1 WHERE id = $2 AND workspace_id = $3 AND revision = $4 AND deleted_at IS NULL`,
			at, w.ID, w.WorkspaceID, w.Revision)
		if deleted = n == 1; err != nil || !deleted {
			return deleted, err
		}
		tx.queue.SubscribersChanged(w.WorkspaceID)
		if err := deleteTriggers(tx, w); err != nil {
			return deleted, err
		}
		if err := tx.Do(`DELETE FROM connection_users WHERE workflow_id = $1`, w.ID); err != nil {
			return deleted, err
		}
		if err := errors.Join(answerParents(tx, w.ID, at), cancelChildrenOf(tx, w.ID, at)); err != nil {
			return deleted, err
		}
		if err := tx.queue.Revoke(w.WorkspaceID, w.ID); err != nil {
			return deleted, err
		}
		tx.AfterCommit(func() { s.db.notify.WorkflowDeleted(w.ID) })
		if err := deleteWebhooks(tx, w, at); err != nil {
			return deleted, err
		}
		return deleted, insertAudit(tx, entry)
	})
}

func deleteWebhooks(tx *transaction, w workflow.Workflow, at time.Time) error {
	if err := tx.Lock(database.WorkspaceLock(w.WorkspaceID)); err != nil {
		return err
	}
	hooks, err := tx.Exec(`UPDATE webhooks SET deleted_at = $1 WHERE workspace_id = $2 AND workflow_id = $3 AND deleted_at IS NULL`,
		at, w.WorkspaceID, w.ID)
	if err != nil {
		return err
	}
	return errors.Join(decrementUsage(tx, "webhooks", w.WorkspaceID, hooks), decrementUsage(tx, "workflows", w.WorkspaceID, 1))
}

// Versions implements workflow.Store.
func (s Workflows) Versions(ctx context.Context, workspaceID, id string, page paging.Request) (paging.Page[workflow.Version], error) {
	below := 1 << 30
	if n, err := strconv.Atoi(page.After); err == nil {
		below = n
	}
	versions, err := readList(ctx, s.db, `SELECT `+versionRows.columns("v.")+`, COALESCE(u.name, k.name) FROM workflow_versions v JOIN workflows w ON w.id = v.workflow_id
		LEFT JOIN users u ON u.id = v.created_by LEFT JOIN api_keys k ON k.id = v.created_by AND k.workspace_id = w.workspace_id
		WHERE v.workflow_id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL AND v.version < $3
		ORDER BY v.version DESC LIMIT $4`, []any{id, workspaceID, below, page.Limit + 1}, func(r database.Row) (v workflow.Version, err error) {
		err = versionRows.scanInto(r, &v, &v.CreatedByName)
		return v, err
	})
	return paging.Cut(versions, page.Limit, func(v workflow.Version) string { return strconv.Itoa(v.Number) }), err
}

// Version implements workflow.Store.
func (s Workflows) Version(ctx context.Context, workspaceID, id string, number int) (*workflow.Version, error) {
	return readOne(ctx, s.db, `SELECT `+versionRows.columns("v.")+`, v.definition, v.source, v.level FROM workflow_versions v JOIN workflows w ON w.id = v.workflow_id
		WHERE v.workflow_id = $1 AND v.version = $2 AND w.workspace_id = $3 AND w.deleted_at IS NULL`,
		[]any{id, number, workspaceID}, scanVersion)
}

func scanVersion(r database.Row) (v workflow.Version, err error) {
	definition, level := []byte(nil), 0
	if err := versionRows.scanInto(r, &v, &definition, &v.Source, &level); err != nil {
		return v, err
	}
	v.Definition, err = workflow.ParseStored(definition, level)
	return v, err
}
