package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
)

const (
	// reserveName is a file in the data directory that only takes up space. SQLite
	// cannot open a database without creating its log and the index of it, so a
	// server could not even serve reads after a start on a full disk. It then
	// deletes this file.
	reserveName = "reserve"
	// reserveBytes is several times what an open database without writes needs.
	reserveBytes = 256 << 10
)

// openWithReserve calls open, and once more without the reserve if the disk is
// full. It first frees the space that the last process did not need any more.
func openWithReserve(ctx context.Context, dir string, open func(context.Context) (*DB, error)) (*DB, error) {
	if err := removeCopies(dir); err != nil {
		return nil, err
	}
	db, err := open(ctx)
	if isFull(err) && os.Remove(filepath.Join(dir, reserveName)) == nil {
		db, err = open(ctx)
	}
	if isFull(err) {
		return nil, fmt.Errorf("the disk of the data directory %s is full: free at least 16 MiB, then start again: %w", dir, err)
	}
	if err == nil {
		keepReserve(dir)
	}
	return db, err
}

func keepReserve(dir string) {
	path := filepath.Join(dir, reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() == reserveBytes {
		return
	}
	content := make([]byte, reserveBytes) // random, because a file system may compress zeros
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		_ = os.Remove(path)
	}
}

// Full reports whether a write has failed for lack of space since the last successful
// Probe.
func (db *DB) Full() bool { return db.writer.full.Load() }

// Probe writes a page, to find out whether there is space for it.
func (db *DB) Probe(ctx context.Context) error {
	err := db.Write(ctx, func(c database.Conn) error { return c.Do("UPDATE installation SET id = id") })
	if err == nil {
		db.writer.full.Store(false)
	}
	return err
}

// isFull reports whether an error means that there is no space left. SQLite has a
// code of its own for the index of the log.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || resultCode(err) == sqlite.ResultFull || extendedCode(err) == sqlite.ResultIOErrSHMSize
}
