package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

func TestSettingsAreApplied(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	for name, tc := range map[string]struct {
		use  func(context.Context, func(database.Conn) error) error
		want map[string]string
	}{
		"writer": {use: db.Write, want: map[string]string{"query_only": "0"}},
		"reader": {use: db.Read, want: map[string]string{"query_only": "1"}},
	} {
		maps.Copy(tc.want, map[string]string{
			"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "auto_vacuum": "2", "temp_store": "2", "mmap_size": "0",
			"busy_timeout": "5000", "wal_autocheckpoint": "1000", "locking_mode": "normal", "encoding": "UTF-8",
		})
		got := map[string]string{}
		err := tc.use(t.Context(), func(c database.Conn) error {
			for setting := range tc.want {
				value, err := column(c, "PRAGMA "+setting)
				if err != nil {
					return err
				}
				got[setting] = strings.Join(value, " ")
			}
			return nil
		})
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestBusyTimeoutAfterCheckpoint checks that the timeout is restored after a
// checkpoint changed it.
func TestBusyTimeoutAfterCheckpoint(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	db.Checkpoint()
	var got []string
	err := db.Write(t.Context(), func(c database.Conn) (err error) {
		got, err = column(c, "PRAGMA busy_timeout")
		return err
	})
	if diff := cmp.Diff([]string{"5000"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestLibraryVersion checks the version of SQLite for both ways to open a file.
// Versions before 3.51.3 can damage a file when a checkpoint and a write
// coincide.
func TestLibraryVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var viaSQL string
	if err := pool.QueryRowContext(t.Context(), "SELECT sqlite_version()").Scan(&viaSQL); err != nil {
		t.Fatal(err)
	}
	direct, err := query(outside(t, filepath.Join(newDir(t), sqlite.FileName)), "SELECT sqlite_version()")
	if err != nil || direct[0] != viaSQL {
		t.Fatalf("%q, %v, and %q through database/sql", direct, err, viaSQL)
	}
	version := 0
	for part := range strings.SplitSeq(viaSQL, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		version = version*1000 + n
	}
	if version < 3_051_003 {
		t.Errorf("SQLite is %s", viaSQL)
	}
}

func TestFileModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no file modes on this system")
	}
	dir := t.TempDir()
	db := open(t, dir) // not the template: this creates the file
	if err := db.Write(t.Context(), putKey("x")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, sqlite.FileName)
	for _, path := range []string{file, file + "-wal"} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(path), got)
		}
	}
}

// TestIndexIsInMemory checks that no file is mapped: a thread that waits for the
// disk in a page fault stops the whole process.
func TestIndexIsInMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the index is always a mapped file on this system")
	}
	dir := newDir(t)
	db := open(t, dir)
	if err := db.Write(t.Context(), putKey("x")); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, db); len(got) != 1 {
		t.Errorf("rows: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, sqlite.FileName+"-shm")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the index: %v", err)
	}
}

func TestCleanShutdownLeavesNoLog(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db, stop := start(t, dir)
	if err := errors.Join(db.Write(t.Context(), putKey("x")), stop()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, sqlite.FileName+"*"))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if got := keys(t, open(t, dir)); len(got) != 1 {
		t.Errorf("rows: %q", got)
	}
}

func TestSpecialCharactersInPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a#b c?d=e&f", "100%25 %41 a+b;Ü'"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		db, stop := start(t, dir)
		err := db.Write(t.Context(), putKey("x"))
		backup := filepath.Join(dir, "backup of "+name)
		err = errors.Join(err, writeBackup(dir, backup), stop())
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		for _, path := range []string{backup, filepath.Join(dir, sqlite.FileName)} {
			if got, err := query(outside(t, path), allKeys); err != nil || len(got) != 1 {
				t.Errorf("%q: %q, %v", path, got, err)
			}
		}
	}
}

func TestOpenWithoutMigrateCreatesNothing(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, dir := range map[string]string{"an empty directory": empty, "no directory": filepath.Join(empty, "missing")} {
		if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); !errors.Is(err, sqlite.ErrMissing) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if _, err := sqlite.Open(t.Context(), filepath.Join(empty, "missing"), sqlite.Options{Migrate: true}); err == nil {
		t.Error("a missing directory was opened")
	}
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	t.Run("newer", func(t *testing.T) {
		t.Parallel()
		dir := newDir(t)
		conn := outside(t, filepath.Join(dir, sqlite.FileName))
		if _, err := query(conn, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
			t.Fatal(err)
		}
		for _, migrate := range []bool{false, true} {
			_, err := sqlite.Open(t.Context(), dir, sqlite.Options{Migrate: migrate})
			if err == nil || !strings.Contains(err.Error(), "newer Stepmill") {
				t.Errorf("migrate %t: %v", migrate, err)
			}
		}
	})
	t.Run("older", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, sqlite.FileName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "start the server once") {
			t.Errorf("got %v", err)
		}
		if err := open(t, dir).Write(t.Context(), putKey("x")); err != nil {
			t.Errorf("after the migration: %v", err)
		}
	})
	t.Run("same", func(t *testing.T) {
		t.Parallel()
		dir := newDir(t)
		db, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- db.Run(ctx) }()
		err = db.Write(t.Context(), putKey("by a command"))
		stop()
		if err := errors.Join(err, <-ended); err != nil {
			t.Error(err)
		}
		if got := keys(t, open(t, dir)); len(got) != 1 {
			t.Errorf("rows: %q", got)
		}
	})
}
