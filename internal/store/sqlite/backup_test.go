package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	raw "zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// install makes the database a Stepmill installation.
func install(c database.Conn) error {
	_, err := c.Exec(`INSERT INTO installation VALUES (1, 'ws_1', $1, 0, NULL)`, []byte("check"))
	return err
}

func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	const backups, writers, burst = 20, 4, 40
	dir, target := newDir(t), t.TempDir()
	db := open(t, dir)
	if err := db.Write(t.Context(), install); err != nil {
		t.Fatal(err)
	}
	var acked [writers]atomic.Int64
	var running sync.WaitGroup
	work := make(chan struct{}, burst)
	for i := range writers {
		running.Go(func() {
			for range work {
				n := acked[i].Load() + 1
				if err := db.Write(context.Background(), putKey(fmt.Sprintf("%d-%d", i, n))); err != nil {
					t.Error(err)
					return
				}
				acked[i].Store(n)
			}
		})
	}
	for n := range backups {
		for range burst { // the last of them are written during the backup
			work <- struct{}{}
		}
		var before [writers]int64
		for i := range acked {
			before[i] = acked[i].Load()
		}
		path := filepath.Join(target, fmt.Sprintf("%d.db", n))
		snapshot, err := db.OpenSnapshot(t.Context(), 0, func() {})
		if err := writeSnapshot(snapshot, err, path); err != nil {
			t.Fatal(err)
		}
		checkBackup(t, path, before[:])
	}
	close(work)
	running.Wait()

	// The last backup is used as a database.
	restored := t.TempDir()
	last := filepath.Join(target, fmt.Sprintf("%d.db", backups-1))
	if err := os.Rename(last, filepath.Join(restored, sqlite.FileName)); err != nil {
		t.Fatal(err)
	}
	checkIntegrity(t, outside(t, filepath.Join(restored, sqlite.FileName)))
	again := open(t, restored)
	before := len(keys(t, again))
	if err := again.Write(t.Context(), putKey("after the restore")); err != nil {
		t.Fatal(err)
	}
	if got := len(keys(t, again)); got != before+1 || before < burst {
		t.Errorf("%d rows, %d before", got, before)
	}
}

