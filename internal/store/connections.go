package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/txn"
)

// Connections implements connection.Stores: connections, OAuth apps and consents.
type Connections struct {
	db *DB
	workspaceReader
	auditWriter
}

// In implements connection.Stores.
func (s Connections) In(tx txn.Tx) connection.Stores { return s.db.in(tx).Connections }

var connectionRows = mapTable("connections", "id", func(c *connection.Connection) []any {
	return []any{
		"id", &c.ID, "workspace_id", &c.WorkspaceID, "name", &c.Name, "integration", &c.Integration, "definition", nullableText((*[]byte)(&c.Definition)),
		"auth", &c.Auth, "fields", jsonText(&c.Fields), "learned", jsonText(&c.Learned), "hosts", jsonText(&c.Hosts), "account", &c.Account,
		"status", (*string)(&c.Status), "problem", &c.Problem, "epoch", &c.Epoch, "expires_at", &c.ExpiresAt, "last_used_at", &c.LastUsedAt,
		"created_at", &c.CreatedAt, "created_by", &c.CreatedBy, "updated_at", &c.UpdatedAt, "updated_by", &c.UpdatedBy,
		"access", (*string)(&c.Access), "members", jsonText(&c.Members), "consent_ends_at", &c.ConsentEndsAt, "warn_at", &c.WarnAt,
		"app", nullable(&c.App), "account_id", unbound(archive.Text), "credential", unbound(archive.Bytes), "renewing_node", local, "renewing_to", local,
	}
})

var selectSealedConnection = `SELECT ` + connectionRows.columns("") + `, credential FROM connections `

func scanSealedConnection(r database.Row) (sealed connection.Sealed, err error) {
	err = connectionRows.scanInto(r, &sealed.Connection, &sealed.Credential)
	return sealed, err
}

// maxAccountID is the maximum length of the name of an account at a service. One that is longer has
// no calls.
const maxAccountID = 255

// accountID returns the account that the service has told, by which its calls are handed
// out, or nil.
func accountID(c connection.Connection) any {
	if account := c.Learned[integration.Account]; len(account) <= maxAccountID {
		return database.OrNil(account)
	}
	return nil
}

// InsertConnection implements connection.Store.
func (s Connections) InsertConnection(ctx context.Context, c connection.Sealed, atMost int, entry audit.Entry) (connection.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome connection.Outcome, err error) {
		outcome = connection.Created
		// The counter of the workspace serializes the changes of its connections.
		room, err := incrementUsage(tx, "connections", c.WorkspaceID, atMost)
		if err != nil {
			return outcome, err
		}
		taken, err := isNameTaken(tx, c.Connection)
		if err != nil {
			return outcome, err
		}
		lacks, err := lacksIntegration(tx, c.Connection)
		if err != nil {
			return outcome, err
		}
		switch {
		case lacks:
			outcome = connection.NoIntegration
		case taken:
			outcome = connection.NameTaken
		case !room:
			outcome = connection.TooMany
		}
		if outcome != connection.Created && room {
			return outcome, decrementUsage(tx, "connections", c.WorkspaceID, 1)
		}
		if outcome != connection.Created {
			return outcome, nil
		}
		if err := connectionRows.insertInto(tx, c.Connection, "account_id", accountID(c.Connection), "credential", c.Credential); err != nil {
			return outcome, err
		}
		return outcome, insertAudit(tx, entry)
	})
}

// Connection implements connection.Store.
func (s Connections) Connection(ctx context.Context, workspaceID, id string) (*connection.Connection, error) {
	return readOne(ctx, s.db, connectionRows.selects()+`WHERE id = $1 AND workspace_id = $2`, []any{id, workspaceID}, connectionRows.scan)
}

// Connections implements connection.Store.
func (s Connections) Connections(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[connection.Connection], error) {
	found, err := readList(ctx, s.db, connectionRows.selects()+`WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`,
		[]any{workspaceID, page.After, page.Limit + 1}, connectionRows.scan)
	return paging.Cut(found, page.Limit, func(c connection.Connection) string { return c.Name }), err
}

// SealedConnection implements connection.Store.
func (s Connections) SealedConnection(ctx context.Context, workspaceID, name string) (*connection.Sealed, error) {
	return readOne(ctx, s.db, selectSealedConnection+`WHERE workspace_id = $1 AND id = `+connectionNamed, []any{workspaceID, name}, scanSealedConnection)
}

// UpdateConnection implements connection.Store.
func (s Connections) UpdateConnection(ctx context.Context, c connection.Sealed, wasEpoch int64, entry *audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (updated bool, err error) {
		updated, err = updateConnection(tx, c, wasEpoch)
		if err != nil || !updated || entry == nil {
			return updated, err
		}
		if err := recheckSubscriptions(tx, c.WorkspaceID, c.ID); err != nil {
			return updated, err
		}
		return updated, insertAudit(tx, *entry)
	})
}

