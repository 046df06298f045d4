package sqlite_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

// TestTables checks that an export contains all tables.
func TestTables(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	kinds := map[string]archive.Kind{"TEXT": archive.Text, "INTEGER": archive.Int, "BLOB": archive.Bytes}
	have := map[string]map[string]archive.Kind{}
	keys, numbers := map[string]string{}, map[string]bool{}
	err := db.Read(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT m.name, c.name, c.type, c.pk, m.sql LIKE '%AUTOINCREMENT%' FROM sqlite_master m JOIN pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY m.name, c.pk`, nil, func(r database.Row) error {
			table, column, kind, key, counts := "", "", "", 0, false
			if err := r.Scan(&table, &column, &kind, &key, &counts); err != nil {
				return err
			}
			if have[table] == nil {
				have[table] = map[string]archive.Kind{}
			}
			have[table][column], numbers[table] = kinds[kind], counts
			if key > 0 {
				keys[table] = strings.TrimSpace(keys[table] + " " + column)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.CheckTables(t, have)
	for _, table := range store.Exported() {
		if keys[table.Name] != table.Key {
			t.Errorf("the primary key of %s is %q, the store says %q", table.Name, keys[table.Name], table.Key)
		}
		if numbers[table.Name] != table.Numbered {
			t.Errorf("the database numbers %s: %t, the store says %t", table.Name, numbers[table.Name], table.Numbered)
		}
	}
}