// checkBackup checks that a copy is intact and contains a prefix of each writer's
// rows, including every row acknowledged before the backup began.
func checkBackup(t *testing.T, path string, acked []int64) {
	t.Helper()
	if found, err := sqlite.Inspect(path); err != nil || string(found.KeyCheck) != "check" {
		t.Errorf("inspect: %+v, %v", found, err)
	}
	conn, err := raw.OpenConn(path, raw.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, want := range acked {
		got, err := query(conn, `SELECT count(*) FROM usage WHERE workspace_id LIKE $1 || '-%'
			UNION ALL SELECT count(*) FROM usage WHERE workspace_id LIKE $1 || '-%' AND CAST(substr(workspace_id, 3) AS INTEGER) <= $2`, i, want)
		if err != nil {
			t.Fatal(err)
		}
		if got[1] != fmt.Sprint(want) {
			t.Errorf("writer %d: the copy contains %s of the %d rows acknowledged before", i, got[1], want)
		}
		whole, err := query(conn, `SELECT workspace_id FROM usage WHERE workspace_id = $1`, fmt.Sprintf("%d-%s", i, got[0]))
		if err != nil || got[0] != "0" && len(whole) != 1 {
			t.Errorf("writer %d: the %s rows in the copy are not its first: %v", i, got[0], err)
		}
	}
}

func TestInspectRejectsOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	whole := newBackup(t, path("whole"))
	write := func(name string, content []byte) {
		if err := os.WriteFile(path(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("empty", nil)
	write("text", []byte(strings.Repeat("no database ", 1000)))
	write("zeros", make([]byte, 1<<16))
	write("truncated", whole[:len(whole)/2])
	write("without its first page", whole[4096:])
	write("damaged", corruptPages(whole, 4096))
	write("damaged at its end", corruptPages(whole, len(whole)-4096))
	content, err := os.ReadFile(filepath.Join(newDir(t), sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	write("not installed", content)
	foreign, err := raw.OpenConn(path("foreign"), raw.OpenReadWrite|raw.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query(foreign, "CREATE TABLE recipes (name TEXT)"); err != nil {
		t.Fatal(err)
	}
	if err := foreign.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"missing", "empty", "text", "zeros", "truncated", "without its first page", "damaged", "damaged at its end", "not installed", "foreign", ".",
	} {
		if found, err := sqlite.Inspect(path(name)); err == nil || found.KeyCheck != nil {
			t.Errorf("%s: got %+v, %v", name, found, err)
		}
	}
	if found, err := sqlite.Inspect(path("whole")); err != nil || string(found.KeyCheck) != "check" || found.ID != "ws_1" || found.Files {
		t.Errorf("a backup: %+v, %v", found, err)
	}
	if after, err := os.ReadFile(path("whole")); err != nil || !bytes.Equal(after, whole) {
		t.Errorf("Inspect changed the backup: %v", err)
	}
}

// newBackup creates a backup of a database with some rows.
func newBackup(t *testing.T, path string) []byte {
	t.Helper()
	dir := newDir(t)
	db := open(t, dir)
	err := db.Write(t.Context(), func(c database.Conn) error {
		for _, key := range numbered("a row of some length ", 2000) {
			if err := putKey(key)(c); err != nil {
				return err
			}
		}
		return install(c)
	})
	if err := errors.Join(err, writeBackup(dir, path)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// corruptPages returns the content with the headers of its pages cleared from a
// position on.
func corruptPages(content []byte, from int) []byte {
	damaged := bytes.Clone(content)
	for at := from; at < len(damaged); at += 4096 {
		clear(damaged[at : at+8])
	}
	return damaged
}

// A snapshot lists the blobs that it refers to, whatever happens later, and its copy
// has the announced size.
func TestSnapshotBlobs(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	add := func(statement string, args ...any) {
		t.Helper()
		if err := db.Write(t.Context(), func(c database.Conn) error { return c.Do(statement, args...) }); err != nil {
			t.Fatal(err)
		}
	}
	const file = `INSERT INTO file_blobs (id, workspace_id, sha256, size, files) VALUES ($1, 'ws_1', $1, $2, 1)`
	if err := db.Write(t.Context(), install); err != nil {
		t.Fatal(err)
	}
	add(file, "c", 3)
	add(file, "a", 1)
	add(`INSERT INTO upload_parts (upload_id, start, blob_id, size) VALUES ('up', 0, 'b', 2)`)
	add(`INSERT INTO files_place (id, place) VALUES (1, 'directory')`)
	s, err := db.OpenSnapshot(t.Context(), 0, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add(file, "d", 4)
	add(`DELETE FROM file_blobs WHERE id = 'a'`)
	var got []string
	err = s.EachBlob(func(id string, size int64) error { got = append(got, fmt.Sprint(id, size)); return nil })
	if err != nil || strings.Join(got, " ") != "a1 b2 c3" {
		t.Errorf("blobs: %q, %v", got, err)
	}
	if found, err := s.Installation(); err != nil || found.FilesPlace != "directory" || !found.Files || found.ID != "ws_1" {
		t.Errorf("installation: %+v, %v", found, err)
	}
	path := filepath.Join(t.TempDir(), "copy")
	copied, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.WriteTo(copied)
	if err := errors.Join(err, copied.Close()); err != nil || n != s.Size() {
		t.Errorf("wrote %d of %d bytes: %v", n, s.Size(), err)
	}
	if err := sqlite.SetFilesPlace(path, "s3://elsewhere/"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if found, err := sqlite.Inspect(path); err != nil || found.FilesPlace != "s3://elsewhere/" {
		t.Errorf("the copy: %+v, %v", found, err)
	}
}
