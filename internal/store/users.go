package store

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
)

// Accounts implements account.Store: users, sessions, members, invitations and sign-in links.
type Accounts struct {
	db *DB
	workspaceReader
	auditWriter
}

// In implements account.Store.
func (s Accounts) In(tx txn.Tx) account.Store { return s.db.in(tx).Accounts }

// errConditionFailed rolls a transaction back when one of its conditions does not
// hold.
var errConditionFailed = errors.New("a condition of the transaction does not hold")

// writeIf runs fn in a transaction. If fn returns false, it rolls the transaction
// back and returns false.
func (s Accounts) writeIf(ctx context.Context, fn func(*transaction) (bool, error)) (bool, error) {
	err := s.db.write(ctx, func(tx *transaction) error {
		ok, err := fn(tx)
		if err == nil && !ok {
			err = errConditionFailed
		}
		return err
	})
	if errors.Is(err, errConditionFailed) {
		return false, nil
	}
	return err == nil, err
}

func oneRow(n int64, err error) (bool, error) { return n == 1, err }

// HasUsers implements account.Store.
func (s Accounts) HasUsers(ctx context.Context) (bool, error) {
	n, err := readValue[int](ctx, s.db, `SELECT 1 FROM users LIMIT 1`)
	return n == 1, err
}

var userRows = mapTable("users", "id", func(u *account.User) []any {
	return []any{
		"id", &u.ID, "email", &u.Email, "name", &u.Name, "password", &u.Password, "identity", nullable(&u.Identity),
		"seen_at", &u.SeenAt, "created_at", &u.CreatedAt,
	}
})

var (
	userColumns = userRows.columns("u.")
	selectUser  = `SELECT ` + userColumns + ` FROM users u `
)

// Users implements account.Store.
func (s Accounts) Users(ctx context.Context, page paging.Request) (paging.Page[account.User], error) {
	found, err := readList(ctx, s.db, selectUser+`WHERE u.id < $1 ORDER BY u.id DESC LIMIT $2`, []any{before(page.After), page.Limit + 1}, userRows.scan)
	return paging.Cut(found, page.Limit, func(u account.User) string { return u.ID }), err
}

// User implements account.Store.
func (s Accounts) User(ctx context.Context, id string) (*account.User, error) {
	return s.oneUser(ctx, `WHERE u.id = $1`, id)
}

// UserByEmail implements account.Store.
func (s Accounts) UserByEmail(ctx context.Context, email string) (*account.User, error) {
	return s.oneUser(ctx, `WHERE u.email = $1`, email)
}

// UserByIdentity implements account.Store.
func (s Accounts) UserByIdentity(ctx context.Context, identity string) (*account.User, error) {
	return s.oneUser(ctx, `WHERE u.identity = $1`, identity)
}

// BindIdentity implements account.Store.
func (s Accounts) BindIdentity(ctx context.Context, user account.User, was string, join *account.Membership, entries ...audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if join != nil {
			if err := tx.Lock(database.Lock{Kind: database.LockMembers, Key: join.Workspace.ID}); err != nil {
				return false, err
			}
		}
		if ok, err := oneRow(tx.Exec(`UPDATE users SET identity = $1, password = '' WHERE id = $2 AND COALESCE(identity, '') = $3
			AND NOT EXISTS (SELECT 1 FROM users o WHERE o.identity = $1)`, user.Identity, user.ID, was)); err != nil || !ok {
			return false, err
		}
		if err := endAccess(tx, user.ID, ""); err != nil {
			return false, err
		}
		if join != nil {
			already, err := isMember(tx, join.Workspace.ID, user.ID)
			if err == nil && !already {
				err = insertMember(tx, join.Workspace.ID, user.ID, join.Role, clock.Now())
			}
			if err != nil {
				return false, err
			}
		}
		return true, insertAudit(tx, entries...)
	})
}

// endAccess ends the sessions of a user except one, and makes their links invalid.
func endAccess(tx *transaction, userID, keepSession string) error {
	if err := tx.Do(`DELETE FROM sessions WHERE user_id = $1 AND id <> $2`, userID, keepSession); err != nil {
		return err
	}
	return tx.Do(`DELETE FROM tickets WHERE user_id = $1`, userID)
}

func (s Accounts) oneUser(ctx context.Context, where, arg string) (*account.User, error) {
	return readOne(ctx, s.db, selectUser+where, []any{arg}, userRows.scan)
}

// insertUser returns false if another user has the address or the identity.
func insertUser(tx *transaction, user account.User) (bool, error) {
	args, err := userRows.args(user)
	if err != nil {
		return false, err
	}
	return oneRow(tx.Exec(userRows.insert+` ON CONFLICT DO NOTHING`, args...))
}

// lockUser blocks other transactions on a user until this one ends. It returns
// false if the user does not exist. Changes to the sessions and memberships of a
// user hold this lock.
func lockUser(tx *transaction, userID string) (bool, error) {
	return oneRow(tx.Exec(`UPDATE users SET seen_at = seen_at WHERE id = $1`, userID))
}

// RenameUser implements account.Store.
func (s Accounts) RenameUser(ctx context.Context, id, name string, entry audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if ok, err := oneRow(tx.Exec(`UPDATE users SET name = $1 WHERE id = $2`, name, id)); err != nil || !ok {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// ChangePassword implements account.Store.
func (s Accounts) ChangePassword(ctx context.Context, user account.User, was, keep string, entry audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if ok, err := oneRow(tx.Exec(`UPDATE users SET password = $1 WHERE id = $2 AND password = $3`, user.Password, user.ID, was)); err != nil || !ok {
			return false, err
		}
		if err := endAccess(tx, user.ID, keep); err != nil {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// Memberships implements account.Store.
func (s Accounts) Memberships(ctx context.Context, userID string) ([]account.Membership, error) {
	return readList(ctx, s.db, `SELECT m.role, `+workspaceColumns+` FROM members m JOIN workspaces w ON w.id = m.workspace_id
		LEFT JOIN installation i ON i.first_workspace_id = w.id WHERE m.user_id = $1 ORDER BY m.joined_at, m.workspace_id`,
		[]any{userID}, func(r database.Row) (m account.Membership, err error) {
			err = r.Scan(append([]any{(*string)(&m.Role)}, workspaceFields(&m.Workspace)...)...)
			return m, err
		})
}
