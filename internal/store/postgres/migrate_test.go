package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/dispatch/river"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	server "github.com/stepmill/stepmill/test/postgres"
)

func TestMigrateAtTheSameTime(t *testing.T) {
	t.Parallel()
	opts := postgres.Options{URL: server.Shared(t).NewDatabase(t), Name: "test", Timeout: timeout}
	if _, err := postgres.Open(t.Context(), opts); !errors.Is(err, postgres.ErrNotMigrated) {
		t.Errorf("an empty database: %v", err)
	}
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	db := open(t, opts)
	if n := number(t, db, `SELECT count(*) FROM schema_versions WHERE version_id > 0`); n != store.Schema {
		t.Errorf("%d migrations were applied", n)
	}
	if n := number(t, db, `SELECT count(*) FROM stepmill_river.river_job`); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

// TestMigrateAfterInterruption checks that an interrupted migration is completed,
// whether River's tables or ours are missing.
func TestMigrateAfterInterruption(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	db := open(t, opts)
	exec(t, db, `DROP SCHEMA stepmill_river CASCADE`)
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Fatal(err)
	}
	if n := number(t, db, `SELECT count(*) FROM stepmill_river.river_job`); n != 0 {
		t.Errorf("%d jobs", n)
	}
	conn, err := pgx.Connect(t.Context(), opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Fatal(err)
	}
	open(t, opts)
}

// TestSchemaOfANewerRelease checks that a release supports the schema of the next
// one, but no later one.
func TestSchemaOfANewerRelease(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	db := open(t, opts)
	exec(t, db, `INSERT INTO schema_versions (version_id, is_applied) VALUES ($1, true)`, store.Schema+1)
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Errorf("the schema of the next release: %v", err)
	}
	open(t, opts)
	exec(t, db, `INSERT INTO schema_versions (version_id, is_applied) VALUES ($1, true)`, store.Schema+2)
	_, err := postgres.Open(t.Context(), opts)
	for name, err := range map[string]error{"open": err, "migrate": postgres.Migrate(t.Context(), opts, river.Migrate)} {
		if err == nil || !strings.Contains(err.Error(), "newer Stepmill") {
			t.Errorf("%s the schema of a later release: %v", name, err)
		}
	}
}
