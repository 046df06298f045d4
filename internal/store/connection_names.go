package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
)

var connectionAliasesTable = Table{Name: "connection_aliases", Key: "workspace_id name", Text: "workspace_id name connection_id"}

// connectionNamed is the id of the connection of the workspace $1 that has the name $2,
// or had it before.
const connectionNamed = `COALESCE((SELECT id FROM connections WHERE workspace_id = $1 AND name = $2),
	(SELECT connection_id FROM connection_aliases WHERE workspace_id = $1 AND name = $2))`

// ConnectionNames lists the names of the connections of a workspace and those that they
// had before, sorted.
func (s Connections) ConnectionNames(ctx context.Context, workspaceID string) ([]connection.Name, error) {
	return readList(ctx, s.db, `SELECT name, name AS present, integration, access, members, created_by FROM connections WHERE workspace_id = $1
		UNION ALL SELECT a.name, c.name, c.integration, c.access, c.members, c.created_by
			FROM connection_aliases a JOIN connections c ON c.id = a.connection_id AND c.workspace_id = a.workspace_id WHERE a.workspace_id = $1
		ORDER BY 1`, []any{workspaceID}, scanConnectionName)
}

func scanConnectionName(r database.Row) (connection.Name, error) {
	var (
		name    connection.Name
		members []byte
	)
	if err := r.Scan(&name.Name, &name.Now, &name.Integration, (*string)(&name.Access), &members, &name.Owner); err != nil {
		return name, err
	}
	return name, json.Unmarshal(members, &name.Members)
}

// isNameTaken reports whether another connection has the name of this one or had it
// before.
func isNameTaken(tx *transaction, c connection.Connection) (bool, error) {
	n, err := database.Number(tx, `SELECT (SELECT count(*) FROM connections WHERE workspace_id = $1 AND name = $2 AND id <> $3)
		+ (SELECT count(*) FROM connection_aliases WHERE workspace_id = $1 AND name = $2 AND connection_id <> $3)`, c.WorkspaceID, c.Name, c.ID)
	return n > 0, err
}

// checkRename reports whether a connection can get its new name, and keeps others from
// taking it until the end of the transaction.
func checkRename(tx *transaction, now connection.Connection, was string) (connection.Outcome, error) {
	if err := tx.Lock(lockConnection(now.WorkspaceID, was, false)); err != nil {
		return 0, err
	}
	// The counter of the workspace serializes the changes of its connections.
	if err := tx.Do(`UPDATE workspaces SET connections = connections WHERE id = $1`, now.WorkspaceID); err != nil {
		return 0, err
	}
	if taken, err := isNameTaken(tx, now); err != nil || taken {
		return connection.NameTaken, err
	}
	others, err := database.Number(tx, `SELECT count(*) FROM connection_aliases WHERE connection_id = $1 AND workspace_id = $2 AND name <> $3`, now.ID, now.WorkspaceID, now.Name)
	if err != nil || others >= connection.MaxAliases {
		return connection.TooMany, err
	}
	return connection.Changed, nil
}

// keepAlias makes the earlier name of a connection lead to it. If it gets back a name
// that it had before, that is no longer an earlier one.
func keepAlias(tx *transaction, now connection.Connection, was string) error {
	if err := tx.Do(`DELETE FROM connection_aliases WHERE workspace_id = $1 AND name = $2`, now.WorkspaceID, now.Name); err != nil {
		return err
	}
	return tx.Do(`INSERT INTO connection_aliases (workspace_id, name, connection_id) VALUES ($1, $2, $3)`, now.WorkspaceID, was, now.ID)
}

// allNames lists the names that a connection has and had before, given one of them.
func allNames(c database.Conn, workspaceID, name string) ([]string, error) {
	names, err := database.List(c, `SELECT name FROM connections WHERE workspace_id = $1 AND id = `+connectionNamed+`
		UNION ALL SELECT name FROM connection_aliases WHERE workspace_id = $1 AND connection_id = `+connectionNamed+` ORDER BY 1`, []any{workspaceID, name}, scanText)
	if len(names) == 0 { // it was deleted
		names = []string{name}
	}
	return names, err
}

// awaitsConnections returns what steps await that wait for a connection under any of the
// names.
func awaitsConnections(names []string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = string(action.AwaitsConnection(name))
	}
	return out
}

func lockConnection(workspaceID, name string, shared bool) database.Lock {
	return database.Lock{Kind: database.LockConnection, Key: workspaceID + "/" + name, Shared: shared}
}

// lockConnections keeps connections from being deleted until the end of the
// transaction. It returns false if one of them does not exist. The names are sorted.
func lockConnections(tx *transaction, workspaceID string, names []string) (exist bool, err error) {
	if len(names) == 0 {
		return true, nil
	}
	args := []any{workspaceID}
	for _, name := range names {
		if err := tx.Lock(lockConnection(workspaceID, name, true)); err != nil {
			return false, err
		}
		args = append(args, name)
	}
	list := database.Placeholders(2, len(names))
	n, err := database.Number(tx, `SELECT (SELECT count(*) FROM connections WHERE workspace_id = $1 AND name IN (`+list+`))
		+ (SELECT count(*) FROM connection_aliases WHERE workspace_id = $1 AND name IN (`+list+`))`, args...)
	return n == len(names), err
}

// lockNames keeps workflows from beginning to use a connection, under any of its names,
// and others from renaming it, until the end of the transaction.
func lockNames(tx *transaction, workspaceID, name string) error {
	for locked := map[string]bool{}; ; {
		names, err := allNames(tx, workspaceID, name)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return locked[name] })
		if len(names) == 0 {
			return nil
		}
		for _, name := range names { // another may have come in the meantime
			if err := tx.Lock(lockConnection(workspaceID, name, false)); err != nil {
				return err
			}
			locked[name] = true
		}
	}
}
