package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Workflows implements workflow.Store and workflow.Definitions.
type Workflows struct {
	db *DB
	definitionReader
	fileReader
}

// InsertWorkflow implements workflow.Store.
func (s Workflows) InsertWorkflow(
	ctx context.Context, w workflow.Workflow, first workflow.Version, atMost int, entry audit.Entry, armed ...workflow.Armed,
) (bool, error) {
	layout, pinned, err := encodeLayoutAndPins(w)
	if err != nil {
		return false, err
	}
	pinnedFiles, err := pointersOrNil(w.Pinned.FilePointers())
	if err != nil {
		return false, err
	}
	inserted := false
	err = s.db.write(ctx, func(tx *transaction) error {
		var err error
		if inserted, err = incrementUsage(tx, "workflows", w.WorkspaceID, atMost); err != nil || !inserted {
			return err
		}
		if err := tx.Do(`INSERT INTO workflows
			(id, workspace_id, name, description, state, version, revision, created_at, updated_at, layout, source, source_stale, pinned, pinned_files)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			w.ID, w.WorkspaceID, w.Name, w.Description, string(w.State), w.Version, w.Revision, w.CreatedAt, w.UpdatedAt, layout,
			w.Source, w.SourceStale, pinned, pinnedFiles); err != nil {
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

// encodeLayoutAndPins returns the layout and the pinned outputs as JSON.
func encodeLayoutAndPins(w workflow.Workflow) (layout, pinned string, err error) {
	drawn, err := json.Marshal(w.Layout)
	if err != nil {
		return "", "", err
	}
	pins, err := json.Marshal(w.Pinned)
	return string(drawn), string(pins), err
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
	if err := tx.Do(`INSERT INTO workflow_versions (workflow_id, version, created_at, created_by, definition, source, files, level)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		v.WorkflowID, v.Number, v.CreatedAt, v.CreatedBy, string(definition), v.Source, files, v.Definition.Level); err != nil {
		return err
	}
	return holdFiles(tx, workspaceID, file.HeldByVersion(v.WorkflowID, v.Number), v.Definition.Files.IDs(), v.CreatedAt)
}

// Workflow implements workflow.Store.
func (s Workflows) Workflow(ctx context.Context, workspaceID, id string) (*workflow.Workflow, error) {
	var found *workflow.Workflow
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = database.One(c, `SELECT w.id, w.workspace_id, w.name, w.description, w.state, w.version, w.revision,
			w.created_at, w.updated_at, w.layout, w.source, w.source_stale, w.pinned, w.pinned_files, v.definition, v.level
			FROM workflows w JOIN workflow_versions v ON v.workflow_id = w.id AND v.version = w.version
			WHERE w.id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL`, []any{id, workspaceID}, scanWorkflow)
		return err
	})
	return found, err
}

func scanWorkflow(r database.Row) (workflow.Workflow, error) {
	var (
		w                          workflow.Workflow
		layout, pinned, definition []byte
		files                      filePointers
		level                      int
	)
	if err := r.Scan(&w.ID, &w.WorkspaceID, &w.Name, &w.Description, (*string)(&w.State), &w.Version, &w.Revision,
		&w.CreatedAt, &w.UpdatedAt, &layout, &w.Source, &w.SourceStale, &pinned, (*[]byte)(&files), &definition, &level); err != nil {
		return w, err
	}
	if err := json.Unmarshal(layout, &w.Layout); err != nil {
		return w, fmt.Errorf("decode the layout of %s: %w", w.ID, err)
	}
	if err := json.Unmarshal(pinned, &w.Pinned); err != nil {
		return w, fmt.Errorf("decode the pins of %s: %w", w.ID, err)
	}
	if err := files.decodePins(w.Pinned); err != nil {
		return w, fmt.Errorf("decode the pins of %s: %w", w.ID, err)
	}
	var err error
	w.Definition, err = workflow.ParseStored(definition, level)
	return w, err
}

