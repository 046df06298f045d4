package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
)

var ticketRows = mapTable("tickets", "hash", func(t *account.Ticket) []any {
	return []any{"hash", &t.Hash, "kind", (*string)(&t.Kind), "user_id", &t.UserID, "created_at", &t.CreatedAt, "expires_at", &t.ExpiresAt}
})

// InsertTicket implements account.Store.
func (s Accounts) InsertTicket(ctx context.Context, t account.Ticket, entries ...audit.Entry) error {
	return s.db.write(ctx, func(tx *transaction) error {
		if err := ticketRows.insertInto(tx, t); err != nil {
			return err
		}
		return insertAudit(tx, entries...)
	})
}

// TicketByHash implements account.Store.
func (s Accounts) TicketByHash(ctx context.Context, kind account.TicketKind, hash []byte, now time.Time) (*account.Ticket, error) {
	return readOne(ctx, s.db, ticketRows.selects()+`WHERE hash = $1 AND kind = $2 AND expires_at > $3`, []any{hash, string(kind), now}, ticketRows.scan)
}

// consumeTicket deletes a ticket. It returns false if there is no such ticket.
func consumeTicket(tx *transaction, kind account.TicketKind, hash []byte, now time.Time) (bool, error) {
	return oneRow(tx.Exec(`DELETE FROM tickets WHERE hash = $1 AND kind = $2 AND expires_at > $3`, hash, string(kind), now))
}

// CreateFirstOwner implements account.Store.
func (s Accounts) CreateFirstOwner(ctx context.Context, hash []byte, now time.Time, owner account.User, n account.NewSession, entries ...audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		if err := tx.Lock(database.Lock{Kind: database.LockMembers, Key: n.WorkspaceID}); err != nil {
			return false, err
		}
		if ok, err := consumeTicket(tx, account.Welcome, hash, now); err != nil || !ok {
			return false, err
		}
		if owned, err := hasOwner(tx, n.WorkspaceID); err != nil || owned {
			return false, err
		}
		if err := tx.Do(`DELETE FROM tickets WHERE kind = $1`, string(account.Welcome)); err != nil {
			return false, err
		}
		return join(tx, owner, account.Owner, n, entries)
	})
}

// ResetPassword implements account.Store.
func (s Accounts) ResetPassword(ctx context.Context, hash []byte, now time.Time, user account.User, n account.NewSession, entry audit.Entry) (bool, error) {
	return s.writeIf(ctx, func(tx *transaction) (bool, error) {
		ok, err := oneRow(tx.Exec(`UPDATE users SET password = $1, identity = NULL, seen_at = $2 WHERE id = $3`, user.Password, n.CreatedAt, user.ID))
		if err != nil || !ok {
			return false, err
		}
		if ok, err := consumeTicket(tx, account.Reset, hash, now); err != nil || !ok {
			return false, err
		}
		if ok, err := isMember(tx, n.WorkspaceID, user.ID); err != nil || !ok {
			return false, err
		}
		if err := endAccess(tx, user.ID, ""); err != nil {
			return false, err
		}
		if err := insertSession(tx, n); err != nil {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}
