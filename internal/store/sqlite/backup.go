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

// Backup writes a consistent copy of the database in a data directory that no other
// process is using.
func Backup(dir string, to io.Writer) error { return backup(filepath.Join(dir, FileName), to) }

// Backup writes a consistent copy of the database.
func (db *DB) Backup(to io.Writer) error { return backup(db.path, to) }

func backup(path string, to io.Writer) (err error) {
	raw, err := openConn(path, true)
	if err != nil {
		return err
	}
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.run("BEGIN"); err != nil {
		return err
	}
	// A single statement reads all pages of one snapshot.
	err = c.Query("SELECT pgno, data FROM sqlite_dbpage ORDER BY pgno", nil, func(r database.Row) error {
		number, page := 0, []byte(nil)
		if err := r.Scan(&number, &page); err != nil {
			return err
		}
		if number == 1 {
			clearWAL(page)
		}
		_, err := to.Write(page)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return c.run("COMMIT")
}

// clearWAL changes the first page so that the file can be opened without a
// write-ahead log, even on a medium that is read-only.
func clearWAL(page []byte) {
	const writeVersion, readVersion, rollbackJournal = 18, 19, 1
	page[writeVersion], page[readVersion] = rollbackJournal, rollbackJournal
}

// Inspect checks that a file is an intact Stepmill database and returns the value
// that identifies its master key.
func Inspect(path string) (keyCheck []byte, err error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	raw, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }()
	verdict := ""
	err = c.Query("PRAGMA integrity_check(1)", nil, func(r database.Row) error { return r.Scan(&verdict) })
	if err != nil || verdict != "ok" {
		return nil, fmt.Errorf("%s is not an intact SQLite database (%s)", path, cmp.Or(verdict, fmt.Sprint(err)))
	}
	err = c.Query("SELECT key_check FROM installation WHERE id = 1", nil, func(r database.Row) error { return r.Scan(&keyCheck) })
	if err != nil || keyCheck == nil {
		return nil, fmt.Errorf("%s is not a Stepmill backup", path)
	}
	return keyCheck, nil
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