// UpdateWorkflow implements workflow.Store.
func (s Workflows) UpdateWorkflow(ctx context.Context, change workflow.Change) (bool, error) {
	w := change.Workflow
	layout, pinned, err := encodeLayoutAndPins(w)
	if err != nil {
		return false, err
	}
	pinnedFiles, err := pointersOrNil(w.Pinned.FilePointers())
	if err != nil {
		return false, err
	}
	updated := false
	err = s.db.write(ctx, func(tx *transaction) error {
		updated = false // the transaction may be retried
		if err := tx.Lock(database.Lock{Kind: database.LockWorkflow, Key: w.ID}); err != nil {
			return err
		}
		if exist, err := lockConnections(tx, w.WorkspaceID, change.Connections); err != nil || !exist {
			return err
		}
		if exist, err := lockAllFiles(tx, w.WorkspaceID, change.Files(), w.UpdatedAt); err != nil || !exist {
			return err
		}
		n, err := tx.Exec(`UPDATE workflows SET name = $1, description = $2, state = $3, version = $4, revision = $5, updated_at = $6, layout = $7,
			source = $8, source_stale = $9, pinned = $10, pinned_files = $11
			WHERE id = $12 AND workspace_id = $13 AND revision = $14 AND deleted_at IS NULL`,
			w.Name, w.Description, string(w.State), w.Version, w.Revision, w.UpdatedAt, layout,
			w.Source, w.SourceStale, pinned, pinnedFiles, w.ID, w.WorkspaceID, change.WasRevision)
		if updated = n == 1; err != nil || !updated {
			return err
		}
		if change.NewVersion != nil {
			if err := insertVersion(tx, w.WorkspaceID, *change.NewVersion); err != nil {
				return err
			}
			if err := updateConnectionUsers(tx, w); err != nil {
				return err
			}
		}
		if change.Repinned {
			if err := replaceFiles(tx, w.WorkspaceID, file.HeldByPins(w.ID), w.Pinned.FileIDs(), w.UpdatedAt); err != nil {
				return err
			}
		}
		if change.Rewritten {
			if err := tx.Do(`UPDATE workflow_versions SET source = $1 WHERE workflow_id = $2 AND version = $3`, w.Source, w.ID, w.Version); err != nil {
				return err
			}
		}
		if change.Armed != nil {
			if err := updateTriggers(tx, w, *change.Armed); err != nil {
				return err
			}
		}
		tx.addEvents(change.Events...)
		return insertAudit(tx, change.Entries...)
	})
	return updated, err
}

// DeleteWorkflow implements workflow.Store. It only marks the workflow: reads of
// runs and every write of the engine check the mark. PurgeDeleted deletes the
// rows in small batches.
func (s Workflows) DeleteWorkflow(ctx context.Context, w workflow.Workflow, at time.Time, entry audit.Entry) (bool, error) {
	deleted := false
	err := s.db.write(ctx, func(tx *transaction) error {
		if err := tx.Lock(database.Lock{Kind: database.LockWorkflow, Key: w.ID}); err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE workflows SET deleted_at = $1 WHERE id = $2 AND workspace_id = $3 AND revision = $4 AND deleted_at IS NULL`,
			at, w.ID, w.WorkspaceID, w.Revision)
		if deleted = n == 1; err != nil || !deleted {
			return err
		}
		tx.queue.SubscribersChanged(w.WorkspaceID)
		if err := deleteTriggers(tx, w); err != nil {
			return err
		}
		if err := tx.Do(`DELETE FROM connection_users WHERE workflow_id = $1`, w.ID); err != nil {
			return err
		}
		if err := errors.Join(answerParents(tx, w.ID, at), cancelChildrenOf(tx, w.ID, at)); err != nil {
			return err
		}
		if err := tx.queue.Revoke(w.WorkspaceID, w.ID); err != nil {
			return err
		}
		tx.AfterCommit(func() { s.db.notify.WorkflowDeleted(w.ID) })
		if err := deleteWebhooks(tx, w, at); err != nil {
			return err
		}
		return insertAudit(tx, entry)
	})
	return deleted, err
}

// deleteWebhooks deletes the webhooks bound to a workflow.
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
	var versions []workflow.Version
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		versions, err = database.List(c, `SELECT v.workflow_id, v.version, v.created_at, v.created_by
			FROM workflow_versions v JOIN workflows w ON w.id = v.workflow_id
			WHERE v.workflow_id = $1 AND w.workspace_id = $2 AND w.deleted_at IS NULL AND v.version < $3
			ORDER BY v.version DESC LIMIT $4`, []any{id, workspaceID, below, page.Limit + 1},
			func(r database.Row) (v workflow.Version, err error) {
				err = r.Scan(&v.WorkflowID, &v.Number, &v.CreatedAt, &v.CreatedBy)
				return v, err
			})
		return err
	})
	return paging.Cut(versions, page.Limit, func(v workflow.Version) string { return strconv.Itoa(v.Number) }), err
}

// Version implements workflow.Store.
func (s Workflows) Version(ctx context.Context, workspaceID, id string, number int) (*workflow.Version, error) {
	var found *workflow.Version
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = database.One(c, `SELECT v.workflow_id, v.version, v.created_at, v.created_by, v.definition, v.source, v.level
			FROM workflow_versions v JOIN workflows w ON w.id = v.workflow_id
			WHERE v.workflow_id = $1 AND v.version = $2 AND w.workspace_id = $3 AND w.deleted_at IS NULL`,
			[]any{id, number, workspaceID}, scanVersion)
		return err
	})
	return found, err
}

func scanVersion(r database.Row) (workflow.Version, error) {
	var (
		v          workflow.Version
		definition []byte
		level      int
	)
	if err := r.Scan(&v.WorkflowID, &v.Number, &v.CreatedAt, &v.CreatedBy, &definition, &v.Source, &level); err != nil {
		return v, err
	}
	var err error
	v.Definition, err = workflow.ParseStored(definition, level)
	return v, err
}
