package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/failpoint"
)

const (
	// copyPrefix begins the names of temporary copies of the database, in its directory.
	copyPrefix = FileName + ".copy-"
	// copyPages is how many pages are copied between two commits. It is small because writes wait
	// meanwhile.
	copyPages = 128
)

// OpenSnapshot opens a snapshot of the database while it is in use. The snapshot is a
// temporary copy beside the database, so it can be read for as long as it takes without
// keeping the log from being truncated. The copy must leave spare bytes of the disk free.
// OpenSnapshot calls progress each time it has copied some pages.
func (db *DB) OpenSnapshot(ctx context.Context, spare int64, progress func()) (*Snapshot, error) {
	path, err := db.makeCopy(ctx, spare, progress)
	if err != nil {
		return nil, err
	}
	s, err := openSnapshot(func() (*sqlite.Conn, error) { return openImmutable(path) })
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	s.copy = path
	return s, nil
}

func (db *DB) makeCopy(ctx context.Context, spare int64, progress func()) (path string, err error) {
	dir := filepath.Dir(db.path)
	if files := db.Files(); files.Free >= 0 && files.Free-files.Bytes-files.LogBytes < spare {
		return "", noSpaceForCopy(dir, files.Bytes+files.LogBytes, spare)
	}
	file, err := os.CreateTemp(dir, copyPrefix) // private to its owner
	if err == nil {
		path, err = file.Name(), file.Close()
	}
	if err != nil {
		return "", fmt.Errorf("copy the database for the backup: %w", err)
	}
	c := &copier{db: db, path: path}
	for more := true; more && err == nil; progress() {
		failpoint.Hit(failpoint.MidCopy, "")
		more, err = c.step(ctx)
		if free, _ := db.Space(); isFull(err) || err == nil && free >= 0 && free < spare {
			err = noSpaceForCopy(dir, db.Files().Bytes, spare)
		}
	}
	if closeErr := c.close(ctx, err != nil); err != nil || closeErr != nil {
		return "", fmt.Errorf("copy the database for the backup: %w", errors.Join(err, closeErr))
	}
	return path, nil
}

func noSpaceForCopy(dir string, size, spare int64) error {
	const mib = 1 << 20
	return fmt.Errorf("a backup of a running server needs space for a copy of the database (%d MiB) in %s, and %d MiB must stay free: free some space, or stop the server and repeat the command, which then needs no copy",
		size/mib+1, dir, spare/mib)
}

// copier copies the database page by page. Its fields belong to the writer's goroutine:
// pages that change after they were copied are copied again as part of the write, because
// the connection that reads them is the one that writes.
type copier struct {
	db     *DB
	path   string
	target *sqlite.Conn
	backup *sqlite.Backup
}

func (c *copier) step(ctx context.Context) (more bool, err error) {
	return onWriter(ctx, c.db.writer, func() (bool, error) {
		if c.backup == nil {
			if err := c.open(); err != nil {
				return false, err
			}
		}
		return c.backup.Step(copyPages)
	})
}

func (c *copier) open() (err error) {
	if c.target, err = sqlite.OpenConn(c.path, sqlite.OpenReadWrite); err != nil {
		return err
	}
	target := newConn(c.target)
	defer target.finalize()
	// The copy is of no use after a crash.
	if err := errors.Join(target.run("PRAGMA journal_mode = OFF"), target.run("PRAGMA synchronous = OFF")); err != nil {
		return err
	}
	c.backup, err = sqlite.NewBackup(c.target, "", c.db.writer.conn.raw, "")
	return err
}

// closePatience is how long the end of a copy waits for a disk that does not respond: the command
// that made the backup would hang otherwise.
const closePatience = 5 * time.Second

// close ends the copying, and removes the copy if it is not needed.
func (c *copier) close(ctx context.Context, remove bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	_, err := onWriter(ctx, c.db.writer, func() (_ bool, err error) {
		if c.backup != nil {
			err = c.backup.Close()
		}
		if c.target != nil {
			err = errors.Join(err, c.target.Close())
		}
		if remove {
			err = errors.Join(err, os.Remove(c.path))
		}
		return false, err
	})
	return err
}

// removeCopies removes the copies that a process left behind when it was killed.
func removeCopies(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), copyPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
