package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/runqueue"
)

// Connections implements connection.Stores: connections, OAuth apps and consents.
type Connections struct {
	db *DB
	workspaceReader
	auditWriter
}

const connectionColumns = `id, workspace_id, name, integration, definition, auth, fields, learned, hosts, account, status, problem, epoch,
	expires_at, last_used_at, created_at, created_by, updated_at, updated_by, access, members, consent_ends_at, warn_at, app`

const selectConnection = `SELECT ` + connectionColumns + ` FROM connections `

const selectSealedConnection = `SELECT ` + connectionColumns + `, credential FROM connections `

func scanConnection(r database.Row) (connection.Connection, error) { return scanConnectionAnd(r) }

// scanConnectionAnd scans the columns of a connection followed by others.
func scanConnectionAnd(r database.Row, more ...any) (connection.Connection, error) {
	var (
		c                               connection.Connection
		fields, learned, hosts, members []byte
		app                             *string
	)
	err := r.Scan(append([]any{
		&c.ID, &c.WorkspaceID, &c.Name, &c.Integration, (*[]byte)(&c.Definition), &c.Auth, &fields, &learned, &hosts, &c.Account, (*string)(&c.Status), &c.Problem,
		&c.Epoch, &c.ExpiresAt, &c.LastUsedAt, &c.CreatedAt, &c.CreatedBy, &c.UpdatedAt, &c.UpdatedBy,
		(*string)(&c.Access), &members, &c.ConsentEndsAt, &c.WarnAt, &app,
	}, more...)...)
	if err != nil {
		return c, err
	}
	if app != nil {
		c.App = *app
	}
	for _, part := range []struct {
		text []byte
		into any
	}{{fields, &c.Fields}, {learned, &c.Learned}, {hosts, &c.Hosts}, {members, &c.Members}} {
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return c, err
		}
	}
	return c, nil
}

func scanSealedConnection(r database.Row) (sealed connection.Sealed, err error) {
	sealed.Connection, err = scanConnectionAnd(r, &sealed.Credential)
	return sealed, err
}

// encodedConnection has the parts of a connection that are stored as JSON, and what is
// derived from them: the account that the service has told, nil if there is none.
type encodedConnection struct {
	fields, learned, hosts, members string
	accountID                       any
}

// maxAccountID is the maximum length of the name of an account at a service. One that is
// longer has no calls.
const maxAccountID = 255

func encodeConnection(c connection.Connection) (encodedConnection, error) {
	var parts [4]string
	for i, part := range []any{c.Fields, c.Learned, c.Hosts, c.Members} {
		text, err := json.Marshal(part)
		if err != nil {
			return encodedConnection{}, err
		}
		parts[i] = string(text)
	}
	out := encodedConnection{parts[0], parts[1], parts[2], parts[3], nil}
	if account := c.Learned[integration.Account]; account != "" && len(account) <= maxAccountID {
		out.accountID = Text(account)
	}
	return out, nil
}

// InsertConnection implements connection.Store.
func (s Connections) InsertConnection(ctx context.Context, c connection.Sealed, atMost int, entry audit.Entry) (outcome connection.Outcome, err error) {
	encoded, err := encodeConnection(c.Connection)
	if err != nil {
		return 0, err
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		outcome = connection.Created
		// The counter of the workspace serializes the changes of its connections.
		room, err := incrementUsage(tx, "connections", c.WorkspaceID, atMost)
		if err != nil {
			return err
		}
		taken, err := isNameTaken(tx, c.Connection)
		if err != nil {
			return err
		}
		lacks, err := lacksIntegration(tx, c.Connection)
		if err != nil {
			return err
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
			return decrementUsage(tx, "connections", c.WorkspaceID, 1)
		}
		if outcome != connection.Created {
			return nil
		}
		if err := tx.Do(`INSERT INTO connections (`+connectionColumns+`, account_id, credential)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)`,
			c.ID, c.WorkspaceID, c.Name, c.Integration, textOrNil(c.Definition), c.Auth, encoded.fields, encoded.learned, encoded.hosts, Text(c.Account), string(c.Status), Text(c.Problem), c.Epoch,
			database.TimeOrNil(c.ExpiresAt), database.TimeOrNil(c.LastUsedAt), c.CreatedAt, c.CreatedBy, c.UpdatedAt, c.UpdatedBy, string(c.Access), encoded.members,
			database.TimeOrNil(c.ConsentEndsAt), database.TimeOrNil(c.WarnAt), database.OrNil(c.App), encoded.accountID, c.Credential); err != nil {
			return err
		}
		return insertAudit(tx, entry)
	})
	return outcome, err
}

func textOrNil(text []byte) any {
	if text == nil {
		return nil
	}
	return string(text)
}

// Connection implements connection.Store.
func (s Connections) Connection(ctx context.Context, workspaceID, id string) (found *connection.Connection, err error) {
	err = s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = database.One(c, selectConnection+`WHERE id = $1 AND workspace_id = $2`, []any{id, workspaceID}, scanConnection)
		return err
	})
	return found, err
}

// Connections implements connection.Store.
func (s Connections) Connections(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[connection.Connection], error) {
	var found []connection.Connection
	err := s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = database.List(c, selectConnection+`WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`,
			[]any{workspaceID, page.After, page.Limit + 1}, scanConnection)
		return err
	})
	return paging.Cut(found, page.Limit, func(c connection.Connection) string { return c.Name }), err
}

