package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/uid"
)

func testTableRows(t *testing.T, w *harness) {
	t.Run("insert, read, update and delete", func(t *testing.T) { testChangeRows(t, w) })
	t.Run("upsert", func(t *testing.T) { testUpsertRows(t, w) })
	t.Run("increment", func(t *testing.T) { testIncrementRows(t, w) })
	t.Run("import", func(t *testing.T) { testImportRows(t, w) })
	t.Run("limits", func(t *testing.T) { testRowLimits(t, w) })
	t.Run("pages of limited size", func(t *testing.T) { testPagesByBytes(t, w) })
	t.Run("changes that read too much", func(t *testing.T) { testChangesThatReadTooMuch(t, w) })
}

// testPagesByBytes reads all rows in pages with a limit of bytes, in every order.
func testPagesByBytes(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.table(t, ws, "customers")
	const rows = 30
	for i := range rows {
		op := insertOp(fmt.Sprintf(`{"email": "%02d", "city": "%d"}`, i, i*7%rows))
		op.Values["extra"] = json.RawMessage(`"` + strings.Repeat("x", 100*(i%5)) + `"`)
		must(w.Tables.InsertRow(ctx, scopeOf(of), op))(t)
	}
	largest := w.count(t, `SELECT max(size) FROM table_rows WHERE table_id = $1`, of.ID)
	for _, sort := range []string{"", "city", "-city", "email", "-email"} {
		for _, most := range []int{1, largest, 1000} {
			seen, pages := map[string]bool{}, 0
			for op := (table.Find{Sort: sort, Limit: 8, MaxBytes: most}); ; pages++ {
				found := must(w.Tables.FindRows(ctx, scopeOf(of), op))(t)
				size := 0
				for _, row := range found.Rows {
					seen[row.ID] = true
					size += w.count(t, `SELECT size FROM table_rows WHERE id = $1`, row.ID)
				}
				if len(found.Rows) > 8 || size > most && len(found.Rows) != 1 {
					t.Errorf("sorted by %q: %d rows of %d bytes, at most %d", sort, len(found.Rows), size, most)
				}
				if op.After = found.Next; op.After == "" {
					break
				}
			}
			if len(seen) != rows || most == 1 && pages != rows-1 {
				t.Errorf("sorted by %q with %d bytes: %d rows in %d pages", sort, most, len(seen), pages+1)
			}
		}
	}
}

