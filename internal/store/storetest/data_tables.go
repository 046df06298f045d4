package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
)

// newTable returns a table with a column of each type and the key email.
func newTable(workspaceID, name string) table.Table {
	now := clock.Now()
	return table.Table{
		ID: uid.At(uid.Table, now), WorkspaceID: workspaceID, Name: name, Key: "c1", LastColumn: 6,
		Columns: []table.Column{
			{ID: "c1", Name: "email", Type: table.Text, Required: true},
			{ID: "c2", Name: "city", Type: table.Text, Indexed: true},
			{ID: "c3", Name: "amount", Type: table.Number, Indexed: true},
			{ID: "c4", Name: "paid", Type: table.Boolean},
			{ID: "c5", Name: "since", Type: table.Time, Indexed: true},
			{ID: "c6", Name: "extra", Type: table.JSON},
		},
		CreatedAt: now, CreatedBy: "key_maker", UpdatedAt: now, UpdatedBy: "key_maker",
	}
}

func (w *harness) insertTable(ctx context.Context, t table.Table, atMost int) (table.Outcome, error) {
	return w.Tables.InsertTable(ctx, t, atMost, newEntry(t.WorkspaceID, "table.created", t.ID))
}

func (w *harness) table(t *testing.T, workspaceID, name string) table.Table {
	t.Helper()
	made := newTable(workspaceID, name)
	returns(w.insertTable(t.Context(), made, noLimit))(t, "insert a table", table.Created)
	return made
}

func scopeOf(t table.Table) table.Scope {
	return table.Scope{WorkspaceID: t.WorkspaceID, Table: t.ID, Plan: auth.Free, At: clock.Now()}
}

// valuesOf decodes values from an object in JSON.
func valuesOf(text string) (values table.Values) {
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		panic(err)
	}
	return values
}

func insertOp(text string) table.Insert {
	return table.Insert{RowID: uid.New(uid.Row), Values: valuesOf(text)}
}

func upsertOp(text string) table.Upsert {
	return table.Upsert{RowID: uid.New(uid.Row), Values: valuesOf(text)}
}

// failsWith checks that a call returns a fault and that nothing was written.
func failsWith[T any](got T, err error) func(*testing.T, string, fault.Code) {
	return func(t *testing.T, what string, want fault.Code) {
		t.Helper()
		if !fault.Is(err, want) {
			t.Errorf("%s: got %v, %v; want %s", what, got, err, want)
		}
	}
}

// checkState compares the counters of a workspace with its rows.
func (w *harness) checkState(t *testing.T, workspaceID string) {
	t.Helper()
	var counted usage.Current
	for query, into := range map[string]*int{
		`SELECT count(*) FROM data_tables WHERE workspace_id = $1`:                                                            &counted.Tables,
		`SELECT count(*) FROM table_rows r JOIN data_tables t ON t.id = r.table_id WHERE r.workspace_id = $1`:                 &counted.TableRows,
		`SELECT count(*) FROM state_keys WHERE workspace_id = $1`:                                                             &counted.StateKeys,
		`SELECT coalesce(sum(r.size), 0) FROM table_rows r JOIN data_tables t ON t.id = r.table_id WHERE r.workspace_id = $1`: &counted.StoredBytes,
	} {
		*into = w.count(t, query, workspaceID)
	}
	counted.StoredBytes += w.count(t, `SELECT coalesce(sum(size), 0) FROM state_keys WHERE workspace_id = $1`, workspaceID)
	have := must(w.Usage.UsageCurrent(t.Context(), workspaceID))(t)
	equal(t, "counters", usage.Current{Tables: have.Tables, TableRows: have.TableRows, StateKeys: have.StateKeys, StoredBytes: have.StoredBytes}, counted)
	equal(t, "tables whose counters are wrong", w.count(t, `SELECT count(*) FROM data_tables t WHERE workspace_id = $1
		AND (row_count <> (SELECT count(*) FROM table_rows r WHERE r.table_id = t.id) OR row_bytes <> (SELECT coalesce(sum(size), 0) FROM table_rows r WHERE r.table_id = t.id))`, workspaceID), 0)
}

func testDataTables(t *testing.T, w *harness) {
	t.Run("insert, read and delete", func(t *testing.T) { testInsertTable(t, w) })
	t.Run("change", func(t *testing.T) { testChangeTable(t, w) })
	t.Run("tenants", func(t *testing.T) { testTableTenants(t, w) })
}

