package store

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
)

// tableTx is a transaction that changes the rows of one table. Each operation checks
// everything before it writes, so that one that fails with a fault has changed
// nothing and the transaction can go on.
type tableTx struct {
	tx     *transaction
	table  table.Table
	scope  table.Scope
	limits auth.Limits
	have   stateUsage
	grown  stateUsage // by this operation
}

var tableIndexTable = Table{Name: "table_index", Key: "table_id column_id value row_id", Text: "table_id column_id value row_id workspace_id"}

var tableRowsTable = Table{Name: "table_rows", Key: "table_id id", Text: "table_id id workspace_id unique_key data", Int: "size created_at updated_at"}

func openTable(tx *transaction, scope table.Scope) (*tableTx, error) {
	have, err := lockState(tx, scope.WorkspaceID)
	if err != nil {
		return nil, err
	}
	t, err := tableOf(tx, scope.WorkspaceID, scope.Table)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, table.NotFound(scope.Table)
	}
	return &tableTx{tx: tx, table: *t, scope: scope, limits: scope.Plan.Limits(), have: have}, nil
}

// rowChange is a change of one row. Old is nil for a new row.
type rowChange struct {
	old  *stored
	next table.Record
	data []byte
	line int // of an import
}

// cells returns the cells of the row before the change.
func (c rowChange) cells() map[string]json.RawMessage {
	if c.old == nil {
		return nil
	}
	return c.old.Cells
}

// encode returns the data of a record, within the limit of a row.
func (t *tableTx) encode(r table.Record) ([]byte, error) {
	data, err := table.Encode(r.Cells)
	if err == nil && len(data) > t.limits.RowBytes {
		err = table.OverLimit(t.scope.Plan, "row_bytes", t.limits.RowBytes)
	}
	return data, err
}

// check resolves the files of the changes, encodes them and checks the limits and the
// keys.
func (t *tableTx) check(changes []rowChange) error {
	if err := t.table.CheckWrites(len(changes)); err != nil {
		return err
	}
	if t.table.HasFiles() {
		if err := t.resolveFiles(changes); err != nil {
			return err
		}
	}
	var growth stateUsage
	keys := map[string]string{} // of changed rows, with their ids
	var wanted []string
	for i := range changes {
		c := &changes[i]
		var err error
		if c.data, err = t.encode(c.next); err != nil {
			return err
		}
		growth.bytes += len(c.data)
		if c.old != nil {
			growth.bytes -= c.old.size
		} else {
			growth.rows++
		}
		key := t.table.UniqueKey(c.next.Cells)
		if key == "" || c.old != nil && key == t.table.UniqueKey(c.old.Cells) {
			continue
		}
		if _, taken := keys[key]; taken {
			return t.taken(c.next)
		}
		keys[key] = c.next.ID
		wanted = append(wanted, key)
	}
	switch {
	case growth.rows > 0 && t.have.rows+growth.rows > t.limits.TableRows:
		return table.OverLimit(t.scope.Plan, "table_rows", t.limits.TableRows)
	case growth.bytes > 0 && t.have.bytes+growth.bytes > t.limits.StoredBytes:
		return table.OverLimit(t.scope.Plan, "stored_bytes", t.limits.StoredBytes)
	}
	existing, err := t.byKeys(wanted)
	if err != nil {
		return err
	}
	for _, row := range existing {
		return t.taken(row.Record)
	}
	return nil
}

func (t *tableTx) taken(r table.Record) error {
	key := t.table.KeyColumn()
	return fault.New(fault.RowExists, "the table %s already has a row with the key %s", t.table.Name, r.Cells[key.ID]).
		With(fault.Detail{Pointer: "/values/" + key.Name, Message: "is the key of another row: update or upsert it instead"})
}

// keyBatch is how many keys are looked up at a time.
const keyBatch = 100

// rowsByKeys returns the statement that looks up n unique keys. It names the keys
// first, because of what SQLite does with unique_key IN (…): it expects that a table has
// fewer rows than the list has keys, and reads the whole table.
func rowsByKeys(n int) string {
	list := strings.ReplaceAll(database.Placeholders(3, n), ", ", "), (")
	return `WITH keys (value) AS (VALUES (` + list + `)) SELECT ` + recordColumns + ` FROM keys CROSS JOIN table_rows r
		WHERE r.table_id = $1 AND r.workspace_id = $2 AND r.unique_key = keys.value`
}

