package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/store"
)

// Backup writes a consistent copy of the database in a data directory to a new
// file. A server may be using the database. The copy is on disk when Backup
// returns.
func Backup(dir, target string) (err error) {
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("%s already exists", target)
	}
	raw, err := openConn(filepath.Join(dir, FileName), true)
	if err != nil {
		return err
	}
	c := newConn(raw)
	defer func() { err = errors.Join(err, c.close()) }()
	// query_only also forbids VACUUM INTO.
	if err := c.run("PRAGMA query_only = 0"); err != nil {
		return err
	}
	partial := target + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := createPrivate(partial); err != nil {
		return err
	}
	if _, err := c.Exec("VACUUM INTO $1", partial); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := syncFile(partial); err != nil {
		return err
	}
	if err := os.Rename(partial, target); err != nil {
		return err
	}
	return syncFile(filepath.Dir(target))
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
	err = c.Query("PRAGMA integrity_check(1)", nil, func(r store.Row) error { return r.Scan(&verdict) })
	if err != nil || verdict != "ok" {
		return nil, fmt.Errorf("%s is not an intact SQLite database (%s)", path, cmp.Or(verdict, fmt.Sprint(err)))
	}
	err = c.Query("SELECT key_check FROM installation WHERE id = 1", nil, func(r store.Row) error { return r.Scan(&keyCheck) })
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

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