// testChangesThatReadTooMuch changes rows of a table that is too large to be searched
// in a transaction that writes.
func testChangesThatReadTooMuch(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.table(t, ws, "customers")
	const rows = table.MaxExamined + 1
	var all []table.ImportRow
	for i := range rows {
		row := insertOp(fmt.Sprintf(`{"email": "%05d", "city": "%d"}`, i, i))
		all = append(all, table.ImportRow{RowID: row.RowID, Values: row.Values})
	}
	scope := scopeOf(of)
	scope.Plan = auth.Enterprise
	failsWith(w.Tables.ImportRows(ctx, scope, table.Import{Rows: all[:table.MaxWrites/4+1]}))(t, "an import that writes too much", fault.InvalidRequest)
	for part := range slices.Chunk(all, table.MaxWrites/4) { // three columns are indexed
		must(w.Tables.ImportRows(ctx, scope, table.Import{Rows: part}))(t)
	}
	update := func(filter string) error {
		_, err := w.Tables.UpdateRows(ctx, scope, table.Update{
			Selector: table.Selector{Filter: json.RawMessage(filter), Limit: table.MaxSelected}, Values: table.Values{"amount": json.RawMessage("1")},
		})
		return err
	}
	if err := update(`{"column": "paid", "op": "=", "value": true}`); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("a change that reads every row: %v", err)
	}
	if n := w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1 AND updated_at > created_at`, of.ID); n != 0 {
		t.Errorf("the change was rejected but %d rows have changed", n)
	}
	if err := update(`{"and": [{"column": "city", "op": "=", "value": "3"}, {"not": {"column": "amount", "op": "=", "value": 7}}]}`); err != nil {
		t.Errorf("a change that uses an index: %v", err)
	}
}

func byKey(key string) table.Selector {
	text, _ := json.Marshal(key)
	return table.Selector{Key: text}
}

func testChangeRows(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.table(t, ws, "customers")
	scope := scopeOf(of)
	row := must(w.Tables.InsertRow(ctx, scope, insertOp(`{"email": "ada@example.com", "city": "Zürich \" \\ ☃", "amount": 9007199254740993.10, "paid": true,
		"since": "2026-03-01T12:00:00.1234567+02:00", "extra": {"a": [1, 2.50, null, "\u0001é"]}}`)))(t)
	want := valuesOf(`{"email": "ada@example.com", "city": "Zürich \" \\ ☃", "amount": 9007199254740993.1, "paid": true,
		"since": "2026-03-01T10:00:00.123456Z", "extra": {"a":[1,2.50,null,"\u0001é"]}}`)
	equal(t, "inserted", row.Values, want)
	equal(t, "times", []any{row.CreatedAt, row.UpdatedAt}, []any{scope.At, scope.At})
	equal(t, "by id", found(w.Tables.GetRow(ctx, scope, table.Get{Selector: table.Selector{ID: row.ID}}))(t), row)
	equal(t, "by key", found(w.Tables.GetRow(ctx, scope, table.Get{Selector: byKey("ada@example.com")}))(t), row)
	missing(w.Tables.GetRow(ctx, scope, table.Get{Selector: byKey("Ada@example.com")}))(t, "another key")
	failsWith(w.Tables.InsertRow(ctx, scope, insertOp(`{"email": "ada@example.com"}`)))(t, "the same key", fault.RowExists)
	failsWith(w.Tables.InsertRow(ctx, scope, insertOp(`{"city": "x"}`)))(t, "without a key", fault.InvalidRequest)
	named := scope
	named.Table = "customers"
	must(w.Tables.InsertRow(ctx, named, insertOp(`{"email": "bob", "city": "Bern"}`)))(t)

	scope.At = scope.At.Add(1000)
	updated := must(w.Tables.UpdateRows(ctx, scope, table.Update{Selector: byKey("bob"), Values: valuesOf(`{"email": "bill", "amount": 5, "city": null}`)}))(t)
	equal(t, "updated", updated[0].Values, valuesOf(`{"email": "bill", "city": null, "amount": 5, "paid": null, "since": null, "extra": null}`))
	missing(w.Tables.GetRow(ctx, scope, table.Get{Selector: byKey("bob")}))(t, "the old key")
	equal(t, "by the new key", found(w.Tables.GetRow(ctx, scope, table.Get{Selector: byKey("bill")}))(t), updated[0])
	failsWith(w.Tables.UpdateRows(ctx, scope, table.Update{Selector: byKey("bill"), Values: valuesOf(`{"email": "ada@example.com"}`)}))(t, "the key of another row", fault.RowExists)
	equal(t, "none to update", len(must(w.Tables.UpdateRows(ctx, scope, table.Update{Selector: byKey("nobody"), Values: valuesOf(`{"paid": true}`)}))(t)), 0)
	w.checkState(t, ws)

	for i := range 10 {
		must(w.Tables.InsertRow(ctx, scope, insertOp(fmt.Sprintf(`{"email": "many-%d", "city": "Basel", "amount": %d}`, i, i))))(t)
	}
	basel := table.Selector{Filter: json.RawMessage(`{"column": "city", "op": "=", "value": "Basel"}`), Limit: 4}
	failsWith(w.Tables.UpdateRows(ctx, scope, table.Update{Selector: basel, Values: valuesOf(`{"email": "one"}`)}))(t, "one key for several rows", fault.RowExists)
	equal(t, "updated by filter", len(must(w.Tables.UpdateRows(ctx, scope, table.Update{Selector: basel, Values: valuesOf(`{"city": "Bern"}`)}))(t)), 4)
	returns(w.Tables.DeleteRows(ctx, scope, table.Delete{Selector: basel}))(t, "deleted by filter", 4)
	returns(w.Tables.DeleteRows(ctx, scope, table.Delete{Selector: basel}))(t, "the rest", 2)
	returns(w.Tables.DeleteRows(ctx, scope, table.Delete{Selector: byKey("bill")}))(t, "deleted by key", 1)
	returns(w.Tables.DeleteRows(ctx, scope, table.Delete{Selector: byKey("bill")}))(t, "again", 0)
	failsWith(w.Tables.DeleteRows(ctx, scope, table.Delete{}))(t, "without a selector", fault.InvalidRequest)
	w.checkState(t, ws)
	rows := w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1`, of.ID)
	equal(t, "index entries", w.count(t, `SELECT count(*) FROM table_index WHERE table_id = $1`, of.ID), 3*rows)
	equal(t, "rows left", rows, 5)
}

func testUpsertRows(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.table(t, ws, "customers")
	first := must(w.Tables.UpsertRow(ctx, scopeOf(of), upsertOp(`{"email": "a", "city": "x", "amount": 1}`)))(t)
	again := must(w.Tables.UpsertRow(ctx, scopeOf(of), upsertOp(`{"email": "a", "amount": 2}`)))(t)
	equal(t, "created", []bool{first.Created, again.Created}, []bool{true, false})
	equal(t, "the same row", again.Row.ID, first.Row.ID)
	equal(t, "values", again.Row.Values, valuesOf(`{"email": "a", "city": "x", "amount": 2, "paid": null, "since": null, "extra": null}`))
	failsWith(w.Tables.UpsertRow(ctx, scopeOf(of), upsertOp(`{"city": "x"}`)))(t, "without a key", fault.InvalidRequest)
	equal(t, "winners of a race for a key", concurrently(t, 16, func(i int) (bool, error) {
		done, err := w.Tables.UpsertRow(ctx, scopeOf(of), upsertOp(fmt.Sprintf(`{"email": "race", "amount": %d}`, i)))
		return done.Created, err
	}), 1)
	equal(t, "rows", w.count(t, `SELECT count(*) FROM table_rows WHERE table_id = $1`, of.ID), 2)
	w.checkState(t, ws)
}

