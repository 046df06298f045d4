package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/table"
)

// selectRows returns the rows that a selector names. It is part of transactions that
// write, so a filter may read only so many rows.
func selectRows(c database.Conn, t table.Table, s table.Selector) ([]stored, error) {
	switch {
	case s.ID != "":
		return database.List(c, rowByID, []any{t.ID, s.ID, t.WorkspaceID}, scanStored)
	case s.Key != nil:
		key, err := t.LookupKey("/key", s.Key)
		if err != nil {
			return nil, err
		}
		return database.List(c, rowByKey, []any{t.ID, key, t.WorkspaceID}, scanStored)
	}
	p, err := t.Plan(s.Filter, "")
	if err != nil {
		return nil, err
	}
	found, _, err := findRows(c, t, p, pageSize{rows: s.Limit, examined: table.MaxExamined, examinedBytes: table.MaxExaminedBytes}, nil)
	return found, err
}

func (t *tableTx) one(s table.Selector) (stored, error) {
	found, err := selectRows(t.tx, t.table, s)
	if err != nil {
		return stored{}, err
	}
	if len(found) == 0 {
		return stored{}, s.Missing()
	}
	return found[0], nil
}

func insertRow(tx *transaction, scope table.Scope, op table.Insert) (table.Row, error) {
	t, err := openTable(tx, scope)
	if err != nil {
		return table.Row{}, err
	}
	next, err := t.table.New(op.RowID, op.Values, op.Files, scope.At)
	if err != nil {
		return table.Row{}, err
	}
	err = t.apply([]rowChange{{next: next}})
	return t.table.Row(next), err
}

func upsertRow(tx *transaction, scope table.Scope, op table.Upsert) (table.Upserted, error) {
	t, err := openTable(tx, scope)
	if err != nil {
		return table.Upserted{}, err
	}
	changes, err := t.upserts([]table.ImportRow{{RowID: op.RowID, Values: op.Values, Files: op.Files}})
	if err != nil {
		return table.Upserted{}, err
	}
	err = t.apply(changes)
	return table.Upserted{Row: t.table.Row(changes[0].next), Created: changes[0].old == nil}, err
}

