package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	raw "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, notify store.Notify) *store.Store {
		return store.New(open(t, newDir(t)), notify)
	})
}

// template is a migrated database without rows: copying it is faster than
// making it.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stepmill")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
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

// newDir makes a data directory with an empty database.
func newDir(t *testing.T) string {
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

// open opens a database and runs it until the test ends.
func open(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, stop := start(t, dir)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// start opens a database and runs it until stop is called.
func start(t *testing.T, dir string) (*sqlite.DB, func() error) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir, sqlite.Options{Migrate: true})
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

// put is a unit that writes one row.
func put(key string) func(store.Conn) error {
	return func(c store.Conn) error {
		_, err := c.Exec(`INSERT INTO usage VALUES ($1, '2026-01-01', 0, 0, 0, 0, 0)`, key)
		return err
	}
}

const allKeys = `SELECT workspace_id FROM usage ORDER BY workspace_id`

// column reads the first column of a query's rows as text.
func column(c store.Conn, query string, args ...any) (out []string, err error) {
	err = c.Query(query, args, func(r store.Row) error {
		text := ""
		err := r.Scan(&text)
		out = append(out, text)
		return err
	})
	return out, err
}

// keys reads the rows that were put.
func keys(t *testing.T, db *sqlite.DB) (out []string) {
	t.Helper()
	err := db.Read(t.Context(), func(c store.Conn) (err error) {
		out, err = column(c, allKeys)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outside opens a connection of its own to a database file, as another process
// would.
func outside(t *testing.T, path string) *raw.Conn {
	t.Helper()
	conn, err := raw.OpenConn(path, raw.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// query reads the first column of a query's rows on a connection of one's own.
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