func (t *tableTx) byKeys(keys []string) (map[string]stored, error) {
	found := map[string]stored{}
	for chunk := range slices.Chunk(keys, keyBatch) {
		n := 1
		if len(chunk) > 1 {
			n = keyBatch // one statement for any number
		}
		args := []any{t.table.ID, t.table.WorkspaceID}
		for i := range n {
			args = append(args, chunk[min(i, len(chunk)-1)])
		}
		rows, err := database.List(t.tx, rowsByKeys(n), args, scanStored)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[t.table.UniqueKey(row.Cells)] = row
		}
	}
	return found, nil
}

func (t *tableTx) apply(changes []rowChange) error {
	if err := t.check(changes); err != nil {
		return err
	}
	for _, c := range changes {
		if err := t.write(c); err != nil {
			return err
		}
	}
	return t.count()
}

func (t *tableTx) write(c rowChange) error {
	if t.table.HasFiles() {
		if err := t.holdFiles(t.table, c.cells(), c.next); err != nil {
			return err
		}
	}
	t.grown.bytes += len(c.data)
	if c.old != nil {
		t.grown.bytes -= c.old.size
		if err := t.update(t.table, c.next, c.data); err != nil {
			return err
		}
		return t.reindex(*c.old, c.next)
	}
	t.grown.rows++
	if err := t.tx.Do(`INSERT INTO table_rows (table_id, id, workspace_id, unique_key, data, size, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		t.table.ID, c.next.ID, t.table.WorkspaceID, database.OrNil(t.table.UniqueKey(c.next.Cells)), string(c.data), len(c.data), c.next.CreatedAt, c.next.UpdatedAt); err != nil {
		return err
	}
	return t.index(indexedColumns(t.table, nil), c.next)
}

// update writes the data of a row, as a table with possibly changed columns has it.
func (t *tableTx) update(as table.Table, r table.Record, data []byte) error {
	return t.tx.Do(`UPDATE table_rows SET unique_key = $1, data = $2, size = $3, updated_at = $4 WHERE table_id = $5 AND id = $6 AND workspace_id = $7`,
		database.OrNil(as.UniqueKey(r.Cells)), string(data), len(data), r.UpdatedAt, as.ID, r.ID, as.WorkspaceID)
}

// indexedColumns returns the indexed columns of a table, or those with the given ids.
func indexedColumns(t table.Table, ids []string) []table.Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c table.Column) bool {
		return !c.Indexed || ids != nil && !slices.Contains(ids, c.ID)
	})
}

func (t *tableTx) index(columns []table.Column, r table.Record) error {
	for _, c := range columns {
		if err := t.tx.Do(`INSERT INTO table_index (table_id, column_id, value, row_id, workspace_id) VALUES ($1, $2, $3, $4, $5)`,
			t.table.ID, c.ID, c.SortKey(r), r.ID, t.table.WorkspaceID); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableTx) unindex(columns []table.Column, r table.Record) error {
	for _, c := range columns {
		if err := t.tx.Do(`DELETE FROM table_index WHERE table_id = $1 AND column_id = $2 AND value = $3 AND row_id = $4 AND workspace_id = $5`,
			t.table.ID, c.ID, c.SortKey(r), r.ID, t.table.WorkspaceID); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableTx) reindex(old stored, next table.Record) error {
	moved := slices.DeleteFunc(indexedColumns(t.table, nil), func(c table.Column) bool { return c.SortKey(old.Record) == c.SortKey(next) })
	if err := t.unindex(moved, old.Record); err != nil {
		return err
	}
	return t.index(moved, next)
}

func (t *tableTx) count() error {
	if t.grown == (stateUsage{}) {
		return nil
	}
	if err := t.tx.Do(`UPDATE data_tables SET row_count = row_count + $1, row_bytes = row_bytes + $2 WHERE id = $3 AND workspace_id = $4`,
		t.grown.rows, t.grown.bytes, t.table.ID, t.table.WorkspaceID); err != nil {
		return err
	}
	return addState(t.tx, t.table.WorkspaceID, t.grown)
}
