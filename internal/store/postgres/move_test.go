package postgres_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

// TestTables checks that an export contains all tables, except those about nodes.
func TestTables(t *testing.T) {
	t.Parallel()
	db := postgrestest.Open(t, postgrestest.New(t))
	kinds := map[string]archive.Kind{"text": archive.Text, "bigint": archive.Int, "integer": archive.Int, "boolean": archive.Bool, "bytea": archive.Bytes}
	have := map[string]map[string]archive.Kind{}
	err := db.Read(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = 'public'`, nil,
			func(r database.Row) error {
				var table, column, kind string
				if err := r.Scan(&table, &column, &kind); err != nil {
					return err
				}
				if have[table] == nil {
					have[table] = map[string]archive.Kind{}
				}
				have[table][column] = kinds[kind]
				return nil
			})
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.CheckTables(t, have)
}

// TestMoveBetweenDatabases moves an installation from the embedded database to
// this one, and back.
func TestMoveBetweenDatabases(t *testing.T) {
	t.Parallel()
	embedded := func(t *testing.T, notify store.Notify) *store.DB {
		t.Helper()
		return store.New(sqlitetest.Open(t), notify)
	}
	shared := func(t *testing.T, notify store.Notify) *store.DB {
		t.Helper()
		return store.New(postgrestest.Open(t, postgrestest.New(t)), notify)
	}
	storetest.MoveBetween(t, embedded, shared)
}
