package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
func Backup(ctx context.Context, data config.Data, target string) error {
	return writeNewFile(target, func(file io.Writer) error { return BackupTo(ctx, data, file) })
}

// BackupTo is like Backup but writes to an io.Writer.
func BackupTo(ctx context.Context, data config.Data, to io.Writer) error {
	if data.Shared() {
		return errSharedDatabase
	}
	return inServerOr(ctx, data, []string{"backup", "-"}, to, func() error { return sqlite.Backup(data.Dir, to) })
}

// WriteBackup writes a consistent copy of the data that is open.
func (a *Admin) WriteBackup(to io.Writer) error {
	if a.core.lite == nil {
		return errSharedDatabase
	}
	return a.core.lite.Backup(to)
}

// writeNewFile writes a file that must not exist. It appears, private to its owner,
// when it is complete and on disk.
func writeNewFile(target string, write func(io.Writer) error) error {
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("%s already exists", target)
	}
	partial := target + partialSuffix
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a crash, with whatever mode
		return err
	}
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<16)
	if err = write(buffered); err == nil {
		err = errors.Join(buffered.Flush(), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, target); err != nil {
		return err
	}
	return syncDir(filepath.Dir(target))
}

// Restore replaces the data with a backup. It fails while a server uses the
// directory, and when the master key there does not match. It keeps the previous
// data and returns its path. After an interruption it can be repeated.
func Restore(ctx context.Context, data config.Data, source string) (previous string, err error) {
	if data.Shared() {
		return "", errSharedDatabase
	}
	if _, err := os.Stat(source); err != nil {
		return "", err
	}
	if err := os.MkdirAll(data.Dir, 0o700); err != nil {
		return "", fmt.Errorf("create the data directory: %w", err)
	}
	lock, err := lockDir(ctx, data.Dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	target := filepath.Join(data.Dir, sqlite.FileName)
	if err := finishMove(target); err != nil {
		return "", err
	}
	check, err := sqlite.Inspect(source)
	if err != nil {
		return "", err
	}
	if err := checkBackupKey(data, check); err != nil {
		return "", err
	}
	partial := target + partialSuffix
	if err := sqlite.Copy(source, partial); err != nil {
		return "", err
	}
	if previous, err = moveAside(target); err != nil {
		return "", err
	}
	if err := os.Rename(partial, target); err != nil {
		return "", err
	}
	return previous, syncDir(data.Dir)
}

// The suffixes of the files that a restore creates: the data that it replaces,
// with the time appended, and the data that it has not put in place yet.
const (
	previousSuffix = ".before-restore-"
	partialSuffix  = ".partial"
)

// checkRestoreComplete rejects a directory without a database in which a restore
// was interrupted: a start would create a new installation beside the old data.
func checkRestoreComplete(dir string) error {
	target := filepath.Join(dir, sqlite.FileName)
	if previous := lastPrevious(target); previous != "" {
		return fmt.Errorf("a restore into %[1]s was interrupted: there is no %[2]s, and the previous data is in %[3]s. "+
			"Restore the backup again with `stepmill restore FILE --data-dir %[1]s`, or go back to the previous data with `stepmill restore %[3]s --data-dir %[1]s`",
			dir, sqlite.FileName, previous)
	}
	if _, err := os.Stat(target + partialSuffix); err == nil {
		return fmt.Errorf("a restore into %[1]s was interrupted: there is no %[2]s. Restore the backup again with `stepmill restore FILE --data-dir %[1]s`, "+
			"or delete %[3]s to start a new installation", dir, sqlite.FileName, target+partialSuffix)
	}
	return nil
}

// lastPrevious returns the path of the data that the last restore replaced, or
// "" if there is none.
func lastPrevious(target string) string {
	last := ""
	entries, _ := os.ReadDir(filepath.Dir(target)) // an unreadable directory fails elsewhere
	for _, entry := range entries {                // sorted, and so by time
		name := entry.Name()
		if strings.HasPrefix(name, filepath.Base(target)+previousSuffix) && !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			last = filepath.Join(filepath.Dir(target), name)
		}
	}
	return last
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
		return lastPrevious(target), nil
	}
	previous = newPrevious(target)
	if err := os.Rename(target, previous); err != nil {
		return "", err
	}
	return previous, moveLog(target, previous)
}

// finishMove moves a log whose database is gone to where an interrupted restore
// has moved the database. Left in place, it would be applied to the restored one.
func finishMove(target string) error {
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return moveLog(target, cmp.Or(lastPrevious(target), newPrevious(target)))
}

func newPrevious(target string) string {
	return target + previousSuffix + clock.Now().Format("20060102-150405.000000")
}

func moveLog(target, previous string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(target+suffix, previous+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
