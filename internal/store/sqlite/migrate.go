package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the database/sql driver that goose needs

	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/store/migrations"
)

// ErrMissing means that a data directory contains no database.
var ErrMissing = errors.New("there is no Stepmill data here yet")

// prepare makes sure that the file exists and has the schema of this binary.
func prepare(ctx context.Context, path string, opts Options) (err error) {
	if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
		if !opts.Migrate {
			return fmt.Errorf("%s: %w", path, ErrMissing)
		}
		if err := createPrivate(path); err != nil {
			return err
		}
	}
	address := URI(path)
	if opts.ReadOnly {
		address = immutableURI(path)
	}
	uri, err := url.Parse(address)
	if err != nil {
		return err
	}
	query := uri.Query()
	// auto_vacuum can only be chosen before the first table.
	if !opts.ReadOnly {
		query["_pragma"] = []string{"busy_timeout(5000)", "auto_vacuum(2)", "journal_mode(wal)", "synchronous(full)"}
	}
	uri.RawQuery = query.Encode()
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return migrateTo(ctx, db, path, opts.Migrate)
}

// migrateTo makes sure that a database has the schema of this binary.
func migrateTo(ctx context.Context, db *sql.DB, path string, migrate bool) error {
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.SQLite())
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, want, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return explainDamage(ctx, db, path, fmt.Errorf("open %s: %w", path, err))
	case have > want:
		return fmt.Errorf("%s was written by a newer Stepmill (schema %d, this binary knows %d): upgrade the binary", path, have, want)
	case have == want:
		return nil
	case !migrate:
		return fmt.Errorf("%s has schema %d, this binary needs %d: start the server once to migrate it", path, have, want)
	}
	failpoint.Hit(failpoint.DuringMigration, path)
	if _, err := provider.Up(ctx); err != nil {
		return explainDamage(ctx, db, path, fmt.Errorf("migrate %s: %w", path, err))
	}
	return nil
}

// explainDamage returns why a database could not be migrated. A damaged table of
// versions looks like another schema, so that the failure itself does not tell.
func explainDamage(ctx context.Context, db *sql.DB, path string, failure error) error {
	if isDamage(failure) {
		return failure
	}
	verdict := ""
	err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if err == nil && verdict == "ok" || err != nil && !isDamage(err) {
		return failure
	}
	return damaged(path, failure)
}

// createPrivate creates the file readable only by its owner; SQLite gives its
// other files the same mode.
func createPrivate(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}
