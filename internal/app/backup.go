package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// errSharedDatabase is returned by commands that work only on a data directory.
var errSharedDatabase = errors.New("--database-url (STEPMILL_DATABASE_URL) names a shared database, but this command works on a data directory: " +
	"to back up or restore a shared database, use the tools of PostgreSQL, such as pg_dump and pg_restore (see docs/cluster.md, Backup); nothing was changed")

// Backup writes a consistent copy of the data to a new file, also while the
// server runs. The master key is not in it.
func Backup(_ context.Context, data config.Data, target string) error {
	if data.Shared() {
		return errSharedDatabase
	}
	if _, err := os.Stat(filepath.Join(data.Dir, sqlite.FileName)); errors.Is(err, fs.ErrNotExist) {
		return explainMissing(sqlite.ErrMissing, data.Dir)
	}
	return sqlite.Backup(data.Dir, target)
}

// Restore replaces the data with a backup. It fails while a server uses the
// directory, and when the master key there does not match. It keeps the previous
// data and returns its path.
func Restore(_ context.Context, data config.Data, source string) (previous string, err error) {
	if data.Shared() {
		return "", errSharedDatabase
	}
	check, err := sqlite.Inspect(source)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(data.Dir, 0o700); err != nil {
		return "", fmt.Errorf("create the data directory: %w", err)
	}
	lock, err := lockDir(data.Dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := checkBackupKey(data, check); err != nil {
		return "", err
	}
	target := filepath.Join(data.Dir, sqlite.FileName)
	partial := target + ".partial"
	if err := copyFile(source, partial); err != nil {
		return "", err
	}
	if previous, err = moveAside(target); err != nil {
		return "", err
	}
	return previous, os.Rename(partial, target)
}

// checkBackupKey rejects a backup that the current master key cannot decrypt. A
// missing key is not an error: it can be added before the server starts.
func checkBackupKey(data config.Data, check []byte) error {
	key, err := readMasterKey(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v, err := vault.New(key, nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(v.Check(), check) {
		return fmt.Errorf("the master key %s does not match this backup, which was encrypted with another one: use that one with --master-key-file or STEPMILL_MASTER_KEY", data.KeyLocation())
	}
	return nil
}

// readMasterKey reads the master key and never creates one.
func readMasterKey(data config.Data) ([]byte, error) {
	if data.MasterKey != "" {
		return vault.ParseMasterKey(data.MasterKey)
	}
	return vault.ReadMasterKey(data.KeyFile())
}

// moveAside renames the database and its WAL files, so that nothing is
// overwritten.
func moveAside(target string) (previous string, err error) {
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	previous = target + ".before-restore-" + clock.Now().Format("20060102-150405.000000")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(target+suffix, previous+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return previous, nil
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
