package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	raw "zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// copies returns the temporary copies of a database.
func copies(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, sqlite.FileName+".copy-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// fill writes rows of 100 kB.
func fill(t *testing.T, db *sqlite.DB, prefix string, rows int) {
	t.Helper()
	for _, key := range numbered(prefix, rows) {
		if err := db.Write(t.Context(), putKey(key+strings.Repeat("x", 100_000))); err != nil {
			t.Fatal(err)
		}
	}
}

// A snapshot of a database in use has what is written while it is made, page by page, and
// nothing of what is rolled back.
func TestSnapshotWhileWriting(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	if err := db.Write(t.Context(), install); err != nil {
		t.Fatal(err)
	}
	fill(t, db, "before", 100)
	steps, failed := 0, errors.New("rolled back")
	snapshot, err := db.OpenSnapshot(t.Context(), 0, func() {
		if steps++; steps > 8 {
			return
		}
		// Pages that are already copied change, too: those of the first rows.
		for i, end := range []error{nil, failed} {
			size := 300_000
			if steps == 3 {
				size = 20_000_000 // more than the cache of the writer
			}
			err := db.Write(t.Context(), func(c database.Conn) error {
				if err := c.Do(`UPDATE usage SET requests = requests + 1 + 1000 * $1 WHERE workspace_id LIKE 'before%'`, i); err != nil {
					return err
				}
				if err := putKey(fmt.Sprintf("during%d-%d", i, steps) + strings.Repeat("y", size))(c); err != nil {
					return err
				}
				return end
			})
			if !errors.Is(err, end) {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := copies(t, dir); len(found) != 1 {
		t.Errorf("copies: %q", found)
	} else if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := writeSnapshot(snapshot, nil, path); err != nil {
		t.Fatal(err)
	}
	if found := copies(t, dir); len(found) != 0 {
		t.Errorf("left behind: %q", found)
	}
	if _, err := sqlite.Inspect(path); err != nil { // checks that it is intact
		t.Fatal(err)
	}
	conn, err := raw.OpenConn(path, raw.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := query(conn, `SELECT count(*) || ' rows with ' || min(requests) || ' to ' || max(requests) FROM usage WHERE workspace_id LIKE 'before%'
		UNION ALL SELECT count(*) || ' new' FROM usage WHERE workspace_id LIKE 'during0%' UNION ALL SELECT count(*) || ' rolled back' FROM usage WHERE workspace_id LIKE 'during1%'`)
	// The last call of progress comes after the last page.
	n := min(8, steps-1)
	if want := fmt.Sprintf("100 rows with %d to %[1]d; %[1]d new; 0 rolled back", n); err != nil || strings.Join(got, "; ") != want {
		t.Errorf("the copy has %q, %v; want %s", got, err, want)
	}
	if n < 2 {
		t.Errorf("everything was copied in %d steps", steps)
	}
}

// A snapshot does not keep the log from being truncated, however long it is open.
func TestSnapshotDoesNotHoldLog(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	fill(t, db, "before", 10)
	snapshot, err := db.OpenSnapshot(t.Context(), 0, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	fill(t, db, "after", 10)
	db.Checkpoint()
	if size := db.Files().LogBytes; size != 0 {
		t.Errorf("the log has %d bytes", size)
	}
}

// A snapshot that cannot be completed leaves nothing behind, and neither does a process
// that was killed.
func TestSnapshotLeavesNoCopy(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db, stop := start(t, dir)
	fill(t, db, "row", 20)
	if _, err := db.OpenSnapshot(t.Context(), math.MaxInt64/2, func() {}); err == nil || !strings.Contains(err.Error(), "needs space for a copy of the database (") {
		t.Errorf("without space: %v", err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := db.OpenSnapshot(ctx, 0, func() { cancel(enough) }); !errors.Is(err, enough) {
		t.Errorf("canceled: %v", err)
	}
	if found := copies(t, dir); len(found) != 0 {
		t.Errorf("left behind: %q", found)
	}
	fill(t, db, "more", 1) // the database goes on
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, sqlite.FileName+".copy-123"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if found := copies(t, dir); len(found) != 0 {
		t.Errorf("left behind by the process before: %q", found)
	}
}
