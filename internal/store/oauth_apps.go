package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
)

var appRows = mapTable("oauth_apps", "id", func(a *connection.App) []any {
	return []any{
		"id", &a.ID, "workspace_id", &a.WorkspaceID, "integration", &a.Integration, "auth", &a.Auth, "client_id", &a.ClientID, "fields", jsonText(&a.Fields),
		"shared", &a.Shared, "created_at", &a.CreatedAt, "created_by", &a.CreatedBy, "updated_at", &a.UpdatedAt, "updated_by", &a.UpdatedBy,
		"secret", unbound(archive.Bytes),
	}
})

// PutApp implements connection.AppStore.
func (s Connections) PutApp(ctx context.Context, app connection.SealedApp, created, updated audit.Entry) (stored connection.App, isNew bool, err error) {
	err = s.db.write(ctx, func(tx *transaction) error {
		args, err := appRows.values(app.App, "client_id", "fields", "shared", "updated_at", "updated_by", "workspace_id", "integration", "auth")
		if err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE oauth_apps SET client_id = $1, fields = $2, shared = $3, updated_at = $4, updated_by = $5, secret = $9
			WHERE workspace_id = $6 AND integration = $7 AND auth = $8`, append(args, app.Secret)...)
		if err != nil {
			return err
		}
		entry := updated
		if isNew = n == 0; isNew {
			entry = created
			if err := appRows.insertInto(tx, app.App, "secret", app.Secret); err != nil {
				return err
			}
		}
		found, err := database.One(tx, appRows.selects()+`WHERE workspace_id = $1 AND integration = $2 AND auth = $3`,
			[]any{app.WorkspaceID, app.Integration, app.Auth}, appRows.scan)
		if err != nil {
			return err
		}
		stored = *found
		entry.TargetID = stored.ID
		// What the app had not, such as the secret that calls are verified with, it may have now.
		if err := tx.Do(`UPDATE subscriptions SET next_at = $1 WHERE failures > 0 AND substr(hook, 1, $2) = $3`,
			clock.Steady(), len(app.Integration)+1, app.Integration+"."); err != nil {
			return err
		}
		announceSubscriptions(tx)
		return insertAudit(tx, entry)
	})
	return stored, isNew, err
}

// App implements connection.AppStore.
func (s Connections) App(ctx context.Context, workspaceID, id string) (*connection.App, error) {
	return readOne(ctx, s.db, appRows.selects()+`WHERE id = $1 AND workspace_id = $2`, []any{id, workspaceID}, appRows.scan)
}

// Apps implements connection.AppStore.
func (s Connections) Apps(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[connection.App], error) {
	found, err := readList(ctx, s.db, appRows.selects()+`WHERE workspace_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`,
		[]any{workspaceID, before(page.After), page.Limit + 1}, appRows.scan)
	return paging.Cut(found, page.Limit, func(a connection.App) string { return a.ID }), err
}

// DeleteApp implements connection.AppStore.
func (s Connections) DeleteApp(ctx context.Context, workspaceID, id string, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		deleted, err := oneRow(tx.Exec(`DELETE FROM oauth_apps WHERE id = $1 AND workspace_id = $2`, id, workspaceID))
		if err != nil || !deleted {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// AppFor implements connection.AppStore.
func (s Connections) AppFor(ctx context.Context, workspaceID, integration, auth string) (*connection.SealedApp, error) {
	return s.sealedApp(ctx, `integration = $1 AND auth = $2 AND (workspace_id = $3 OR shared) ORDER BY workspace_id = $3 DESC LIMIT 1`,
		integration, auth, workspaceID)
}

// AppWithID implements connection.AppStore.
func (s Connections) AppWithID(ctx context.Context, id string) (*connection.SealedApp, error) {
	return s.sealedApp(ctx, `id = $1`, id)
}

func (s Connections) sealedApp(ctx context.Context, which string, args ...any) (*connection.SealedApp, error) {
	return readOne(ctx, s.db, `SELECT `+appRows.columns("")+`, secret FROM oauth_apps WHERE `+which, args, func(r database.Row) (a connection.SealedApp, err error) {
		err = appRows.scanInto(r, &a.App, &a.Secret)
		return a, err
	})
}

// SetConnectionApp implements connection.AppStore.
func (s Connections) SetConnectionApp(ctx context.Context, workspaceID, id string, epoch int64, app string) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`UPDATE connections SET app = $1 WHERE id = $2 AND workspace_id = $3 AND epoch = $4`, app, id, workspaceID, epoch)
	})
}

// InsertConsent implements connection.ConsentStore.
func (s Connections) InsertConsent(ctx context.Context, c connection.Consent) error {
	return s.db.write(ctx, func(tx *transaction) error {
		return tx.Do(`INSERT INTO consents (state_hash, workspace_id, user_id, pending, expires_at) VALUES ($1, $2, $3, $4, $5)`,
			c.StateHash, c.WorkspaceID, c.UserID, c.Pending, c.ExpiresAt)
	})
}

// Consent implements connection.ConsentStore.
func (s Connections) Consent(ctx context.Context, stateHash []byte, userID string, now time.Time) (*connection.Consent, error) {
	return view(ctx, s.db, func(c database.Conn) (*connection.Consent, error) { return readConsent(c, stateHash, userID, now) })
}

func readConsent(c database.Conn, stateHash []byte, userID string, now time.Time) (*connection.Consent, error) {
	return database.One(c, `SELECT state_hash, workspace_id, user_id, pending, expires_at FROM consents
		WHERE state_hash = $1 AND user_id = $2 AND expires_at > $3`, []any{stateHash, userID, now}, func(r database.Row) (c connection.Consent, err error) {
		err = r.Scan(&c.StateHash, &c.WorkspaceID, &c.UserID, &c.Pending, &c.ExpiresAt)
		return c, err
	})
}

// UpdateConsent implements connection.ConsentStore.
func (s Connections) UpdateConsent(ctx context.Context, c connection.Consent, was []byte) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		return oneRow(tx.Exec(`UPDATE consents SET pending = $1 WHERE state_hash = $2 AND workspace_id = $3 AND user_id = $4 AND pending = $5`,
			c.Pending, c.StateHash, c.WorkspaceID, c.UserID, was))
	})
}

// TakeConsent implements connection.ConsentStore.
func (s Connections) TakeConsent(ctx context.Context, stateHash []byte, userID string, now time.Time) (*connection.Consent, error) {
	return transact(ctx, s.db, func(tx *transaction) (taken *connection.Consent, err error) {
		found, err := readConsent(tx, stateHash, userID, now)
		if err != nil || found == nil {
			return taken, err
		}
		n, err := tx.Exec(`DELETE FROM consents WHERE state_hash = $1`, stateHash)
		if n == 1 {
			taken = found
		}
		return taken, err
	})
}
