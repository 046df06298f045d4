package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// OwnIntegrations implements ownintegration.Store.
type OwnIntegrations struct{ db *DB }

// In implements ownintegration.Store.
func (s OwnIntegrations) In(tx txn.Tx) ownintegration.Store { return s.db.in(tx).OwnIntegrations }

var manifestRows = mapTable("own_integrations", "workspace_id id", func(m *ownintegration.Manifest) []any {
	return []any{
		"workspace_id", &m.WorkspaceID, "id", &m.ID, "manifest", &m.Text, "digest", &m.Digest,
		"created_at", &m.CreatedAt, "created_by", &m.CreatedBy, "updated_at", &m.UpdatedAt, "updated_by", &m.UpdatedBy,
	}
})

func scanHead(r database.Row) (h ownintegration.Head, err error) {
	err = r.Scan(&h.ID, &h.Digest)
	return h, err
}

// lockOwn serializes the changes of a workspace's connections, and of what they
// depend on.
func lockOwn(tx *transaction, workspaceID string) error {
	return tx.Do(`UPDATE workspaces SET connections = connections WHERE id = $1`, workspaceID)
}

func readManifest(c database.Conn, workspaceID, id string) (*ownintegration.Manifest, error) {
	return database.One(c, manifestRows.selects()+`WHERE workspace_id = $1 AND id = $2`, []any{workspaceID, id}, manifestRows.scan)
}

func readHead(c database.Conn, workspaceID, id string) (*ownintegration.Head, error) {
	return database.One(c, `SELECT id, digest FROM own_integrations WHERE workspace_id = $1 AND id = $2`, []any{workspaceID, id}, scanHead)
}

// InsertManifest implements ownintegration.Store.
func (s OwnIntegrations) InsertManifest(ctx context.Context, m ownintegration.Manifest, entry audit.Entry) (ownintegration.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome ownintegration.Outcome, err error) {
		if err := lockOwn(tx, m.WorkspaceID); err != nil {
			return outcome, err
		}
		was, err := readManifest(tx, m.WorkspaceID, m.ID)
		if err != nil || was != nil {
			return ownintegration.Exists, err
		}
		if outcome, err = roomForManifest(tx, m); err != nil || outcome != ownintegration.Done {
			return outcome, err
		}
		if err := manifestRows.insertInto(tx, m); err != nil {
			return outcome, err
		}
		return outcome, insertAudit(tx, entry)
	})
}

// roomForManifest reports whether the limits of a workspace allow a manifest.
func roomForManifest(tx *transaction, m ownintegration.Manifest) (ownintegration.Outcome, error) {
	var others, size int
	err := tx.Query(`SELECT manifest FROM own_integrations WHERE workspace_id = $1 AND id <> $2`, []any{m.WorkspaceID, m.ID}, func(r database.Row) error {
		var text string
		err := r.Scan(&text)
		others, size = others+1, size+len(text)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case others >= ownintegration.MaxManifests:
		return ownintegration.TooMany, nil
	case size+len(m.Text) > ownintegration.MaxBytes:
		return ownintegration.TooLarge, nil
	}
	return ownintegration.Done, nil
}

// ReplaceManifest implements ownintegration.Store.
func (s OwnIntegrations) ReplaceManifest(ctx context.Context, m ownintegration.Manifest, wasDigest, problem string, entry audit.Entry) (ownintegration.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome ownintegration.Outcome, err error) {
		if err := lockOwn(tx, m.WorkspaceID); err != nil {
			return outcome, err
		}
		if outcome, err = roomForManifest(tx, m); err != nil || outcome != ownintegration.Done {
			return outcome, err
		}
		n, err := tx.Exec(`UPDATE own_integrations SET manifest = $1, digest = $2, updated_at = $3, updated_by = $4
			WHERE workspace_id = $5 AND id = $6 AND digest = $7`,
			m.Text, m.Digest, m.UpdatedAt, m.UpdatedBy, m.WorkspaceID, m.ID, wasDigest)
		if err != nil || n == 0 {
			return ownintegration.Stale, err
		}
		if problem != "" {
			if err := tx.Do(`UPDATE connections SET status = $1, problem = $2 WHERE workspace_id = $3 AND integration = $4`,
				string(connection.NeedsReconnect), problem, m.WorkspaceID, m.ID); err != nil {
				return outcome, err
			}
		}
		return outcome, insertAudit(tx, entry)
	})
}

// DeleteManifest implements ownintegration.Store.
func (s OwnIntegrations) DeleteManifest(ctx context.Context, m ownintegration.Manifest, entry audit.Entry) (outcome ownintegration.Outcome, used string, err error) {
	err = s.db.write(ctx, func(tx *transaction) error {
		outcome = ownintegration.Done
		if err := lockOwn(tx, m.WorkspaceID); err != nil {
			return err
		}
		name, err := database.One(tx, `SELECT name FROM connections WHERE workspace_id = $1 AND integration = $2 ORDER BY name LIMIT 1`, []any{m.WorkspaceID, m.ID}, scanText)
		if err != nil {
			return err
		}
		if name != nil {
			outcome, used = ownintegration.InUse, *name
			return nil
		}
		n, err := tx.Exec(`DELETE FROM own_integrations WHERE workspace_id = $1 AND id = $2 AND digest = $3`, m.WorkspaceID, m.ID, m.Digest)
		if err != nil {
			return err
		}
		if n == 0 {
			outcome = ownintegration.Stale
			return nil
		}
		if err := tx.Do(`DELETE FROM oauth_apps WHERE workspace_id = $1 AND integration = $2`, m.WorkspaceID, m.ID); err != nil {
			return err
		}
		return insertAudit(tx, entry)
	})
	return outcome, used, err
}

// Manifest implements ownintegration.Store.
func (s OwnIntegrations) Manifest(ctx context.Context, workspaceID, id string) (*ownintegration.Manifest, error) {
	return view(ctx, s.db, func(c database.Conn) (*ownintegration.Manifest, error) { return readManifest(c, workspaceID, id) })
}

// ManifestHead implements ownintegration.Store.
func (s OwnIntegrations) ManifestHead(ctx context.Context, workspaceID, id string) (*ownintegration.Head, error) {
	return view(ctx, s.db, func(c database.Conn) (*ownintegration.Head, error) { return readHead(c, workspaceID, id) })
}

// ManifestHeads implements ownintegration.Store.
func (s OwnIntegrations) ManifestHeads(ctx context.Context, workspaceID string) ([]ownintegration.Head, error) {
	return readList(ctx, s.db, `SELECT id, digest FROM own_integrations WHERE workspace_id = $1 ORDER BY id`, []any{workspaceID}, scanHead)
}

// lacksIntegration reports whether a connection belongs to an own integration that the
// workspace does not have, or no longer.
func lacksIntegration(tx *transaction, c connection.Connection) (bool, error) {
	if !integration.IsOwn(c.Integration) {
		return false, nil
	}
	found, err := readHead(tx, c.WorkspaceID, c.Integration)
	return found == nil, err
}

// WorkspaceOf returns the id of the workspace of a workflow or a run; "" if it was deleted.
func (s OwnIntegrations) WorkspaceOf(ctx context.Context, id string) (string, error) {
	query := `SELECT workspace_id FROM workflows WHERE id = $1`
	if uid.Valid(uid.Run, id) {
		query = `SELECT workspace_id FROM runs WHERE id = $1`
	}
	return readValue[string](ctx, s.db, query, id)
}