// updateConnection replaces everything but the id, the name, who may use the connection
// and what was recorded by use.
func updateConnection(tx *transaction, c connection.Sealed, wasEpoch int64) (updated bool, err error) {
	args, err := connectionRows.values(c.Connection, "definition", "auth", "fields", "learned", "hosts", "account", "status", "problem", "epoch",
		"expires_at", "updated_at", "updated_by", "consent_ends_at", "warn_at", "app", "id", "workspace_id")
	if err != nil {
		return false, err
	}
	n, err := tx.Exec(`UPDATE connections SET definition = $1, auth = $2, fields = $3, learned = $4, hosts = $5, account = $6, status = $7, problem = $8,
		epoch = $9, expires_at = $10, updated_at = $11, updated_by = $12, consent_ends_at = $13, warn_at = CASE WHEN epoch = $9 THEN warn_at ELSE $14 END, app = $15,
		credential = $18, account_id = $19, renewing_to = CASE WHEN epoch = $9 OR $20 THEN renewing_to END
		WHERE id = $16 AND workspace_id = $17 AND epoch = $21 AND (epoch <> $9 OR status <> 'needs_reconnect')`,
		append(args, c.Credential, accountID(c.Connection), c.KeepClaim, wasEpoch)...)
	return n == 1, err
}

// ChangeConnection implements connection.Store.
func (s Connections) ChangeConnection(ctx context.Context, now connection.Sealed, was connection.Connection, entry audit.Entry) (connection.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome connection.Outcome, err error) {
		outcome = connection.Changed
		if now.Name != was.Name {
			if outcome, err = checkRename(tx, now.Connection, was.Name); err != nil || outcome != connection.Changed {
				return outcome, err
			}
		}
		args, err := connectionRows.values(now.Connection, "name", "access", "members", "updated_at", "updated_by", "id", "workspace_id")
		if err != nil {
			return outcome, err
		}
		n, err := tx.Exec(`UPDATE connections SET name = $1, access = $2, members = $3, updated_at = $4, updated_by = $5
			WHERE id = $6 AND workspace_id = $7 AND name = $8 AND epoch = $9`, append(args, was.Name, was.Epoch)...)
		if err != nil || n == 0 {
			return connection.Stale, err
		}
		if now.Name != was.Name {
			if err := keepAlias(tx, now.Connection, was.Name); err != nil {
				return outcome, err
			}
		}
		if now.Epoch != was.Epoch {
			if _, err := updateConnection(tx, now, was.Epoch); err != nil {
				return outcome, err
			}
			if err := recheckSubscriptions(tx, now.WorkspaceID, now.ID); err != nil {
				return outcome, err
			}
		}
		return outcome, insertAudit(tx, entry)
	})
}

// DeleteConnection implements connection.Store.
func (s Connections) DeleteConnection(ctx context.Context, workspaceID, id string, entry audit.Entry) (deleted *connection.Sealed, users []connection.User, err error) {
	err = s.db.write(ctx, func(tx *transaction) error {
		deleted, users = nil, nil // the transaction may be retried
		found, err := database.One(tx, selectSealedConnection+`WHERE id = $1 AND workspace_id = $2`, []any{id, workspaceID}, scanSealedConnection)
		if err != nil || found == nil {
			return err
		}
		if err := lockNames(tx, workspaceID, found.Name); err != nil {
			return err
		}
		// It may have been renamed before it was locked.
		if found, err = database.One(tx, selectSealedConnection+`WHERE id = $1 AND workspace_id = $2`, []any{id, workspaceID}, scanSealedConnection); err != nil || found == nil {
			return err
		}
		aliases, err := earlierNames(tx, workspaceID, []string{found.Name})
		if err != nil {
			return err
		}
		using, err := connectionUsers(tx, workspaceID, []string{found.Name}, aliases)
		if err != nil {
			return err
		}
		users = slices.DeleteFunc(using[found.Name], func(u connection.User) bool { return !u.Active })
		if len(users) > 0 {
			return nil
		}
		n, err := tx.Exec(`DELETE FROM connections WHERE id = $1 AND workspace_id = $2`, id, workspaceID)
		if err != nil || n == 0 {
			return err
		}
		if err := tx.Do(`DELETE FROM connection_aliases WHERE connection_id = $1 AND workspace_id = $2`, id, workspaceID); err != nil {
			return err
		}
		deleted = found
		if err := decrementUsage(tx, "connections", workspaceID, 1); err != nil {
			return err
		}
		return insertAudit(tx, entry)
	})
	return deleted, users, err
}

// wakeBatch is how many runs one transaction wakes: it keeps their rows locked until it commits.
const wakeBatch = 100

// WakeSteps implements connection.Store.
func (s Connections) WakeSteps(ctx context.Context, workspaceID, name string, at time.Time) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		names, err := allNames(tx, workspaceID, name)
		if err != nil {
			return more, err
		}
		awaits := awaitsConnections(names)
		waiting, err := runqueue.Awaiting(tx, workspaceID, awaits, at, wakeBatch)
		more = len(waiting) == wakeBatch
		if err != nil {
			return more, err
		}
		for _, runID := range waiting {
			running, err := runqueue.Lock(tx, runID)
			if err != nil {
				return more, err
			}
			if !running { // it ended in the meantime
				continue
			}
			if err := tx.Do(`UPDATE steps SET wake_at = $1 WHERE run_id = $2 AND status = 'waiting' AND awaits IN (`+database.Placeholders(3, len(awaits))+`)`,
				append([]any{at, runID}, awaits...)...); err != nil {
				return more, err
			}
			if err := announceAnswer(tx, runID, at); err != nil {
				return more, err
			}
		}
		return more, nil
	})
}

// IsMember implements connection.Store.
func (s Connections) IsMember(ctx context.Context, workspaceID, userID string) (bool, error) {
	return view(ctx, s.db, func(c database.Conn) (bool, error) { return isMember(c, workspaceID, userID) })
}
