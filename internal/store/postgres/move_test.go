package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

// What moves with an installation is all that its tables hold, apart from what
// belongs to the nodes.
func TestTables(t *testing.T) {
	t.Parallel()
	db := open(t, newDatabase(t))
	kinds := map[string]archive.Kind{"text": archive.Text, "bigint": archive.Int, "integer": archive.Int, "boolean": archive.Bool, "bytea": archive.Bytes}
	have := map[string]map[string]archive.Kind{}
	err := db.Read(t.Context(), func(c store.Conn) error {
		return c.Query(`SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = 'public'`, nil,
			func(r store.Row) error {
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

// An installation moves from the embedded database to this one, and back.
func TestMoveBetweenDatabases(t *testing.T) {
	t.Parallel()
	embedded := func(t *testing.T, notify store.Notify) *store.Store {
		t.Helper()
		db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := db.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			stop()
			running.Wait()
		})
		return store.New(db, notify)
	}
	shared := func(t *testing.T, notify store.Notify) *store.Store {
		t.Helper()
		return store.New(open(t, newDatabase(t)), notify)
	}
	t.Run("from the embedded one", func(t *testing.T) { storetest.Move(t, embedded, shared) })
	t.Run("to the embedded one", func(t *testing.T) { storetest.Move(t, shared, embedded) })
}
