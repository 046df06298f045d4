package storetest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/store"
)

// CheckTables compares the tables that the store declares with those of a
// database: their names and the types of their columns. A database without a
// boolean type reports int.
func CheckTables(t *testing.T, have map[string]map[string]archive.Kind) {
	t.Helper()
	listed := map[string]bool{}
	for _, table := range store.Exported() {
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
			t.Errorf("table %s must be in store.Tables or, with a reason, in store.LeftOut", name)
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
			t.Errorf("%s.%s is %s, store.Tables says %s", table.Name, column.Name, kind, column.Kind)
		}
		delete(have, column.Name)
	}
	for name := range strings.FieldsSeq(table.NotExported) {
		if _, ok := have[name]; !ok {
			t.Errorf("%s has no column %s", table.Name, name)
		}
		delete(have, name)
	}
	for name := range strings.FieldsSeq(table.Cluster) {
		delete(have, name)
	}
	for name := range have {
		t.Errorf("%s.%s is not exported: add it to store.Tables", table.Name, name)
	}
}