func testIncrementRows(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.table(t, ws, "customers")
	must(w.Tables.InsertRow(ctx, scopeOf(of), insertOp(`{"email": "a"}`)))(t)
	op := table.Increment{Selector: byKey("a"), Column: "amount"}
	equal(t, "increments", concurrently(t, 100, func(int) (bool, error) {
		row, err := w.Tables.IncrementRow(ctx, scopeOf(of), op)
		return row.ID != "", err
	}), 100)
	op.By = json.RawMessage("-0.1")
	equal(t, "the sum", string(must(w.Tables.IncrementRow(ctx, scopeOf(of), op))(t).Values["amount"]), "99.9")
	by := must(w.Tables.FindRows(ctx, scopeOf(of), table.Find{Filter: json.RawMessage(`{"column": "amount", "op": "=", "value": 99.9}`), Limit: 1}))(t)
	equal(t, "found by the sum", len(by.Rows), 1)
	failsWith(w.Tables.IncrementRow(ctx, scopeOf(of), table.Increment{Selector: byKey("a"), Column: "city"}))(t, "a text", fault.InvalidRequest)
	failsWith(w.Tables.IncrementRow(ctx, scopeOf(of), table.Increment{Selector: byKey("b"), Column: "amount"}))(t, "a missing row", fault.RowNotFound)
	failsWith(w.Tables.IncrementRow(ctx, scopeOf(of), table.Increment{Selector: byKey("a"), Column: "amount", By: json.RawMessage(`"1"`)}))(t, "by a text", fault.InvalidRequest)
	w.checkState(t, ws)
}

func testImportRows(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t).ID
	of := w.table(t, ws, "customers")
	must(w.Tables.InsertRow(ctx, scopeOf(of), insertOp(`{"email": "3", "city": "old", "paid": true}`)))(t)
	var op table.Import
	for i := range 250 { // more than one batch of keys
		op.Rows = append(op.Rows, table.ImportRow{RowID: uid.New(uid.Row), Line: i + 2, Values: valuesOf(fmt.Sprintf(`{"email": "%d", "city": "new"}`, i))})
	}
	equal(t, "imported", must(w.Tables.ImportRows(ctx, scopeOf(of), op))(t), table.Imported{Created: 249, Updated: 1})
	equal(t, "a replaced row", found(w.Tables.GetRow(ctx, scopeOf(of), table.Get{Selector: byKey("3")}))(t).Values["paid"], json.RawMessage("true"))
	op.Rows = append(op.Rows, table.ImportRow{RowID: uid.New(uid.Row), Values: valuesOf(`{"email": "bad", "amount": "x"}`)})
	failsWith(w.Tables.ImportRows(ctx, scopeOf(of), op))(t, "with a bad row", fault.InvalidRequest)
	missing(w.Tables.GetRow(ctx, scopeOf(of), table.Get{Selector: byKey("bad")}))(t, "nothing of it")
	w.checkState(t, ws)
}

// testRowLimits sets the counters close to the limits of the plan.
func testRowLimits(t *testing.T, w *harness) {
	ctx, ws, limits := t.Context(), w.workspace(t).ID, auth.Free.Limits()
	of := w.table(t, ws, "customers")
	must(w.Tables.InsertRow(ctx, scopeOf(of), insertOp(`{"email": "a"}`)))(t)
	failsWith(w.Tables.InsertRow(ctx, scopeOf(of), insertOp(`{"email": "b", "city": "`+strings.Repeat("x", limits.RowBytes)+`"}`)))(t, "a row that is too large", fault.PlanLimitExceeded)

	w.exec(t, `UPDATE state_usage SET table_rows = $1 WHERE workspace_id = $2`, limits.TableRows-1, ws)
	equal(t, "inserts of 16 for the last place", concurrently(t, 16, func(i int) (bool, error) {
		_, err := w.Tables.InsertRow(ctx, scopeOf(of), insertOp(fmt.Sprintf(`{"email": "last %d"}`, i)))
		if fault.Is(err, fault.PlanLimitExceeded) {
			return false, nil
		}
		return err == nil, err
	}), 1)
	must(w.Tables.UpsertRow(ctx, scopeOf(of), upsertOp(`{"email": "a", "amount": 1}`)))(t)
	w.exec(t, `UPDATE state_usage SET table_rows = 2, stored_bytes = $1 WHERE workspace_id = $2`, limits.StoredBytes, ws)
	failsWith(w.Tables.InsertRow(ctx, scopeOf(of), insertOp(`{"email": "b"}`)))(t, "over the bytes", fault.PlanLimitExceeded)
	must(w.Tables.UpdateRows(ctx, scopeOf(of), table.Update{Selector: byKey("a"), Values: valuesOf(`{"amount": null}`)}))(t) // it shrinks
	w.exec(t, `UPDATE state_usage SET stored_bytes = (SELECT sum(size) FROM table_rows WHERE workspace_id = $1) WHERE workspace_id = $1`, ws)
	w.checkState(t, ws)
}
