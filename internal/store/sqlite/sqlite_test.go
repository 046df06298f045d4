package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	raw "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/sqlitetest"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, notify store.Notify) *store.DB {
		return store.New(open(t, newDir(t)), notify)
	})
}

// newDir creates a data directory with an empty database.
func newDir(t *testing.T) string {
	t.Helper()
	return sqlitetest.NewDir(t)
}

// open opens a database and runs it until the test ends.
func open(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	return sqlitetest.OpenDir(t, dir)
}

// start opens a database and runs it until stop is called.
func start(t *testing.T, dir string) (*sqlite.DB, func() error) {
	t.Helper()
	return sqlitetest.Start(t, dir)
}

// putKey returns a function that writes one row.
func putKey(key string) func(database.Conn) error {
	return func(c database.Conn) error {
		_, err := c.Exec(`INSERT INTO usage VALUES ($1, '2026-01-01', 0, 0, 0, 0, 0)`, key)
		return err
	}
}

const allKeys = `SELECT workspace_id FROM usage ORDER BY workspace_id`

// column reads the first column of a query's rows as text.
func column(c database.Conn, query string, args ...any) (out []string, err error) {
	err = c.Query(query, args, func(r database.Row) error {
		text := ""
		err := r.Scan(&text)
		out = append(out, text)
		return err
	})
	return out, err
}

// keys reads the rows that putKey wrote.
func keys(t *testing.T, db *sqlite.DB) (out []string) {
	t.Helper()
	err := db.Read(t.Context(), func(c database.Conn) (err error) {
		out, err = column(c, allKeys)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outside opens a separate connection to a database file.
func outside(t *testing.T, path string) *raw.Conn {
	t.Helper()
	conn, err := raw.OpenConn(sqlite.URI(path), raw.OpenReadWrite|raw.OpenURI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// writeBackup writes a copy of a database to a file.
func writeBackup(dir, path string) error {
	snapshot, err := sqlite.OpenSnapshot(dir, false)
	return writeSnapshot(snapshot, err, path)
}

// writeSnapshot writes a snapshot, unless it could not be opened, to a file and closes it.
func writeSnapshot(snapshot *sqlite.Snapshot, err error, path string) error {
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = snapshot.WriteTo(file)
		err = errors.Join(err, file.Close())
	}
	return errors.Join(err, snapshot.Close())
}

// query reads the first column of a query's rows on a separate connection.
func query(conn *raw.Conn, text string, args ...any) (out []string, err error) {
	err = sqlitex.Execute(conn, text, &sqlitex.ExecOptions{
		Args: args,
		ResultFunc: func(stmt *raw.Stmt) error {
			out = append(out, stmt.ColumnText(0))
			return nil
		},
	})
	return out, err
}

func isFault(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("%s: got %v, want a fault %s", what, err, code)
	}
}

func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return out
}
