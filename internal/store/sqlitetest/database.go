// Package sqlitetest provides tests with an embedded database, or with a whole
// installation on one: a store with its first workspace. The conformance tests of
// the stores are in storetest.
package sqlitetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// timeLimit is far above the defaults, so that a busy machine does not fail a
// test.
const timeLimit = 2 * time.Minute

// template returns a migrated database without rows. Copying it is much cheaper
// than running the migrations for every test.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stepmill")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sqlite.Open(context.Background(), dir, sqlite.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := db.Run(ctx); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, sqlite.FileName))
})

// NewDir creates a data directory with an empty, migrated database.
func NewDir(t testing.TB) string {
	t.Helper()
	content, err := template()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sqlite.FileName), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Open opens a new database and runs it until the test ends.
func Open(t testing.TB) *sqlite.DB {
	t.Helper()
	return OpenDir(t, NewDir(t))
}

// OpenDir opens the database in a data directory and runs it until the test ends.
func OpenDir(t testing.TB, dir string) *sqlite.DB {
	t.Helper()
	db, stop := Start(t, dir)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// Start opens the database in a data directory and runs it until stop is called.
// stop returns the error that Run returned.
func Start(t testing.TB, dir string) (db *sqlite.DB, stop func() error) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir, sqlite.Options{Migrate: true, ReadLimit: timeLimit, WriteLimit: timeLimit, Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	return db, sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}
