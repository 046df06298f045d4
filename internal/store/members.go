package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/paging"
)

const selectMember = `SELECT m.workspace_id, m.role, m.joined_at, ` + userColumns + ` FROM members m JOIN users u ON u.id = m.user_id `

func scanMember(r Row) (m account.Member, err error) {
	err = r.Scan(append([]any{&m.WorkspaceID, (*string)(&m.Role), &m.JoinedAt}, userFields(&m.User)...)...)
	return m, err
}

// Members implements account.Store.
func (s *Store) Members(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[account.Member], error) {
	var found []account.Member
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = list(c, selectMember+`WHERE m.workspace_id = $1 AND m.user_id < $2 ORDER BY m.user_id DESC LIMIT $3`,
			[]any{workspaceID, before(page.After), page.Limit + 1}, scanMember)
		return err
	})
	return paging.Cut(found, page.Limit, func(m account.Member) string { return m.User.ID }), err
}

// Member implements account.Store.
func (s *Store) Member(ctx context.Context, workspaceID, userID string) (*account.Member, error) {
	var found *account.Member
	err := s.read(ctx, func(c Conn) (err error) {
		found, err = one(c, selectMember+`WHERE m.workspace_id = $1 AND m.user_id = $2`, []any{workspaceID, userID}, scanMember)
		return err
	})
	return found, err
}

func insertMember(u *unit, workspaceID, userID string, role account.Role, at time.Time) error {
	return u.Do(`INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $2, $3, $4)`, workspaceID, userID, string(role), at)
}

// isMember tells whether a user is in a workspace.
func isMember(u *unit, workspaceID, userID string) (bool, error) {
	n, err := number(u, `SELECT COUNT(*) FROM members WHERE workspace_id = $1 AND user_id = $2`, workspaceID, userID)
	return n == 1, err
}

// SetRole implements account.Store.
func (s *Store) SetRole(ctx context.Context, workspaceID, userID string, role account.Role, entry audit.Entry) (account.Outcome, error) {
	outcome := account.Done
	err := s.write(ctx, func(u *unit) (err error) {
		if outcome, err = replaceable(u, workspaceID, userID, role == account.Owner); err != nil || outcome != account.Done {
			return err
		}
		if err := u.Do(`UPDATE members SET role = $1 WHERE workspace_id = $2 AND user_id = $3`, string(role), workspaceID, userID); err != nil {
			return err
		}
		return insertAudit(u, entry)
	})
	return outcome, err
}

// replaceable tells whether a member may lose the role they have. From then on
// nobody else changes the members of the workspace until the unit ends.
func replaceable(u *unit, workspaceID, userID string, staysOwner bool) (account.Outcome, error) {
	if err := u.Lock(Lock{Kind: lockMembers, Key: workspaceID}); err != nil {
		return account.Missing, err
	}
	role, err := one(u, `SELECT role FROM members WHERE workspace_id = $1 AND user_id = $2`, []any{workspaceID, userID}, scanText)
	switch {
	case err != nil:
		return account.Missing, err
	case role == nil:
		return account.Missing, nil
	case *role != string(account.Owner) || staysOwner:
		return account.Done, nil
	}
	owners, err := number(u, `SELECT COUNT(*) FROM members WHERE workspace_id = $1 AND role = $2`, workspaceID, string(account.Owner))
	if err == nil && owners == 1 {
		return account.LastOwner, nil
	}
	return account.Done, err
}

// RemoveMember implements account.Store. A user without any workspace is removed
// with all that is theirs.
func (s *Store) RemoveMember(ctx context.Context, workspaceID, userID string, entry audit.Entry) (account.Outcome, error) {
	outcome := account.Done
	err := s.write(ctx, func(u *unit) (err error) {
		if outcome, err = replaceable(u, workspaceID, userID, false); err != nil || outcome != account.Done {
			return err
		}
		if _, err := holdUser(u, userID); err != nil {
			return err
		}
		if err := u.Do(`DELETE FROM members WHERE workspace_id = $1 AND user_id = $2`, workspaceID, userID); err != nil {
			return err
		}
		if err := u.Do(`DELETE FROM sessions WHERE workspace_id = $1 AND user_id = $2`, workspaceID, userID); err != nil {
			return err
		}
		if err := removeStray(u, userID); err != nil {
			return err
		}
		return insertAudit(u, entry)
	})
	return outcome, err
}

// removeStray removes a user who is in no workspace any more.
func removeStray(u *unit, userID string) error {
	n, err := number(u, `SELECT COUNT(*) FROM members WHERE user_id = $1`, userID)
	if err != nil || n > 0 {
		return err
	}
	if err := u.Do(`DELETE FROM sessions WHERE user_id = $1`, userID); err != nil {
		return err
	}
	if err := u.Do(`DELETE FROM tickets WHERE user_id = $1`, userID); err != nil {
		return err
	}
	return u.Do(`DELETE FROM users WHERE id = $1`, userID)
}