func testInsertTable(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	empty(w.Tables.Tables(ctx, ws, fullPage))(t, "a workspace without one")
	made := w.table(t, ws, "customers")
	equal(t, "by id", found(w.Tables.Table(ctx, ws, made.ID))(t), made)
	equal(t, "by name", found(w.Tables.Table(ctx, ws, "customers"))(t), made)
	missing(w.Tables.Table(ctx, ws, "Customers"))(t, "a name in other letters")
	returns(w.insertTable(ctx, newTable(ws, "customers"), noLimit))(t, "the same name", table.NameTaken)
	returns(w.insertTable(ctx, newTable(ws, "orders"), 1))(t, "over the limit", table.TooMany)
	equal(t, "winners of a race for a name", concurrently(t, 16, func(int) (bool, error) {
		outcome, err := w.insertTable(ctx, newTable(ws, "race"), noLimit)
		return outcome == table.Created, err
	}), 1)
	equal(t, "listed", mapped(must(w.Tables.Tables(ctx, ws, fullPage))(t).Items, func(t table.Table) string { return t.Name }), []string{"customers", "race"})
	second := must(w.Tables.Tables(ctx, ws, paging.Request{Limit: 1, After: "customers"}))(t)
	equal(t, "the second page", second.Items[0].Name, "race")
	for i := range 7 {
		must(w.Tables.InsertRow(ctx, scopeOf(made), insertOp(fmt.Sprintf(`{"email": "%d", "city": "x"}`, i))))(t)
	}
	w.checkState(t, ws)
	returns(w.Tables.DeleteTable(ctx, ws, made.ID, newEntry(ws, "table.deleted", made.ID)))(t, "delete", true)
	returns(w.Tables.DeleteTable(ctx, ws, made.ID, newEntry(ws, "table.deleted", made.ID)))(t, "again", false)
	w.checkState(t, ws)
	missing(w.Tables.Table(ctx, ws, made.ID))(t, "the deleted one")
	failsWith(w.Tables.FindRows(ctx, scopeOf(made), table.Find{Limit: 10}))(t, "rows of the deleted one", fault.TableNotFound)
	equal(t, "audit entries", w.actions(t, ws, made.ID), []string{"table.deleted", "table.created"})
	w.table(t, ws, "customers") // the name is free again
	w.purgeTables(t)
	for _, of := range []string{"table_rows", "table_index", "purged_tables"} {
		equal(t, "left in "+of, w.count(t, `SELECT count(*) FROM `+of+` WHERE table_id = $1`, made.ID), 0)
	}
}

// purgeTables removes what is left of deleted tables, a few rows at a time.
func (w *harness) purgeTables(t *testing.T) {
	t.Helper()
	for must(w.Tables.PurgeTables(t.Context(), 3))(t) {
	}
}

func (w *harness) changeTable(ctx context.Context, of table.Table, p table.Patch) (table.Table, error) {
	return w.Tables.ChangeTable(ctx, scopeOf(of), func(now table.Table) (table.Change, error) {
		change, err := now.Change(p)
		change.Table.UpdatedAt = now.UpdatedAt.Add(time.Second)
		return change, err
	}, newEntry(of.WorkspaceID, "table.updated", of.ID))
}

func testChangeTable(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	made := w.table(t, ws, "customers")
	w.table(t, ws, "other")
	for i := range 5 {
		must(w.Tables.InsertRow(ctx, scopeOf(made), insertOp(fmt.Sprintf(`{"email": "%d", "city": "City %d", "amount": %d, "paid": true}`, i, i, i*10))))(t)
	}
	column := func(p table.ColumnPatch) map[string]*table.ColumnPatch {
		return map[string]*table.ColumnPatch{"amount": &p}
	}
	failsWith(w.changeTable(ctx, made, table.Patch{Name: new("other")}))(t, "a name that is taken", fault.TableExists)
	changed := must(w.changeTable(ctx, made, table.Patch{Name: new("clients"), Columns: map[string]*table.ColumnPatch{
		"amount": {Name: new("total"), Type: new(table.Text)}, "city": nil, "paid": {Indexed: new(true)}, "notes": {Type: new(table.Text), Indexed: new(true)},
	}}))(t)
	equal(t, "read", found(w.Tables.Table(ctx, ws, made.ID))(t), changed)
	w.checkState(t, ws)
	row := must(w.Tables.FindRows(ctx, scopeOf(made), table.Find{Filter: json.RawMessage(`{"column": "total", "op": "=", "value": "20"}`), Limit: 10}))(t)
	equal(t, "a converted row", row.Rows[0].Values, valuesOf(`{"email": "2", "total": "20", "paid": true, "since": null, "extra": null, "notes": null}`))
	equal(t, "examined with the index", row.Examined, 1)
	all := must(w.Tables.FindRows(ctx, scopeOf(made), table.Find{Filter: json.RawMessage(`{"column": "notes", "op": "is_null"}`), Limit: 10}))(t)
	equal(t, "rows in the index of a new column", len(all.Rows), 5)
	w.purgeTables(t)
	equal(t, "index entries", w.count(t, `SELECT count(*) FROM table_index WHERE table_id = $1`, made.ID), 4*5) // amount, since, paid, notes
	failsWith(w.changeTable(ctx, made, table.Patch{Columns: map[string]*table.ColumnPatch{"notes": {Required: new(true)}}}))(t, "required, but null", fault.InvalidRequest)
	failsWith(w.changeTable(ctx, made, table.Patch{Columns: column(table.ColumnPatch{Type: new(table.Text), Required: new(true)})}))(t, "a required column of a table with rows", fault.InvalidRequest)
	equal(t, "after changes that failed", found(w.Tables.Table(ctx, ws, made.ID))(t), changed)

	must(w.changeTable(ctx, made, table.Patch{Columns: map[string]*table.ColumnPatch{"extra": {Type: new(table.Text)}}}))(t)
	equal(t, "index entries after a change of another column", w.count(t, `SELECT count(*) FROM table_index WHERE table_id = $1`, made.ID), 4*5)
	must(w.changeTable(ctx, made, table.Patch{Columns: map[string]*table.ColumnPatch{"paid": {Indexed: new(false)}}}))(t)
	must(w.Tables.InsertRow(ctx, scopeOf(made), insertOp(`{"email": "late", "paid": false}`)))(t)
	must(w.changeTable(ctx, made, table.Patch{Columns: map[string]*table.ColumnPatch{"paid": {Indexed: new(true)}}}))(t)
	w.purgeTables(t)
	equal(t, "rows in an index that was removed and built again", w.count(t, `SELECT count(*) FROM table_index WHERE table_id = $1 AND column_id = 'c4'`, made.ID), 6)
}

