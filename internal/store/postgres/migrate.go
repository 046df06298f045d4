package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/store/migrations"
)

// versionTable records the migrations that were applied.
const versionTable = "schema_versions"

// lastRename is the last migration that takes away names which nodes of an older schema
// use. Their statements fail after it, also those that renew their leases.
const lastRename = 15

// migrationLock is the advisory lock that nodes hold while they migrate. The number must never
// change: nodes of two releases would migrate at the same time.
const migrationLock = 7_316_402_118

// Migrate brings our schema up to date, and then calls jobs to migrate that of the
// job queue. Nodes that start at the same time migrate one after the other. An
// interrupted migration can be repeated.
func Migrate(ctx context.Context, opts Options, jobs func(context.Context, *pgxpool.Pool) error) (err error) {
	config, err := configure(opts, 4)
	if err != nil {
		return err
	}
	// A migration may take any amount of time.
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		delete(config.ConnConfig.RuntimeParams, name)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	lockTx, err := pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, lockTx.Rollback(context.WithoutCancel(ctx))) }()
	if _, err := lockTx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for another migration: %w", err)
	}
	if err := migrateOwn(ctx, pool); err != nil {
		return err
	}
	return jobs(ctx, pool)
}

func migrateOwn(ctx context.Context, pool *pgxpool.Pool) (err error) {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}
	if have >= want {
		return checkNotTooNew(ctx, db)
	}
	if err := checkOlderNodes(ctx, db, have); err != nil {
		return err
	}
	failpoint.Hit(failpoint.DuringMigration, "")
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Postgres(), goose.WithTableName(versionTable))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// checkNotTooNew rejects a schema that is too new for this binary. Each release
// supports the schema of the next one, so that nodes can be upgraded one at a
// time.
func checkNotTooNew(ctx context.Context, db *sql.DB) error {
	var found int
	if err := db.QueryRowContext(ctx, `SELECT number FROM schema_release`).Scan(&found); err != nil {
		return fmt.Errorf("read the release of the schema: %w", err)
	}
	if known := release.Known(); found > known+1 {
		return fmt.Errorf("the database was migrated by Stepmill %s, which is more than one release ahead of this binary (%s): upgrade the binary",
			release.Name(found), release.Name(known))
	}
	return nil
}

// checkOlderNodes refuses to migrate a database of the given schema while nodes use it that
// do not support the new one: only those of the previous release do, if it knows levels and
// the migrations rename nothing.
func checkOlderNodes(ctx context.Context, db *sql.DB, schema int64) error {
	var hasNodes, hasLevels bool
	err := db.QueryRowContext(ctx, `SELECT to_regclass('nodes') IS NOT NULL,
		EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('nodes') AND attname = 'level' AND NOT attisdropped)`).Scan(&hasNodes, &hasLevels)
	if err != nil || !hasNodes {
		return err
	}
	level, steady := `0`, now()
	if hasLevels {
		level, steady = `level`, steady+` + COALESCE((SELECT correction FROM service_clock), 0)`
	}
	oldest := max(release.First, release.Number-1)
	if schema < lastRename {
		oldest = release.Number + 1 // none
	}
	var name, version string
	err = db.QueryRowContext(ctx, `SELECT name, version FROM nodes WHERE NOT dead AND expires_at > `+steady+` AND `+level+` < $1 ORDER BY started_at LIMIT 1`,
		oldest).Scan(&name, &version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("list the nodes: %w", err)
	}
	return fmt.Errorf("the node %q still runs Stepmill %s, which cannot run beside %s: stop all nodes that run it, wait until their leases have expired, then start this one again; nothing was changed",
		name, version, release.Name(release.Number))
}

// ErrNotMigrated means that the database has no schema, or an older one.
var ErrNotMigrated = errors.New("run `stepmill migrate` first")

func checkSchema(ctx context.Context, pool *pgxpool.Pool) (err error) {
	var table *string
	if err := pool.QueryRow(ctx, `SELECT to_regclass($1)::text`, versionTable).Scan(&table); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	if table == nil {
		return fmt.Errorf("the database contains no Stepmill data: %w", ErrNotMigrated)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	have, want, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the version of the schema: %w", err)
	case have < want:
		return fmt.Errorf("the database has schema %d, this binary needs %d: %w", have, want, ErrNotMigrated)
	}
	return checkNotTooNew(ctx, db)
}
