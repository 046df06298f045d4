package store

import (
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/usage"
)

// stateUsage is how much a workspace keeps between runs, or by how much that changes.
type stateUsage struct{ tables, rows, keys, bytes int }

var stateUsageTable = Table{Name: "state_usage", Key: "workspace_id", Text: "workspace_id", Int: "tables table_rows state_keys stored_bytes"}

// lockState serializes the changes of the tables, rows and keys of a workspace until
// the end of the transaction, and returns how much there is.
func lockState(tx *transaction, workspaceID string) (have stateUsage, err error) {
	err = tx.Query(`INSERT INTO state_usage (workspace_id, tables, table_rows, state_keys, stored_bytes) VALUES ($1, 0, 0, 0, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET tables = state_usage.tables RETURNING tables, table_rows, state_keys, stored_bytes`,
		[]any{workspaceID}, func(r database.Row) error { return r.Scan(&have.tables, &have.rows, &have.keys, &have.bytes) })
	return have, err
}

func addState(tx *transaction, workspaceID string, by stateUsage) error {
	if by == (stateUsage{}) {
		return nil
	}
	return tx.Do(`UPDATE state_usage SET tables = tables + $1, table_rows = table_rows + $2, state_keys = state_keys + $3, stored_bytes = stored_bytes + $4
		WHERE workspace_id = $5`, by.tables, by.rows, by.keys, by.bytes, workspaceID)
}

func currentState(c database.Conn, workspaceID string, into *usage.Current) error {
	return c.Query(`SELECT tables, table_rows, state_keys, stored_bytes FROM state_usage WHERE workspace_id = $1`, []any{workspaceID}, func(r database.Row) error {
		return r.Scan(&into.Tables, &into.TableRows, &into.StateKeys, &into.StoredBytes)
	})
}
