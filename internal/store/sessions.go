package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
)

// InsertSession implements account.Store.
func (s Accounts) InsertSession(ctx context.Context, user account.User, was string, n account.NewSession) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		ok, err := oneRow(tx.Exec(`UPDATE users SET seen_at = $1, password = $2 WHERE id = $3 AND password = $4`, n.CreatedAt, user.Password, user.ID, was))
		if err != nil || !ok {
			return false, err
		}
		if ok, err := isMember(tx, n.WorkspaceID, user.ID); err != nil || !ok {
			return false, err
		}
		return true, insertSession(tx, n)
	})
}

func insertSession(tx *transaction, n account.NewSession) error {
	if err := tx.Do(`INSERT INTO sessions (id, hash, user_id, workspace_id, created_at, seen_at, expires_at, address, agent)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		n.ID, n.Hash, n.UserID, n.WorkspaceID, n.CreatedAt, n.SeenAt, n.ExpiresAt, n.Address, n.Agent); err != nil {
		return err
	}
	return insertAudit(tx, n.Entry)
}

var sessionRows = mapTable("sessions", "id", func(s *account.Session) []any {
	return []any{
		"id", &s.ID, "hash", unbound(archive.Bytes), "user_id", &s.UserID, "workspace_id", &s.WorkspaceID, "created_at", &s.CreatedAt,
		"seen_at", &s.SeenAt, "expires_at", &s.ExpiresAt, "address", &s.Address, "agent", &s.Agent,
	}
})

var sessionColumns = sessionRows.columns("s.")

// SessionByHash implements account.Store.
func (s Accounts) SessionByHash(ctx context.Context, hash []byte) (*account.SignedIn, error) {
	return readOne(ctx, s.db, `SELECT m.role, `+sessionColumns+`, `+userColumns+`, `+workspaceColumns+`
		FROM sessions s JOIN users u ON u.id = s.user_id JOIN members m ON m.workspace_id = s.workspace_id AND m.user_id = s.user_id
		JOIN workspaces w ON w.id = s.workspace_id LEFT JOIN installation i ON i.first_workspace_id = w.id WHERE s.hash = $1`,
		[]any{hash}, scanSignedIn)
}

func scanSignedIn(r database.Row) (in account.SignedIn, err error) {
	fields := append([]any{(*string)(&in.Role)}, sessionRows.into(&in.Session)...)
	fields = append(append(fields, userRows.into(&in.User)...), workspaceFields(&in.Workspace)...)
	err = r.Scan(fields...)
	return in, err
}

// Sessions implements account.Store.
func (s Accounts) Sessions(ctx context.Context, userID string, page paging.Request) (paging.Page[account.Session], error) {
	found, err := readList(ctx, s.db, `SELECT `+sessionColumns+` FROM sessions s WHERE s.user_id = $1 AND s.id < $2 ORDER BY s.id DESC LIMIT $3`,
		[]any{userID, before(page.After), page.Limit + 1}, sessionRows.scan)
	return paging.Cut(found, page.Limit, func(s account.Session) string { return s.ID }), err
}

// SetSessionWorkspace implements account.Store.
func (s Accounts) SetSessionWorkspace(ctx context.Context, userID, id, workspaceID string) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if ok, err := lockUser(tx, userID); err != nil || !ok {
			return false, err
		}
		if ok, err := isMember(tx, workspaceID, userID); err != nil || !ok {
			return false, err
		}
		return oneRow(tx.Exec(`UPDATE sessions SET workspace_id = $1 WHERE id = $2 AND user_id = $3`, workspaceID, id, userID))
	})
}

// EndSession implements account.Store.
func (s Accounts) EndSession(ctx context.Context, userID, id string, entry audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if ok, err := oneRow(tx.Exec(`DELETE FROM sessions WHERE id = $1 AND user_id = $2`, id, userID)); err != nil || !ok {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// EndSessions implements account.Store. A concurrent sign-in blocks on the user's
// row.
func (s Accounts) EndSessions(ctx context.Context, userID string, entry audit.Entry) error {
	return s.db.write(ctx, func(tx *transaction) error {
		if _, err := lockUser(tx, userID); err != nil {
			return err
		}
		if err := tx.Do(`DELETE FROM sessions WHERE user_id = $1`, userID); err != nil {
			return err
		}
		return insertAudit(tx, entry)
	})
}

// TouchSession implements account.Store.
func (s Accounts) TouchSession(ctx context.Context, id string, at time.Time) error {
	return s.db.write(ctx, func(tx *transaction) error {
		if err := tx.Do(`UPDATE users SET seen_at = $1 WHERE id = (SELECT user_id FROM sessions WHERE id = $2)`, at, id); err != nil {
			return err
		}
		return tx.Do(`UPDATE sessions SET seen_at = $1 WHERE id = $2 AND seen_at < $1`, at, id)
	})
}

// PurgeSessions deletes up to limit sessions that have expired or have not been
// used since idle, and expired links. It returns true if there may be more.
func (s Accounts) PurgeSessions(ctx context.Context, now, idle time.Time, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		n, err := tx.Exec(`DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 OR seen_at <= $2 LIMIT $3)`, now, idle, limit)
		if more = n == int64(limit); err != nil {
			return more, err
		}
		for _, statement := range []string{`DELETE FROM tickets WHERE expires_at <= $1`, `DELETE FROM consents WHERE expires_at <= $1`, `DELETE FROM invitations WHERE expires_at <= $1`} {
			if err := tx.Do(statement, now); err != nil {
				return more, err
			}
		}
		return more, nil
	})
}
