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

// errNotHere says that the data is somewhere that these commands do not look at.
var errNotHere = errors.New("--database-url (STEPMILL_DATABASE_URL) names a shared database, and this command is for a data directory: " +
	"back up a shared database, and restore it, with the tools of PostgreSQL, such as pg_dump and pg_restore (see docs/cluster.md, Backup); nothing was changed")

// Backup writes a consistent copy of the data to a new file, also while the
// server runs. The master key is not in it.
func Backup(_ context.Context, data config.Data, target string) error {
	if data.Shared() {
		return errNotHere
	}
	if _, err := os.Stat(filepath.Join(data.Dir, sqlite.FileName)); errors.Is(err, fs.ErrNotExist) {
		return explainMissing(sqlite.ErrMissing, data.Dir)
	}
	return sqlite.Backup(data.Dir, target)
}

// Restore puts a backup in the place of the data. It refuses while a server
// uses the directory, and when the master key there does not fit. What was there
// is kept beside it; its path is returned.
func Restore(_ context.Context, data config.Data, source string) (kept string, err error) {
	if data.Shared() {
		return "", errNotHere
	}
	check, err := sqlite.Inspect(source)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(data.Dir, 0o700); err != nil {
		return "", fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := lockDir(data.Dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := fitsMasterKey(data, check); err != nil {
		return "", err
	}
	target := filepath.Join(data.Dir, sqlite.FileName)
	partial := target + ".partial"
	if err := copyFile(source, partial); err != nil {
		return "", err
	}
	if kept, err = setAside(target); err != nil {
		return "", err
	}
	return kept, os.Rename(partial, target)
}

// fitsMasterKey refuses a backup that the master key at hand cannot open. A
// directory without a key is fine: it has to be put there before the start.
func fitsMasterKey(data config.Data, check []byte) error {
	key, err := givenKey(data)
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
		name := data.KeyFile()
		if data.MasterKey != "" {
			name = "that was given"
		}
		return fmt.Errorf("the master key %s does not fit this backup: it was sealed with another one", name)
	}
	return nil
}

// givenKey reads the master key and never makes one.
func givenKey(data config.Data) ([]byte, error) {
	if data.MasterKey != "" {
		return vault.ParseMasterKey(data.MasterKey)
	}
	return vault.ReadMasterKey(data.KeyFile())
}

// setAside renames the database and what belongs to it, so that nothing is ever
// overwritten.
func setAside(target string) (kept string, err error) {
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	kept = target + ".before-restore-" + clock.Now().Format("20060102-150405.000000")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(target+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return kept, nil
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
