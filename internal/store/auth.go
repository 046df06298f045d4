package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
)

// Workspaces implements auth.Store and vault.Keys: workspaces and their API keys.
type Workspaces struct {
	db *DB
	workspaceReader
}

// In implements auth.Store.
func (s Workspaces) In(tx txn.Tx) auth.Store { return s.db.in(tx).Workspaces }

// Install implements auth.Store.
func (s Workspaces) Install(ctx context.Context, in auth.Installation) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (installed bool, err error) {
		n, err := tx.Exec(`INSERT INTO installation (id, first_workspace_id, key_check, created_at)
			VALUES (1, $1, $2, $3) ON CONFLICT (id) DO NOTHING`, in.Workspace.ID, in.KeyCheck, in.Workspace.CreatedAt)
		if installed = n == 1; err != nil {
			return installed, err
		}
		if !installed {
			return installed, checkComplete(tx)
		}
		return installed, insertWorkspace(tx, in.Workspace, in.DataKey, in.AdminKey, in.Entry)
	})
}

// DataKey implements vault.Keys.
func (s Workspaces) DataKey(ctx context.Context, workspaceID string) ([]byte, error) {
	key, err := readValue[[]byte](ctx, s.db, `SELECT data_key FROM workspaces WHERE id = $1`, workspaceID)
	if err == nil && key == nil {
		err = fmt.Errorf("there is no workspace %s", workspaceID)
	}
	return key, err
}

// InsertWorkspace implements auth.Store.
func (s Workspaces) InsertWorkspace(ctx context.Context, w auth.Workspace, dataKey []byte, first auth.Key, ownerID string, entry audit.Entry) error {
	return s.db.write(ctx, func(tx *transaction) error {
		tx.AfterCommit(s.db.notify.WorkspaceCreated)
		if err := insertWorkspace(tx, w, dataKey, first, entry); err != nil || ownerID == "" {
			return err
		}
		if exists, err := lockUser(tx, ownerID); err != nil || !exists {
			return err
		}
		return insertMember(tx, w.ID, ownerID, account.Owner, w.CreatedAt)
	})
}

// HasSeveralWorkspaces reports whether there is more than one workspace.
func (s Workspaces) HasSeveralWorkspaces(ctx context.Context) (bool, error) {
	count, err := readValue[int](ctx, s.db, `SELECT count(*) FROM (SELECT 1 FROM workspaces LIMIT 2) AS w`)
	return count > 1, err
}

func insertWorkspace(tx *transaction, w auth.Workspace, dataKey []byte, first auth.Key, entry audit.Entry) error {
	if err := tx.Do(`INSERT INTO workspaces (id, name, plan, requests_per_minute, data_key, created_at, updated_at, api_keys)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 1)`,
		w.ID, w.Name, string(w.Plan), w.RequestsPerMinute, dataKey, w.CreatedAt, w.UpdatedAt); err != nil {
		return err
	}
	if err := insertKey(tx, first); err != nil {
		return err
	}
	return insertAudit(tx, entry)
}

var workspaceRows = mapTable("workspaces", "id", func(w *auth.Workspace) []any {
	return []any{
		"id", &w.ID, "name", &w.Name, "plan", (*string)(&w.Plan), "requests_per_minute", &w.RequestsPerMinute, "data_key", unbound(archive.Bytes),
		"created_at", &w.CreatedAt, "updated_at", &w.UpdatedAt, "workflows", unbound(archive.Int), "webhooks", unbound(archive.Int),
		"api_keys", unbound(archive.Int), "secrets", unbound(archive.Int), "variables", unbound(archive.Int), "variable_bytes", unbound(archive.Int),
		"connections", unbound(archive.Int),
	}
})

var (
	workspaceColumns = workspaceRows.columns("w.") + `, i.id IS NOT NULL`
	selectWorkspace  = `SELECT ` + workspaceColumns + ` FROM workspaces w LEFT JOIN installation i ON i.first_workspace_id = w.id `
)

func scanWorkspace(r database.Row) (w auth.Workspace, err error) {
	err = r.Scan(workspaceFields(&w)...)
	return w, err
}

func workspaceFields(w *auth.Workspace) []any { return append(workspaceRows.into(w), &w.First) }

// workspaceReader reads workspaces, also for the stores that embed it.
type workspaceReader struct{ db *DB }

// Workspace implements auth.Store.
func (s workspaceReader) Workspace(ctx context.Context, id string) (*auth.Workspace, error) {
	return readOne(ctx, s.db, selectWorkspace+`WHERE w.id = $1`, []any{id}, scanWorkspace)
}

// FirstWorkspace returns the installation's first workspace, or nil.
func (s workspaceReader) FirstWorkspace(ctx context.Context) (*auth.Workspace, error) {
	return readOne(ctx, s.db, selectWorkspace+`WHERE i.id = 1`, nil, scanWorkspace)
}

