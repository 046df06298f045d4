package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
)

// Snapshot is a consistent view of a database, for a backup.
type Snapshot struct {
	c    *conn
	size int64
	copy string // the file that is removed with the snapshot; empty for none
}

// OpenSnapshot opens a snapshot of the database in a data directory that no other
// process is using, and which this one does not write to either: the snapshot is a read
// transaction, and the log would grow with each write. For readOnly see Options.
func OpenSnapshot(dir string, readOnly bool) (*Snapshot, error) {
	_, open := openers(filepath.Join(dir, FileName), readOnly)
	return openSnapshot(open)
}

func openSnapshot(open opener) (*Snapshot, error) {
	raw, err := open()
	if err != nil {
		return nil, err
	}
	s := &Snapshot{c: newConn(raw)}
	if err = s.c.run("BEGIN"); err == nil { // the first statement determines what is seen
		err = s.c.Query("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()", nil, func(r database.Row) error { return r.Scan(&s.size) })
	}
	if err != nil {
		return nil, errors.Join(explain(err), s.Close())
	}
	return s, nil
}

// Close ends the snapshot.
func (s *Snapshot) Close() error {
	err := s.c.close()
	if s.copy != "" {
		err = errors.Join(err, os.Remove(s.copy))
	}
	return err
}

// Size returns the size of the database.
func (s *Snapshot) Size() int64 { return s.size }

// WriteTo writes a copy of the database.
func (s *Snapshot) WriteTo(to io.Writer) (written int64, err error) {
	// A single statement reads all pages.
	err = s.c.Query("SELECT pgno, data FROM sqlite_dbpage ORDER BY pgno", nil, func(r database.Row) error {
		number, page := 0, []byte(nil)
		if err := r.Scan(&number, &page); err != nil {
			return err
		}
		if number == 1 {
			clearWAL(page)
		}
		n, err := to.Write(page)
		written += int64(n)
		return err
	})
	if err != nil {
		return written, fmt.Errorf("write the backup: %w", err)
	}
	return written, nil
}

// Installation describes the installation.
func (s *Snapshot) Installation() (Installation, error) { return describe(s.c) }

// EachBlob calls each with the blobs that the database refers to, in the order of their
// ids, and the sizes of their plain bytes.
func (s *Snapshot) EachBlob(each func(id string, size int64) error) error {
	found, err := hasFiles(s.c)
	if err != nil || !found {
		return err
	}
	return s.c.Query("SELECT id, size FROM file_blobs UNION SELECT blob_id, size FROM upload_parts ORDER BY 1", nil, func(r database.Row) error {
		id, size := "", int64(0)
		if err := r.Scan(&id, &size); err != nil {
			return err
		}
		return each(id, size)
	})
}

// clearWAL changes the first page so that the file can be opened without a
// write-ahead log, even on a medium that is read-only.
func clearWAL(page []byte) {
	const writeVersion, readVersion, rollbackJournal = 18, 19, 1
	page[writeVersion], page[readVersion] = rollbackJournal, rollbackJournal
}

// Installation describes what a database contains.
type Installation struct {
	ID         string
	KeyCheck   []byte // identifies the master key
	FilesPlace string // where the bytes of its files are; empty if that is not recorded
	Files      bool   // it has files
}

// Inspect checks that a file is an intact Stepmill database and describes it.
func Inspect(path string) (found Installation, err error) {
	if info, err := os.Stat(path); err != nil {
		return found, err
	} else if !info.Mode().IsRegular() {
		return found, fmt.Errorf("%s is not a file", path)
	}
	raw, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return found, fmt.Errorf("open %s: %w", path, err)
	}
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }()
	verdict := ""
	err = c.Query("PRAGMA integrity_check(1)", nil, func(r database.Row) error { return r.Scan(&verdict) })
	if err != nil || verdict != "ok" {
		return found, fmt.Errorf("%s is not an intact SQLite database (%s)", path, cmp.Or(verdict, fmt.Sprint(err)))
	}
	found, err = describe(c)
	if err != nil || found.KeyCheck == nil {
		return found, fmt.Errorf("%s is not a Stepmill backup", path)
	}
	return found, nil
}

func describe(c *conn) (found Installation, err error) {
	err = c.Query("SELECT first_workspace_id, key_check FROM installation WHERE id = 1", nil, func(r database.Row) error { return r.Scan(&found.ID, &found.KeyCheck) })
	if err != nil {
		return found, err
	}
	if has, err := hasFiles(c); err != nil || !has {
		return found, err
	}
	err = c.Query("SELECT place FROM files_place WHERE id = 1", nil, func(r database.Row) error { return r.Scan(&found.FilesPlace) })
	if err != nil {
		return found, err
	}
	return found, c.Query("SELECT 1 FROM file_blobs LIMIT 1", nil, func(database.Row) error { found.Files = true; return nil })
}

// hasFiles reports whether the schema of a database has files. Databases of earlier
// versions do not.
func hasFiles(c *conn) (found bool, err error) {
	err = c.Query("SELECT 1 FROM sqlite_master WHERE name = 'file_blobs'", nil, func(database.Row) error { found = true; return nil })
	return found, err
}

// SetFilesPlace records in a copy of a database where the bytes of its files are.
func SetFilesPlace(path, place string) (err error) {
	raw, err := openConn(path, false)
	if err != nil {
		return err
	}
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }() // removes the log
	if has, err := hasFiles(c); err != nil || !has {
		return err
	}
	return explain(c.Do("INSERT INTO files_place (id, place) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET place = excluded.place", place))
}

// Copy writes a durable copy of a database that no process is using to target,
// which it replaces. It includes the write-ahead log that an unclean stop leaves.
func Copy(source, target string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm"} { // of an interrupted copy
		if err := os.Remove(target + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := copyFile(source, target); err != nil {
		return err
	}
	if err := copyFile(source+"-wal", target+"-wal"); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	raw, err := openConn(target, false)
	if err != nil {
		return err
	}
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }() // removes the log
	return c.run("PRAGMA wal_checkpoint(TRUNCATE)")
}

func copyFile(source, target string) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
