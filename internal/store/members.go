package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
)

var membersTable = Table{Name: "members", Key: "workspace_id user_id", Text: "workspace_id user_id role", Int: "joined_at"}

var selectMember = `SELECT m.workspace_id, m.role, m.joined_at, ` + userColumns + ` FROM members m JOIN users u ON u.id = m.user_id `

func scanMember(r database.Row) (m account.Member, err error) {
	err = r.Scan(append([]any{&m.WorkspaceID, (*string)(&m.Role), &m.JoinedAt}, userRows.into(&m.User)...)...)
	return m, err
}

// Members implements account.Store.
func (s Accounts) Members(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[account.Member], error) {
	found, err := readList(ctx, s.db, selectMember+`WHERE m.workspace_id = $1 AND m.user_id < $2 ORDER BY m.user_id DESC LIMIT $3`,
		[]any{workspaceID, before(page.After), page.Limit + 1}, scanMember)
	return paging.Cut(found, page.Limit, func(m account.Member) string { return m.User.ID }), err
}

// Member implements account.Store.
func (s Accounts) Member(ctx context.Context, workspaceID, userID string) (*account.Member, error) {
	return readOne(ctx, s.db, selectMember+`WHERE m.workspace_id = $1 AND m.user_id = $2`, []any{workspaceID, userID}, scanMember)
}

func insertMember(tx *transaction, workspaceID, userID string, role account.Role, at time.Time) error {
	return tx.Do(`INSERT INTO members (workspace_id, user_id, role, joined_at) VALUES ($1, $2, $3, $4)`, workspaceID, userID, string(role), at)
}

func isMember(c database.Conn, workspaceID, userID string) (bool, error) {
	n, err := database.Number(c, `SELECT COUNT(*) FROM members WHERE workspace_id = $1 AND user_id = $2`, workspaceID, userID)
	return n == 1, err
}

// HasOwner implements account.Store.
func (s Accounts) HasOwner(ctx context.Context, workspaceID string) (bool, error) {
	return view(ctx, s.db, func(c database.Conn) (bool, error) { return hasOwner(c, workspaceID) })
}

func hasOwner(c database.Conn, workspaceID string) (bool, error) {
	n, err := database.Number(c, `SELECT COUNT(*) FROM members WHERE workspace_id = $1 AND role = $2`, workspaceID, string(account.Owner))
	return n > 0, err
}

// SetRole implements account.Store.
func (s Accounts) SetRole(ctx context.Context, workspaceID, userID string, role account.Role, entry audit.Entry) (account.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome account.Outcome, err error) {
		if outcome, err = checkLastOwner(tx, workspaceID, userID, role == account.Owner); err != nil || outcome != account.Done {
			return outcome, err
		}
		if err := tx.Do(`UPDATE members SET role = $1 WHERE workspace_id = $2 AND user_id = $3`, string(role), workspaceID, userID); err != nil {
			return outcome, err
		}
		return outcome, insertAudit(tx, entry)
	})
}

// checkLastOwner checks that a workspace keeps an owner if a member loses their
// role. It blocks other changes to the members of the workspace until the
// transaction ends.
func checkLastOwner(tx *transaction, workspaceID, userID string, staysOwner bool) (account.Outcome, error) {
	if err := tx.Lock(database.Lock{Kind: database.LockMembers, Key: workspaceID}); err != nil {
		return account.Missing, err
	}
	role, err := database.One(tx, `SELECT role FROM members WHERE workspace_id = $1 AND user_id = $2`, []any{workspaceID, userID}, scanText)
	switch {
	case err != nil:
		return account.Missing, err
	case role == nil:
		return account.Missing, nil
	case *role != string(account.Owner) || staysOwner:
		return account.Done, nil
	}
	owners, err := database.Number(tx, `SELECT COUNT(*) FROM members WHERE workspace_id = $1 AND role = $2`, workspaceID, string(account.Owner))
	if err == nil && owners == 1 {
		return account.LastOwner, nil
	}
	return account.Done, err
}

// RemoveMember implements account.Store. A user who is in no other workspace is
// deleted with everything that belongs to them.
func (s Accounts) RemoveMember(ctx context.Context, workspaceID, userID string, entry audit.Entry) (account.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome account.Outcome, err error) {
		if outcome, err = checkLastOwner(tx, workspaceID, userID, false); err != nil || outcome != account.Done {
			return outcome, err
		}
		if _, err := lockUser(tx, userID); err != nil {
			return outcome, err
		}
		if err := tx.Do(`DELETE FROM members WHERE workspace_id = $1 AND user_id = $2`, workspaceID, userID); err != nil {
			return outcome, err
		}
		if err := tx.Do(`DELETE FROM sessions WHERE workspace_id = $1 AND user_id = $2`, workspaceID, userID); err != nil {
			return outcome, err
		}
		if err := removeOrphanedUser(tx, userID); err != nil {
			return outcome, err
		}
		return outcome, insertAudit(tx, entry)
	})
}

func removeOrphanedUser(tx *transaction, userID string) error {
	n, err := database.Number(tx, `SELECT COUNT(*) FROM members WHERE user_id = $1`, userID)
	if err != nil || n > 0 {
		return err
	}
	if err := endAccess(tx, userID, ""); err != nil {
		return err
	}
	return tx.Do(`DELETE FROM users WHERE id = $1`, userID)
}