// SealedConnection implements connection.Store.
func (s Connections) SealedConnection(ctx context.Context, workspaceID, name string) (found *connection.Sealed, err error) {
	err = s.db.read(ctx, func(c database.Conn) (err error) {
		found, err = database.One(c, selectSealedConnection+`WHERE workspace_id = $1 AND id = `+connectionNamed, []any{workspaceID, name}, scanSealedConnection)
		return err
	})
	return found, err
}

// UpdateConnection implements connection.Store.
func (s Connections) UpdateConnection(ctx context.Context, c connection.Sealed, wasEpoch int64, entry *audit.Entry) (updated bool, err error) {
	encoded, err := encodeConnection(c.Connection)
	if err != nil {
		return false, err
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		updated, err = updateConnection(tx, c, encoded, wasEpoch)
		if err != nil || !updated || entry == nil {
			return err
		}
		if err := recheckSubscriptions(tx, c.WorkspaceID, c.ID); err != nil {
			return err
		}
		return insertAudit(tx, *entry)
	})
	return updated, err
}

// updateConnection replaces everything but the id, the name, who may use the connection
// and what was recorded by use.
func updateConnection(tx *transaction, c connection.Sealed, encoded encodedConnection, wasEpoch int64) (updated bool, err error) {
	n, err := tx.Exec(`UPDATE connections SET definition = $1, auth = $2, fields = $3, learned = $4, hosts = $5, account = $6, status = $7, problem = $8,
		epoch = $9, expires_at = $10, updated_at = $11, updated_by = $12, credential = $13, renewing_to = CASE WHEN epoch = $9 OR $17 THEN renewing_to END,
		consent_ends_at = $18, warn_at = CASE WHEN epoch = $9 THEN warn_at ELSE $19 END, app = $20, account_id = $21
		WHERE id = $14 AND workspace_id = $15 AND epoch = $16 AND (epoch <> $9 OR status <> 'needs_reconnect')`,
		textOrNil(c.Definition), c.Auth, encoded.fields, encoded.learned, encoded.hosts, Text(c.Account), string(c.Status), Text(c.Problem), c.Epoch,
		database.TimeOrNil(c.ExpiresAt), c.UpdatedAt, c.UpdatedBy, c.Credential, c.ID, c.WorkspaceID, wasEpoch, c.KeepClaim, database.TimeOrNil(c.ConsentEndsAt), database.TimeOrNil(c.WarnAt),
		database.OrNil(c.App), encoded.accountID)
	return n == 1, err
}

// ChangeConnection implements connection.Store.
func (s Connections) ChangeConnection(ctx context.Context, now connection.Sealed, was connection.Connection, entry audit.Entry) (outcome connection.Outcome, err error) {
	encoded, err := encodeConnection(now.Connection)
	if err != nil {
		return 0, err
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		outcome = connection.Changed
		if now.Name != was.Name {
			if outcome, err = checkRename(tx, now.Connection, was.Name); err != nil || outcome != connection.Changed {
				return err
			}
		}
		n, err := tx.Exec(`UPDATE connections SET name = $1, access = $2, members = $3, updated_at = $4, updated_by = $5
			WHERE id = $6 AND workspace_id = $7 AND name = $8 AND epoch = $9`,
			now.Name, string(now.Access), encoded.members, now.UpdatedAt, now.UpdatedBy, now.ID, now.WorkspaceID, was.Name, was.Epoch)
		if err != nil || n == 0 {
			outcome = connection.Stale
			return err
		}
		if now.Name != was.Name {
			if err := keepAlias(tx, now.Connection, was.Name); err != nil {
				return err
			}
		}
		if now.Epoch != was.Epoch {
			if _, err := updateConnection(tx, now, encoded, was.Epoch); err != nil {
				return err
			}
			if err := recheckSubscriptions(tx, now.WorkspaceID, now.ID); err != nil {
				return err
			}
		}
		return insertAudit(tx, entry)
	})
	return outcome, err
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

// wakeBatch is how many runs WakeSteps wakes in one transaction.
const wakeBatch = 100

// WakeSteps implements connection.Store.
func (s Connections) WakeSteps(ctx context.Context, workspaceID, name string, at time.Time) (more bool, err error) {
	err = s.db.write(ctx, func(tx *transaction) error {
		names, err := allNames(tx, workspaceID, name)
		if err != nil {
			return err
		}
		awaits := awaitsConnections(names)
		waiting, err := runqueue.Awaiting(tx, workspaceID, awaits, at, wakeBatch)
		more = len(waiting) == wakeBatch
		if err != nil {
			return err
		}
		for _, runID := range waiting {
			running, err := runqueue.Lock(tx, runID)
			if err != nil {
				return err
			}
			if !running { // it ended in the meantime
				continue
			}
			if err := tx.Do(`UPDATE steps SET wake_at = $1 WHERE run_id = $2 AND status = 'waiting' AND awaits IN (`+database.Placeholders(3, len(awaits))+`)`,
				append([]any{at, runID}, awaits...)...); err != nil {
				return err
			}
			if err := announceAnswer(tx, runID, at); err != nil {
				return err
			}
		}
		return nil
	})
	return more, err
}

// IsMember implements connection.Store.
func (s Connections) IsMember(ctx context.Context, workspaceID, userID string) (is bool, err error) {
	err = s.db.read(ctx, func(c database.Conn) (err error) {
		is, err = isMember(c, workspaceID, userID)
		return err
	})
	return is, err
}
