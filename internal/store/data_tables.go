package store

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/txn"
)

// Tables implements table.Store.
type Tables struct{ db *DB }

// In implements table.Store.
func (s Tables) In(tx txn.Tx) table.Store { return s.db.in(tx).Tables }

var purgedTablesTable = Table{Name: "purged_tables", Key: "table_id column_id", Text: "table_id column_id"}

var dataTableRows = mapTable("data_tables", "id", func(t *table.Table) []any {
	return []any{
		"id", &t.ID, "workspace_id", &t.WorkspaceID, "name", &t.Name, "columns", jsonText(&t.Columns), "key_column", &t.Key, "last_column", &t.LastColumn,
		"row_count", &t.Rows, "row_bytes", &t.Bytes, "created_at", &t.CreatedAt, "created_by", &t.CreatedBy, "updated_at", &t.UpdatedAt, "updated_by", &t.UpdatedBy,
	}
})

// tableOf finds a table by id or name. No table has the id of another as its name.
func tableOf(c database.Conn, workspaceID, ref string) (*table.Table, error) {
	found, err := database.One(c, dataTableRows.selects()+`WHERE id = $1 AND workspace_id = $2`, []any{ref, workspaceID}, dataTableRows.scan)
	if err != nil || found != nil {
		return found, err
	}
	return database.One(c, dataTableRows.selects()+`WHERE workspace_id = $1 AND name = $2`, []any{workspaceID, ref}, dataTableRows.scan)
}

// InsertTable implements table.Store.
func (s Tables) InsertTable(ctx context.Context, t table.Table, atMost int, entry audit.Entry) (table.Outcome, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome table.Outcome, err error) {
		outcome = table.Created
		have, err := lockState(tx, t.WorkspaceID)
		if err != nil {
			return outcome, err
		}
		taken, err := tableNamed(tx, t.WorkspaceID, t.Name)
		switch {
		case err != nil:
			return outcome, err
		case taken:
			return table.NameTaken, nil
		case have.tables >= atMost:
			return table.TooMany, nil
		}
		if err := dataTableRows.insertInto(tx, t); err != nil {
			return outcome, err
		}
		if err := addState(tx, t.WorkspaceID, stateUsage{tables: 1}); err != nil {
			return outcome, err
		}
		return outcome, insertAudit(tx, entry)
	})
}

func tableNamed(c database.Conn, workspaceID, name string) (bool, error) {
	n, err := database.Number(c, `SELECT count(*) FROM data_tables WHERE workspace_id = $1 AND name = $2`, workspaceID, name)
	return n > 0, err
}

// Table implements table.Store.
func (s Tables) Table(ctx context.Context, workspaceID, ref string) (*table.Table, error) {
	return view(ctx, s.db, func(c database.Conn) (*table.Table, error) { return tableOf(c, workspaceID, ref) })
}

// Tables implements table.Store.
func (s Tables) Tables(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[table.Table], error) {
	found, err := readList(ctx, s.db, dataTableRows.selects()+`WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`, []any{workspaceID, page.After, page.Limit + 1}, dataTableRows.scan)
	return paging.Cut(found, page.Limit, func(t table.Table) string { return t.Name }), err
}

// ChangeTable implements table.Store.
func (s Tables) ChangeTable(ctx context.Context, scope table.Scope, change func(table.Table) (table.Change, error), entry audit.Entry) (table.Table, error) {
	return transact(ctx, s.db, func(tx *transaction) (changed table.Table, err error) {
		t, err := openTable(tx, scope)
		if err != nil {
			return changed, err
		}
		c, err := change(t.table)
		if err != nil {
			return changed, err
		}
		if c.Table.Name != t.table.Name {
			taken, err := tableNamed(tx, scope.WorkspaceID, c.Table.Name)
			if err != nil {
				return changed, err
			}
			if taken {
				return changed, table.Taken(c.Table.Name)
			}
		}
		if changed, err = t.change(c); err != nil {
			return changed, err
		}
		return changed, insertAudit(tx, entry)
	})
}

