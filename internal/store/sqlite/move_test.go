package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/migrations"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// TestReadSnapshot checks that a snapshot does not change while others write.
func TestReadSnapshot(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	if err := db.Write(t.Context(), putKey("before")); err != nil {
		t.Fatal(err)
	}
	err := db.ReadSnapshot(t.Context(), func(c database.Conn) error {
		for range 3 {
			if got, err := column(c, allKeys); err != nil || !slices.Equal(got, []string{"before"}) {
				t.Errorf("the snapshot contains %v, %v", got, err)
			}
			if err := db.Write(t.Context(), putKey(time.Now().String())); err != nil {
				return err
			}
		}
		if _, err := c.Exec(`DELETE FROM usage`); err == nil {
			t.Error("the snapshot is writable")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(keys(t, db)); got != 4 {
		t.Errorf("%d rows, want 4", got)
	}
}

func TestReadSnapshotStopsWithContext(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	err := db.ReadSnapshot(ctx, func(c database.Conn) error {
		cancel()
		_, err := column(c, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n`)
		return err
	})
	if err == nil {
		t.Error("the read was not interrupted")
	}
	failed := errors.New("failed")
	if err := db.ReadSnapshot(t.Context(), func(database.Conn) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// exportOf returns the export of an installation with these keys.
func exportOf(t *testing.T, keys []string) []byte {
	t.Helper()
	db := open(t, newDir(t))
	err := db.Write(t.Context(), func(c database.Conn) error {
		for _, key := range keys {
			if err := putKey(key)(c); err != nil {
				return err
			}
		}
		return install(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, archive.Header{Schema: migrations.Last(), Tables: store.Archived()})
	if err == nil {
		err = errors.Join(store.Export(t.Context(), db, nil, w), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func importFile(t *testing.T, db store.Mover, file []byte) error {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return store.Import(t.Context(), db, store.FilesTarget{}, r, time.Now())
}

// TestImportOnAFullDisk checks that a failed import leaves the database empty.
func TestImportOnAFullDisk(t *testing.T) {
	t.Parallel()
	file, to := exportOf(t, numbered("a row of some length ", 5000)), open(t, newDir(t))
	limitPages(t, to, 20)
	isFault(t, "an import to a full disk", importFile(t, to, file), fault.StorageFull)
	if incomplete, err := store.New(to, store.Notify{}).Installation.ImportIncomplete(t.Context()); incomplete || err != nil {
		t.Errorf("the import is incomplete: %t, %v", incomplete, err)
	}
	if got := keys(t, to); len(got) != 0 {
		t.Errorf("%d rows are left", len(got))
	}
	limitPages(t, to, 1000)
	if err := importFile(t, to, file); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
	if got := keys(t, to); len(got) != 5000 {
		t.Errorf("%d rows", len(got))
	}
}

// measuringDriver records the largest transaction.
type measuringDriver struct {
	*sqlite.DB
	rows, bytes int
}

func (d *measuringDriver) Write(ctx context.Context, fn func(database.Conn) error) error {
	return d.DB.Write(ctx, func(c database.Conn) error {
		w := &measuringConn{Conn: c}
		err := fn(w)
		d.rows, d.bytes = max(d.rows, w.rows), max(d.bytes, w.bytes)
		return err
	})
}

type measuringConn struct {
	database.Conn
	rows, bytes int
}

func (s *measuringConn) Do(statement string, args ...any) error {
	for _, arg := range args {
		if text, ok := arg.(string); ok {
			s.bytes += len(text)
		}
	}
	n, err := s.Exec(statement, args...)
	s.rows += int(n)
	return err
}

func TestImportTransactionsAreBounded(t *testing.T) {
	t.Parallel()
	const row = 100_000
	for name, test := range map[string]struct {
		keys        []string
		rows, bytes int
	}{
		"many":  {numbered("x", 2001), 500, 500 * 20},
		"large": {numbered(strings.Repeat("x", row), 50), 30, 1<<20 + row},
	} {
		to := &measuringDriver{DB: open(t, newDir(t))}
		if err := importFile(t, to, exportOf(t, test.keys)); err != nil {
			t.Fatal(err)
		}
		if to.rows > test.rows || to.bytes > test.bytes+200 {
			t.Errorf("%s: a transaction has %d rows and %d bytes", name, to.rows, to.bytes)
		}
		if got := len(keys(t, to.DB)); got != len(test.keys) {
			t.Errorf("%s: %d rows", name, got)
		}
	}
}
