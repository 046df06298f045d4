package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/blob/dir"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// isReadOnly reports whether a data directory cannot be written to, such as a snapshot of
// a file system. Commands that only read work on it.
func isReadOnly(dataDir string) bool {
	return !writable(dataDir) || !writable(filepath.Join(dataDir, sqlite.FileName))
}

// readableDatabase returns a directory with the database of a data directory that cannot
// be written to, and a function that releases it. It is the directory itself or, if a
// server that did not stop cleanly left a write-ahead log, a temporary copy that contains
// the changes in the log: SQLite cannot read a log without writing.
func readableDatabase(dataDir string, notices io.Writer) (at string, release func() error, err error) {
	if !sqlite.HasLog(dataDir) {
		return dataDir, func() error { return nil }, nil
	}
	if at, err = os.MkdirTemp("", "stepmill-"); err != nil {
		return "", nil, err
	}
	fmt.Fprintf(notices, "stepmill: %s is read-only, and a server did not stop cleanly there: using a temporary copy of the database in %s\n", dataDir, at)
	if err := sqlite.Copy(filepath.Join(dataDir, sqlite.FileName), filepath.Join(at, sqlite.FileName)); err != nil {
		return "", nil, errors.Join(fmt.Errorf("copy the database to %s (TMPDIR names another place): %w", at, err), os.RemoveAll(at))
	}
	return at, func() error { return os.RemoveAll(at) }, nil
}

// withReadOnlyAdmin calls do with the data of a directory that cannot be written to.
func withReadOnlyAdmin(ctx context.Context, data config.Data, notices io.Writer, do func(*Admin) error) (err error) {
	at, release, err := readableDatabase(data.Dir, notices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	database := data
	database.Dir, database.MasterKeyFile = at, data.KeyFile()
	c, err := openCore(ctx, database, sqlite.Options{ReadOnly: true}, store.Notify{})
	if err != nil {
		return err
	}
	admin, err := newAdmin(ctx, c, DataLocation(data))
	if err != nil {
		return errors.Join(err, c.close())
	}
	admin.openPlace = func() (filesPlace, error) { return openReadOnlyFilesPlace(ctx, data) }
	return errors.Join(do(admin), admin.Close())
}

// backUpReadOnly writes a backup of a directory that cannot be written to.
func backUpReadOnly(ctx context.Context, data config.Data, to, notices io.Writer) (err error) {
	noteUnrecorded(notices, "backup", fmt.Errorf("%s is read-only", data.Dir))
	at, release, err := readableDatabase(data.Dir, notices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	snapshot, err := sqlite.OpenSnapshot(at, true)
	if err != nil {
		return err
	}
	return writeBackup(ctx, to, snapshot, func() (filesPlace, error) { return openReadOnlyFilesPlace(ctx, data) })
}

// openReadOnlyFilesPlace is openFilesPlace for a directory that cannot be written to.
func openReadOnlyFilesPlace(ctx context.Context, data config.Data) (filesPlace, error) {
	return openFilesPlace(ctx, data, func() (filesPlace, error) {
		return filesPlace{directoryPlace, dir.OpenReadOnly(filepath.Join(data.Dir, filesFolder)), dirCapacity}, nil
	})
}