// upserts returns what has to change for rows to have the given values.
func (t *tableTx) upserts(rows []table.ImportRow) ([]rowChange, error) {
	keys := make([]string, len(rows))
	for i, row := range rows {
		var err error
		if keys[i], err = t.table.UpsertKey(row.Values); err != nil {
			return nil, err
		}
	}
	existing, err := t.byKeys(keys)
	if err != nil {
		return nil, err
	}
	changes := make([]rowChange, len(rows))
	for i, row := range rows {
		changes[i].line = row.Line
		if old, ok := existing[keys[i]]; ok {
			changes[i].old = &old
			changes[i].next, err = t.table.Patch(old.Record, row.Values, row.Files, t.scope.At)
		} else {
			changes[i].next, err = t.table.New(row.RowID, row.Values, row.Files, t.scope.At)
		}
		if err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func updateRows(tx *transaction, scope table.Scope, op table.Update) ([]table.Row, error) {
	if err := op.Check(); err != nil {
		return nil, err
	}
	t, err := openTable(tx, scope)
	if err != nil {
		return nil, err
	}
	found, err := selectRows(tx, t.table, op.Selector)
	if err != nil {
		return nil, err
	}
	var changes []rowChange
	for _, old := range found {
		next, err := t.table.Patch(old.Record, op.Values, op.Files, scope.At)
		if err != nil {
			return nil, err
		}
		changes = append(changes, rowChange{old: &old, next: next})
	}
	if err := t.apply(changes); err != nil {
		return nil, err
	}
	var rows []table.Row
	for _, c := range changes {
		rows = append(rows, t.table.Row(c.next))
	}
	return rows, nil
}

func deleteRows(tx *transaction, scope table.Scope, op table.Delete) (int, error) {
	if err := op.Check(); err != nil {
		return 0, err
	}
	t, err := openTable(tx, scope)
	if err != nil {
		return 0, err
	}
	found, err := selectRows(tx, t.table, op.Selector)
	if err != nil {
		return 0, err
	}
	if err := t.table.CheckWrites(len(found)); err != nil {
		return 0, err
	}
	for _, old := range found {
		if err := t.unindex(indexedColumns(t.table, nil), old.Record); err != nil {
			return 0, err
		}
		if err := tx.Do(`DELETE FROM table_rows WHERE table_id = $1 AND id = $2 AND workspace_id = $3`, t.table.ID, old.ID, t.table.WorkspaceID); err != nil {
			return 0, err
		}
		if len(t.table.Files(old.Cells)) > 0 {
			if err := dropHolder(tx, file.HeldByRow(t.table.ID, old.ID), scope.At); err != nil {
				return 0, err
			}
		}
		t.grown.rows--
		t.grown.bytes -= old.size
	}
	return len(found), t.count()
}

func incrementRow(tx *transaction, scope table.Scope, op table.Increment) (table.Row, error) {
	if err := op.Check(); err != nil {
		return table.Row{}, err
	}
	t, err := openTable(tx, scope)
	if err != nil {
		return table.Row{}, err
	}
	old, err := t.one(op.Selector)
	if err != nil {
		return table.Row{}, err
	}
	next, err := t.table.Increment(old.Record, op, scope.At)
	if err != nil {
		return table.Row{}, err
	}
	err = t.apply([]rowChange{{old: &old, next: next}})
	return t.table.Row(next), err
}

func importTableRows(tx *transaction, scope table.Scope, op table.Import) (done table.Imported, err error) {
	t, err := openTable(tx, scope)
	if err != nil {
		return done, err
	}
	var changes []rowChange
	if t.table.Key != "" {
		if changes, err = t.upserts(op.Rows); err != nil {
			return done, err
		}
	} else {
		for _, row := range op.Rows {
			next, err := t.table.New(row.RowID, row.Values, row.Files, scope.At)
			if err != nil {
				return done, err
			}
			changes = append(changes, rowChange{next: next, line: row.Line})
		}
	}
	for _, c := range changes {
		if c.old == nil {
			done.Created++
		}
	}
	done.Updated = len(changes) - done.Created
	return done, t.apply(changes)
}

// InsertRow implements table.Store.
func (s Tables) InsertRow(ctx context.Context, scope table.Scope, op table.Insert) (table.Row, error) {
	return inTransaction(ctx, s.db, scope, op, insertRow)
}

// UpsertRow implements table.Store.
func (s Tables) UpsertRow(ctx context.Context, scope table.Scope, op table.Upsert) (table.Upserted, error) {
	return inTransaction(ctx, s.db, scope, op, upsertRow)
}

// UpdateRows implements table.Store.
func (s Tables) UpdateRows(ctx context.Context, scope table.Scope, op table.Update) ([]table.Row, error) {
	return inTransaction(ctx, s.db, scope, op, updateRows)
}

// DeleteRows implements table.Store.
func (s Tables) DeleteRows(ctx context.Context, scope table.Scope, op table.Delete) (int, error) {
	return inTransaction(ctx, s.db, scope, op, deleteRows)
}

// IncrementRow implements table.Store.
func (s Tables) IncrementRow(ctx context.Context, scope table.Scope, op table.Increment) (table.Row, error) {
	return inTransaction(ctx, s.db, scope, op, incrementRow)
}

// ImportRows implements table.Store.
func (s Tables) ImportRows(ctx context.Context, scope table.Scope, op table.Import) (table.Imported, error) {
	return inTransaction(ctx, s.db, scope, op, importTableRows)
}

func inTransaction[S, Op, Result any](ctx context.Context, db *DB, scope S, op Op, perform func(*transaction, S, Op) (Result, error)) (Result, error) {
	return transact(ctx, db, func(tx *transaction) (Result, error) { return perform(tx, scope, op) })
}

// GetRow implements table.Store.
func (s Tables) GetRow(ctx context.Context, scope table.Scope, op table.Get) (*table.Row, error) {
	if err := op.Check(); err != nil {
		return nil, err
	}
	return view(ctx, s.db, func(c database.Conn) (found *table.Row, err error) {
		t, err := readTable(c, scope)
		if err != nil {
			return found, err
		}
		rows, err := selectRows(c, t, op.Selector)
		if err == nil && len(rows) > 0 {
			row := t.Row(rows[0].Record)
			found = &row
		}
		return found, err
	})
}

// readTable reads the table of an operation that changes nothing.
func readTable(c database.Conn, scope table.Scope) (table.Table, error) {
	t, err := tableOf(c, scope.WorkspaceID, scope.Table)
	return fault.Found(t, err, table.NotFound, scope.Table)
}

// FindRows implements table.Store.
func (s Tables) FindRows(ctx context.Context, scope table.Scope, op table.Find) (found table.Found, err error) {
	var read examined
	err = s.db.read(ctx, func(c database.Conn) error {
		found, read = table.Found{Rows: []table.Row{}}, examined{}
		t, err := readTable(c, scope)
		if err != nil {
			return err
		}
		p, err := t.Plan(op.Filter, op.Sort)
		if err != nil {
			return err
		}
		var rows []stored
		rows, read, err = findRows(c, t, p, pageSize{rows: op.Limit + 1, bytes: op.MaxBytes}, table.ParsePosition(op.After))
		if err != nil {
			return err
		}
		found.Examined = read.rows
		page := rows[:min(len(rows), op.Limit)]
		if op.MaxBytes > 0 {
			page = withinBytes(page, op.MaxBytes)
		}
		for _, row := range page {
			found.Rows = append(found.Rows, t.Row(row.Record))
		}
		if len(page) < len(rows) {
			last := page[len(page)-1]
			found.Next = table.Position{Key: p.SortKey(last.Record), ID: last.ID}.String()
		}
		return nil
	})
	return found, explainScan(err, op, read)
}
