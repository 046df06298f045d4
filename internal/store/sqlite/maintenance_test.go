package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// TestMaintenanceFreesSpace checks that the space of deleted rows is returned to
// the file system when the writer is idle.
func TestMaintenanceFreesSpace(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	size := func() int64 {
		db.Checkpoint()
		info, err := os.Stat(filepath.Join(dir, sqlite.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	must := func(statement string) {
		err := db.Write(t.Context(), func(c database.Conn) error {
			_, err := c.Exec(statement)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	must("CREATE TABLE heap (body BLOB)")
	before := size()
	must("INSERT INTO heap SELECT zeroblob(100000) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i FROM n)")
	full := size()
	must("DELETE FROM heap")
	if full < before+4_000_000 || size() != full {
		t.Fatalf("%d bytes, then %d, then %d", before, full, size())
	}
	db.Maintain()
	if after := size(); after > before+100_000 {
		t.Errorf("%d bytes are left of %d", after, full)
	}
}
