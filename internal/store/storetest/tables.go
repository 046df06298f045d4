package storetest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/store"
)

// CheckTables holds what the store says of its tables against those that a
// database has: by their names, the kinds of their columns. A database without a
// type for bool says int.
func CheckTables(t *testing.T, have map[string]map[string]archive.Kind) {
	t.Helper()
	listed := map[string]bool{}
	for _, table := range store.Tables() {
		listed[table.Name] = true
		columns, ok := have[table.Name]
		if !ok {
			t.Errorf("there is no table %s", table.Name)
			continue
		}
		checkColumns(t, table, maps.Clone(columns))
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, left := store.LeftOut()[name]; left == listed[name] {
			t.Errorf("table %s has to be either in store.Tables or, with a reason, in store.LeftOut", name)
		}
	}
}

func checkColumns(t *testing.T, table store.Table, have map[string]archive.Kind) {
	t.Helper()
	for _, column := range table.Columns() {
		switch kind := have[column.Name]; {
		case kind == "":
			t.Errorf("%s has no column %s", table.Name, column.Name)
		case kind != column.Kind && (kind != archive.Int || column.Kind != archive.Bool):
			t.Errorf("%s.%s is %s, the store says %s", table.Name, column.Name, kind, column.Kind)
		}
		delete(have, column.Name)
	}
	for name := range strings.FieldsSeq(table.Stays) {
		if _, ok := have[name]; !ok {
			t.Errorf("%s has no column %s", table.Name, name)
		}
		delete(have, name)
	}
	for name := range strings.FieldsSeq(table.Cluster) {
		delete(have, name)
	}
	for name := range have {
		t.Errorf("%s.%s is in no export: write it down in store.Tables", table.Name, name)
	}
}