func testTableTenants(t *testing.T, w *harness) {
	ctx, ws, stranger := t.Context(), w.workspace(t).ID, w.workspace(t).ID
	made := w.table(t, ws, "customers")
	row := must(w.Tables.InsertRow(ctx, scopeOf(made), insertOp(`{"email": "a", "city": "x"}`)))(t)
	foreign := scopeOf(made)
	foreign.WorkspaceID = stranger
	one := table.Selector{ID: row.ID}
	missing(w.Tables.Table(ctx, stranger, made.ID))(t, "a table")
	missing(w.Tables.Table(ctx, stranger, made.Name))(t, "a table by name")
	empty(w.Tables.Tables(ctx, stranger, fullPage))(t, "tables")
	returns(w.Tables.DeleteTable(ctx, stranger, made.ID, newEntry(stranger, "table.deleted", made.ID)))(t, "delete a table", false)
	failsWith(w.Tables.ChangeTable(ctx, foreign, func(table.Table) (table.Change, error) { return table.Change{}, errors.New("reached") }, newEntry(stranger, "table.updated", made.ID)))(t, "change a table", fault.TableNotFound)
	failsWith(w.Tables.InsertRow(ctx, foreign, insertOp(`{"email": "b"}`)))(t, "insert", fault.TableNotFound)
	failsWith(w.Tables.UpsertRow(ctx, foreign, upsertOp(`{"email": "a"}`)))(t, "upsert", fault.TableNotFound)
	failsWith(w.Tables.GetRow(ctx, foreign, table.Get{Selector: one}))(t, "get", fault.TableNotFound)
	failsWith(w.Tables.FindRows(ctx, foreign, table.Find{Limit: 10}))(t, "find", fault.TableNotFound)
	failsWith(w.Tables.UpdateRows(ctx, foreign, table.Update{Selector: one}))(t, "update", fault.TableNotFound)
	failsWith(w.Tables.DeleteRows(ctx, foreign, table.Delete{Selector: one}))(t, "delete", fault.TableNotFound)
	failsWith(w.Tables.IncrementRow(ctx, foreign, table.Increment{Selector: one, Column: "amount"}))(t, "increment", fault.TableNotFound)
	failsWith(w.Tables.ImportRows(ctx, foreign, table.Import{}))(t, "import", fault.TableNotFound)

	own := w.table(t, stranger, "customers") // the row of another table is no row of this one
	failsWith(w.Tables.IncrementRow(ctx, scopeOf(own), table.Increment{Selector: one, Column: "amount"}))(t, "increment the row of another table", fault.RowNotFound)
	missing(w.Tables.GetRow(ctx, scopeOf(own), table.Get{Selector: one}))(t, "get the row of another table")
	returns(w.Tables.DeleteRows(ctx, scopeOf(own), table.Delete{Selector: one}))(t, "delete the row of another table", 0)
	equal(t, "the row", found(w.Tables.GetRow(ctx, scopeOf(made), table.Get{Selector: one}))(t), row)
	w.checkState(t, stranger)
}
