package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
)

var invitationRows = mapTable("invitations", "id", func(in *account.Invitation) []any {
	return []any{
		"id", &in.ID, "workspace_id", &in.WorkspaceID, "email", &in.Email, "role", (*string)(&in.Role), "hash", &in.Hash,
		"created_at", &in.CreatedAt, "created_by", &in.CreatedBy, "expires_at", &in.ExpiresAt,
	}
})

// Invitations implements account.Store.
func (s Accounts) Invitations(ctx context.Context, workspaceID string, now time.Time, page paging.Request) (paging.Page[account.Invitation], error) {
	found, err := readList(ctx, s.db, invitationRows.selects()+`WHERE workspace_id = $1 AND expires_at > $2 AND id < $3 ORDER BY id DESC LIMIT $4`,
		[]any{workspaceID, now, before(page.After), page.Limit + 1}, invitationRows.scan)
	return paging.Cut(found, page.Limit, func(in account.Invitation) string { return in.ID }), err
}

// Invitation implements account.Store.
func (s Accounts) Invitation(ctx context.Context, workspaceID, id string, now time.Time) (*account.Invitation, error) {
	return readOne(ctx, s.db, invitationRows.selects()+`WHERE id = $1 AND workspace_id = $2 AND expires_at > $3`, []any{id, workspaceID, now}, invitationRows.scan)
}

// InvitationByHash implements account.Store.
func (s Accounts) InvitationByHash(ctx context.Context, hash []byte, now time.Time) (*account.Invitation, error) {
	return readOne(ctx, s.db, invitationRows.selects()+`WHERE hash = $1 AND expires_at > $2`, []any{hash, now}, invitationRows.scan)
}

// InsertInvitation implements account.Store.
func (s Accounts) InsertInvitation(ctx context.Context, in account.Invitation, atMost int, entry audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if err := tx.Lock(database.Lock{Kind: database.LockMembers, Key: in.WorkspaceID}); err != nil {
			return false, err
		}
		if err := tx.Do(`DELETE FROM invitations WHERE workspace_id = $1 AND email = $2`, in.WorkspaceID, in.Email); err != nil {
			return false, err
		}
		open, err := database.Number(tx, `SELECT COUNT(*) FROM invitations WHERE workspace_id = $1 AND expires_at > $2`, in.WorkspaceID, in.CreatedAt)
		if err != nil || open >= atMost {
			return false, err
		}
		if err := invitationRows.insertInto(tx, in); err != nil {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// RevokeInvitation implements account.Store.
func (s Accounts) RevokeInvitation(ctx context.Context, workspaceID, id string, entry audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if ok, err := oneRow(tx.Exec(`DELETE FROM invitations WHERE id = $1 AND workspace_id = $2`, id, workspaceID)); err != nil || !ok {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// Accept implements account.Store.
func (s Accounts) Accept(ctx context.Context, in account.Invitation, user account.User, n account.NewSession, entries ...audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if err := tx.Lock(database.Lock{Kind: database.LockMembers, Key: in.WorkspaceID}); err != nil {
			return false, err
		}
		used, err := oneRow(tx.Exec(`DELETE FROM invitations WHERE id = $1 AND workspace_id = $2 AND expires_at > $3`, in.ID, in.WorkspaceID, n.CreatedAt))
		if err != nil || !used {
			return false, err
		}
		return join(tx, user, in.Role, n, entries)
	})
}

// Join implements account.Store.
func (s Accounts) Join(ctx context.Context, user account.User, role account.Role, n account.NewSession, entries ...audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if err := tx.Lock(database.Lock{Kind: database.LockMembers, Key: n.WorkspaceID}); err != nil {
			return false, err
		}
		return join(tx, user, role, n, entries)
	})
}

// join makes a user a member of a workspace, creating the user if necessary, and
// starts a session.
func join(tx *transaction, user account.User, role account.Role, n account.NewSession, entries []audit.Entry) (bool, error) {
	known, err := oneRow(tx.Exec(`UPDATE users SET seen_at = $1 WHERE id = $2 AND password = $3`, n.CreatedAt, user.ID, user.Password))
	if err != nil {
		return false, err
	}
	if !known {
		if ok, err := insertUser(tx, user); err != nil || !ok {
			return false, err
		}
	}
	if already, err := isMember(tx, n.WorkspaceID, user.ID); err != nil || already {
		return false, err
	}
	if err := insertMember(tx, n.WorkspaceID, user.ID, role, n.CreatedAt); err != nil {
		return false, err
	}
	if err := insertSession(tx, n); err != nil {
		return false, err
	}
	return true, insertAudit(tx, entries...)
}
