package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/store/migrations"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	server "github.com/stepmill/stepmill/test/postgres"
)

func TestMigrateAtTheSameTime(t *testing.T) {
	t.Parallel()
	opts := postgres.Options{URL: server.Shared(t).NewDatabase(t), Name: "test", Timeout: postgrestest.Timeout}
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
	db := postgrestest.Open(t, opts)
	if n := number(t, db, `SELECT count(*) FROM schema_versions WHERE version_id > 0`); n != migrations.Last() {
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
	opts := postgrestest.New(t)
	db := postgrestest.Open(t, opts)
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
	postgrestest.Open(t, opts)
}

// TestSchemaOfANewerRelease checks that a release supports the schema of the next
// one, with however many migrations, but no later one.
func TestSchemaOfANewerRelease(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	db := postgrestest.Open(t, opts)
	exec(t, db, `INSERT INTO schema_versions (version_id, is_applied) VALUES ($1, true), ($1 + 1, true), ($1 + 2, true)`, migrations.Last()+1)
	exec(t, db, `UPDATE schema_release SET number = $1`, release.Number+1)
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Errorf("the schema of the next release: %v", err)
	}
	postgrestest.Open(t, opts)
	exec(t, db, `UPDATE schema_release SET number = $1`, release.Number+2)
	_, err := postgres.Open(t.Context(), opts)
	for name, err := range map[string]error{"open": err, "migrate": postgres.Migrate(t.Context(), opts, river.Migrate)} {
		if err == nil || !strings.Contains(err.Error(), "more than one release ahead") {
			t.Errorf("%s the schema of a later release: %v", name, err)
		}
	}
}

// TestReleaseOfTheSchema checks that the migrations since the last release say which
// release they belong to.
func TestReleaseOfTheSchema(t *testing.T) {
	t.Parallel()
	const lastOfPrevious = 3 // the last migration of 0.2.0
	db := postgrestest.Open(t, postgrestest.New(t))
	if got := number(t, db, `SELECT number FROM schema_release`); got > release.Number || got < release.Number && migrations.Last() > lastOfPrevious {
		t.Errorf("the schema is of release %d, this is release %d: the first migration of a release sets schema_release", got, release.Number)
	}
}

// TestMigrateBesideOlderNodes checks that nothing is migrated while a node is alive
// whose release knows no levels, and that such a node can send no heartbeat afterwards.
func TestMigrateBesideOlderNodes(t *testing.T) {
	t.Parallel()
	opts := postgres.Options{URL: server.Shared(t).NewDatabase(t), Name: "test", Timeout: postgrestest.Timeout}
	conn, err := pgx.Connect(t.Context(), opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	migrateTo(t, opts.URL, 3)
	heartbeat := func() error {
		_, err := conn.Exec(t.Context(), `INSERT INTO nodes AS n (id, name, version, role, capacity, started_at, seen_at, expires_at)
			VALUES ('node_1', 'web-1', '0.2.0', 'serve', 1, 0, 0, (extract(epoch FROM now()) * 1000000)::bigint + 3600000000)
			ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`)
		return err
	}
	if err := heartbeat(); err != nil {
		t.Fatal(err)
	}
	err = postgres.Migrate(t.Context(), opts, river.Migrate)
	if err == nil || !strings.Contains(err.Error(), `"web-1" still runs Stepmill 0.2.0`) {
		t.Errorf("beside a live node: %v", err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT 1 FROM connections`); err == nil {
		t.Error("the schema was migrated")
	}
	if _, err := conn.Exec(t.Context(), `UPDATE nodes SET expires_at = 1`); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Fatal(err)
	}
	if err := heartbeat(); err == nil {
		t.Error("the node comes back to life")
	}
}

// TestRenameBesideNodes checks that names are not taken away from a live node, whatever its
// release.
func TestRenameBesideNodes(t *testing.T) {
	t.Parallel()
	opts := postgres.Options{URL: server.Shared(t).NewDatabase(t), Name: "test", Timeout: postgrestest.Timeout}
	migrateTo(t, opts.URL, 14)
	conn, err := pgx.Connect(t.Context(), opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `INSERT INTO nodes (id, name, version, role, capacity, level, started_at, seen_at, expires_at)
		VALUES ('node_1', 'web-1', 'devel', 'serve', 1, $1, 0, 0, (extract(epoch FROM now()) * 1000000)::bigint + 3600000000)`, release.Number)
	if err != nil {
		t.Fatal(err)
	}
	err = postgres.Migrate(t.Context(), opts, river.Migrate)
	if err == nil || !strings.Contains(err.Error(), `"web-1" still runs Stepmill devel`) {
		t.Errorf("beside a live node: %v", err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT turn FROM run_queue`); err != nil {
		t.Errorf("the schema was migrated: %v", err)
	}
	if _, err := conn.Exec(t.Context(), `UPDATE nodes SET expires_at = 1`); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Fatal(err)
	}
}

// migrateTo applies the first migrations, as an earlier release did.
func migrateTo(t *testing.T, url string, version int64) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Postgres(), goose.WithTableName("schema_versions"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}
