package storetest

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/uid"
)

// RowQueries creates a table and returns queries of its rows by what they use, for
// tests of query plans.
func RowQueries(ctx context.Context, s *store.DB) (map[string]func() error, error) {
	made := newTable("ws_1", "customers")
	if _, err := s.Tables.InsertTable(ctx, made, noLimit, newEntry(made.WorkspaceID, "table.created", made.ID)); err != nil {
		return nil, err
	}
	get := func(selector table.Selector) func() error {
		return func() error {
			_, err := s.Tables.GetRow(ctx, scopeOf(made), table.Get{Selector: selector})
			return err
		}
	}
	find := func(filter, sort string) func() error {
		op := table.Find{Sort: sort, Limit: 10}
		if filter != "" {
			op.Filter = json.RawMessage(filter)
		}
		return func() error {
			_, err := s.Tables.FindRows(ctx, scopeOf(made), op)
			return err
		}
	}
	importTwo := func() error {
		op := table.Import{Rows: []table.ImportRow{
			{RowID: uid.New(uid.Row), Values: valuesOf(`{"email": "a"}`)}, {RowID: uid.New(uid.Row), Values: valuesOf(`{"email": "b"}`)},
		}}
		_, err := s.Tables.ImportRows(ctx, scopeOf(made), op)
		return err
	}
	return map[string]func() error{
		"filter": find(`{"column": "paid", "op": "=", "value": true}`, ""), "sort": find("", "paid"),
		"by keys": importTwo, "range of keys": find(`{"column": "email", "op": "starts_with", "value": "a"}`, ""), "sort by key": find("", "email"), "sort by key desc": find("", "-email"),
		"by id": get(table.Selector{ID: "row_1"}), "by key": get(byKey("a")), "filter by key": find(`{"column": "email", "op": "=", "value": "a"}`, "city"),
		"all": find("", ""), "filter by index": find(`{"column": "city", "op": "=", "value": "x"}`, ""), "sort by index": find("", "city"), "sort by index desc": find("", "-city"),
	}, nil
}