// change applies a change to the definition of the table and to its rows.
func (t *tableTx) change(c table.Change) (table.Table, error) {
	next := c.Table
	columns, err := json.Marshal(next.Columns)
	if err != nil {
		return next, err
	}
	if err := t.tx.Do(`UPDATE data_tables SET name = $1, columns = $2, last_column = $3, updated_at = $4, updated_by = $5 WHERE id = $6 AND workspace_id = $7`,
		next.Name, string(columns), next.LastColumn, next.UpdatedAt, next.UpdatedBy, next.ID, next.WorkspaceID); err != nil {
		return next, err
	}
	for _, column := range c.Unindex {
		if err := t.tx.Do(`INSERT INTO purged_tables (table_id, column_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, next.ID, column); err != nil {
			return next, err
		}
	}
	for _, column := range c.Reindex {
		for _, statement := range []string{`DELETE FROM purged_tables WHERE table_id = $1 AND column_id = $2`, `DELETE FROM table_index WHERE table_id = $1 AND column_id = $2`} {
			if err := t.tx.Do(statement, next.ID, column); err != nil {
				return next, err
			}
		}
	}
	if c.Rewrite || c.Reindex != nil {
		if err := t.rewrite(c); err != nil {
			return next, err
		}
	}
	t.table = next
	if err := t.count(); err != nil {
		return next, err
	}
	next.Rows, next.Bytes = t.table.Rows+t.grown.rows, t.table.Bytes+t.grown.bytes
	return next, nil
}

func (t *tableTx) rewrite(c table.Change) error {
	var reindex []table.Column
	if c.Reindex != nil {
		reindex = indexedColumns(c.Table, c.Reindex)
	}
	// The rows are read first: writes would disturb the iteration.
	var rows []stored
	if err := scanRows(t.tx, t.table, table.Plan{}, nil, func(r stored) bool { rows = append(rows, r); return true }); err != nil {
		return err
	}
	for _, old := range rows {
		next := old
		if c.Rewrite {
			converted, err := c.Convert(old.Record)
			if err != nil {
				return err
			}
			next.Record = converted
			data, err := t.encode(converted)
			if err != nil {
				return err
			}
			if err := t.update(c.Table, converted, data); err != nil {
				return err
			}
			if err := t.holdFiles(c.Table, old.Cells, converted); err != nil {
				return err
			}
			t.grown.bytes += len(data) - old.size
		}
		if err := t.index(reindex, next.Record); err != nil {
			return err
		}
	}
	return nil
}

// DeleteTable implements table.Store. The rows are removed by PurgeTables.
func (s Tables) DeleteTable(ctx context.Context, workspaceID, id string, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (deleted bool, err error) {
		if _, err := lockState(tx, workspaceID); err != nil {
			return deleted, err
		}
		t, err := database.One(tx, dataTableRows.selects()+`WHERE id = $1 AND workspace_id = $2`, []any{id, workspaceID}, dataTableRows.scan)
		if err != nil || t == nil {
			return deleted, err
		}
		deleted = true
		if err := tx.Do(`DELETE FROM data_tables WHERE id = $1 AND workspace_id = $2`, id, workspaceID); err != nil {
			return deleted, err
		}
		if err := tx.Do(`INSERT INTO purged_tables (table_id, column_id) VALUES ($1, '')`, id); err != nil {
			return deleted, err
		}
		if err := addState(tx, workspaceID, stateUsage{tables: -1, rows: -t.Rows, bytes: -t.Bytes}); err != nil {
			return deleted, err
		}
		return deleted, insertAudit(tx, entry)
	})
}

// PurgeTables removes up to limit rows of deleted tables and indexes. It returns true
// if there is more to do.
func (s Tables) PurgeTables(ctx context.Context, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		type purged struct{ table, column string }
		rest, err := database.One(tx, `SELECT table_id, column_id FROM purged_tables LIMIT 1`, nil, func(r database.Row) (rest purged, err error) {
			err = r.Scan(&rest.table, &rest.column)
			return rest, err
		})
		if err != nil || rest == nil {
			return more, err
		}
		more = true
		// An UPDATE locks the row: a column that is being indexed again removes it first.
		if n, err := tx.Exec(`UPDATE purged_tables SET column_id = column_id WHERE table_id = $1 AND column_id = $2`, rest.table, rest.column); err != nil || n == 0 {
			return more, err
		}
		const entries = `DELETE FROM table_index WHERE (table_id, column_id, value, row_id) IN
			(SELECT table_id, column_id, value, row_id FROM table_index WHERE table_id = $1 AND column_id >= $2 AND column_id <= $3 LIMIT $4)`
		last := rest.column
		if last == "" {
			last = "~" // sorts after every column
		}
		n, err := tx.Exec(entries, rest.table, rest.column, last, limit)
		if err != nil || n > 0 {
			return more, err
		}
		if rest.column == "" {
			if n, err := dropHoldersOf(tx, rest.table, clock.Now(), limit); err != nil || n > 0 {
				return more, err
			}
			n, err := tx.Exec(`DELETE FROM table_rows WHERE (table_id, id) IN (SELECT table_id, id FROM table_rows WHERE table_id = $1 LIMIT $2)`, rest.table, limit)
			if err != nil || n > 0 {
				return more, err
			}
		}
		return more, tx.Do(`DELETE FROM purged_tables WHERE table_id = $1 AND column_id = $2`, rest.table, rest.column)
	})
}