// Workspaces implements auth.Store.
func (s Workspaces) Workspaces(ctx context.Context, page paging.Request) (paging.Page[auth.Workspace], error) {
	found, err := readList(ctx, s.db, selectWorkspace+`WHERE w.id < $1 ORDER BY w.id DESC LIMIT $2`,
		[]any{before(page.After), page.Limit + 1}, scanWorkspace)
	return paging.Cut(found, page.Limit, func(w auth.Workspace) string { return w.ID }), err
}

// UpdateWorkspace implements auth.Store.
func (s Workspaces) UpdateWorkspace(ctx context.Context, w auth.Workspace, was time.Time, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		updated, err := oneRow(tx.Exec(`UPDATE workspaces SET name = $1, plan = $2, requests_per_minute = $3, updated_at = $4
			WHERE id = $5 AND updated_at = $6`, w.Name, string(w.Plan), w.RequestsPerMinute, w.UpdatedAt, w.ID, was))
		if err != nil || !updated {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// InsertKey implements auth.Store.
func (s Workspaces) InsertKey(ctx context.Context, k auth.Key, atMost int, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (inserted bool, err error) {
		if inserted, err = incrementUsage(tx, "api_keys", k.WorkspaceID, atMost); err != nil || !inserted {
			return inserted, err
		}
		if err := insertKey(tx, k); err != nil {
			return inserted, err
		}
		return inserted, insertAudit(tx, entry)
	})
}

func insertKey(tx *transaction, k auth.Key) error {
	return keyRows.insertInto(tx, k)
}

var keyRows = mapTable("api_keys", "id", func(k *auth.Key) []any {
	return []any{
		"id", &k.ID, "workspace_id", &k.WorkspaceID, "name", &k.Name, "scopes", scopeList(&k.Scopes), "lookup", &k.Lookup, "hash", &k.Hash,
		"created_at", &k.CreatedAt, "created_by", &k.CreatedBy, "expires_at", &k.ExpiresAt, "last_used_at", &k.LastUsedAt,
		"revoked_at", unbound(archive.Int),
	}
})

// scopeList is stored as auth writes scopes.
func scopeList(scopes *[]auth.Scope) converted {
	text := new(string)
	decode := func() error {
		*scopes = auth.SplitScopes(*text)
		return nil
	}
	return converted{archive.Text, text, decode, func() (any, error) { return auth.JoinScopes(*scopes), nil }}
}

// Key implements auth.Store.
func (s Workspaces) Key(ctx context.Context, workspaceID, id string) (*auth.Key, error) {
	return readOne(ctx, s.db, keyRows.selects()+`WHERE id = $1 AND workspace_id = $2 AND revoked_at IS NULL`, []any{id, workspaceID}, keyRows.scan)
}

// Keys implements auth.Store.
func (s Workspaces) Keys(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[auth.Key], error) {
	found, err := readList(ctx, s.db, keyRows.selects()+`WHERE workspace_id = $1 AND revoked_at IS NULL AND id < $2 ORDER BY id DESC LIMIT $3`,
		[]any{workspaceID, before(page.After), page.Limit + 1}, keyRows.scan)
	return paging.Cut(found, page.Limit, func(k auth.Key) string { return k.ID }), err
}

// RevokeKey implements auth.Store.
func (s Workspaces) RevokeKey(ctx context.Context, workspaceID, id string, at time.Time, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		revoked, err := oneRow(tx.Exec(`UPDATE api_keys SET revoked_at = $1 WHERE id = $2 AND workspace_id = $3 AND revoked_at IS NULL`, at, id, workspaceID))
		if err != nil || !revoked {
			return false, err
		}
		if err := decrementUsage(tx, "api_keys", workspaceID, 1); err != nil {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// KeyByLookup implements auth.Store.
func (s Workspaces) KeyByLookup(ctx context.Context, lookup string) (*auth.Key, *auth.Workspace, error) {
	var (
		key       *auth.Key
		workspace *auth.Workspace
	)
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		key, err = database.One(c, keyRows.selects()+`WHERE lookup = $1 AND revoked_at IS NULL`, []any{lookup}, keyRows.scan)
		if err != nil || key == nil {
			return err
		}
		workspace, err = database.One(c, selectWorkspace+`WHERE w.id = $1`, []any{key.WorkspaceID}, scanWorkspace)
		if err == nil && workspace == nil {
			err = fmt.Errorf("key %s has no workspace", key.ID)
		}
		return err
	})
	return key, workspace, err
}

// TouchKeys implements auth.Store.
func (s Workspaces) TouchKeys(ctx context.Context, usedAt map[string]time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error {
		for _, id := range slices.Sorted(maps.Keys(usedAt)) { // consistent lock order
			if err := tx.Do(`UPDATE api_keys SET last_used_at = $1 WHERE id = $2`, usedAt[id], id); err != nil {
				return err
			}
		}
		return nil
	})
}
