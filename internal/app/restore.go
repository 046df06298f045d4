package app

import (
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

	"github.com/stepmill/stepmill/internal/backup"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/dir"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/vault"
)

// Restore replaces the data with a backup, or with a database that an earlier restore
// has replaced. It fails while a server uses the directory, and when the master key
// there does not match. It keeps the previous data and returns the path of its
// database. After an interruption it can be repeated.
func Restore(ctx context.Context, data config.Data, source string) (previous string, err error) {
	if err := locate(data).needDirectory(); err != nil {
		return "", err
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
	r := newRestore(data)
	if err := r.finishMove(); err != nil {
		return "", err
	}
	if err := r.prepare(ctx, source); err != nil {
		return "", errors.Join(fmt.Errorf("%w; nothing was changed", err), r.discard())
	}
	return r.swap()
}

// restore is a restore into a data directory. It prepares the new data beside the current
// one and then exchanges them by renaming: the database goes first and comes last,
// because without one no server starts.
type restore struct {
	data     config.Data
	database string
	files    string
}

func newRestore(data config.Data) *restore {
	return &restore{data: data, database: filepath.Join(data.Dir, sqlite.FileName), files: filepath.Join(data.Dir, filesFolder)}
}

// discard removes what was prepared.
func (r *restore) discard() error {
	return errors.Join(os.RemoveAll(r.database+partialSuffix), os.RemoveAll(r.files+partialSuffix))
}

func (r *restore) prepare(ctx context.Context, source string) error {
	if err := r.discard(); err != nil { // of an interrupted restore
		return err
	}
	packed, err := isPacked(source)
	if err != nil {
		return err
	}
	if packed {
		return r.unpack(ctx, source)
	}
	return r.copy(ctx, source)
}

// isPacked reports whether a file is a backup with files, as opposed to a database.
func isPacked(source string) (_ bool, err error) {
	in, err := os.Open(source)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	start := make([]byte, backup.DetectSize)
	switch n, err := io.ReadFull(in, start); {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return backup.Detect(start[:n]), nil
	default:
		return false, err
	}
}

// copy copies a database: a backup of an earlier version, which has no files, or one that
// a restore has replaced, whose files are beside it.
func (r *restore) copy(ctx context.Context, source string) error {
	found, err := sqlite.Inspect(source)
	if err != nil {
		return err
	}
	if err := checkBackupKey(r.data, found.KeyCheck); err != nil {
		return err
	}
	if err := sqlite.Copy(source, r.database+partialSuffix); err != nil {
		return err
	}
	folder, name := filepath.Split(source)
	suffix, isDatabase := strings.CutPrefix(name, sqlite.FileName)
	files := filepath.Join(folder, filesFolder+suffix)
	if _, err := os.Stat(files); isDatabase && err == nil {
		return dir.Clone(ctx, files, r.files+partialSuffix)
	}
	if found.Files && found.FilesPlace == directoryPlace {
		return fmt.Errorf("%s is a database without its files: they were in the folder %s beside it", source, filesFolder)
	}
	return nil
}

// unpack unpacks a backup. The whole of it is checked before anything is written.
func (r *restore) unpack(ctx context.Context, source string) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := backup.Verify(in); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	entries := backup.NewReader(in)
	if _, err := entries.Next(); err != nil {
		return err
	}
	partial := r.database + partialSuffix
	if err := writeFile(partial, func(to io.Writer) error { _, err := io.Copy(to, entries); return err }); err != nil {
		return fmt.Errorf("write the database: %w", err)
	}
	found, err := sqlite.Inspect(partial)
	if err != nil {
		return err
	}
	if err := checkBackupKey(r.data, found.KeyCheck); err != nil {
		return err
	}
	place, err := r.openPlace(ctx, found.ID)
	if err != nil {
		return err
	}
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return sqlite.SetFilesPlace(partial, place.name)
		}
		if err == nil {
			err = storeBlob(ctx, place.blobs, entry.Blob, entries)
		}
		if err != nil {
			return fmt.Errorf("write the bytes of a file: %w", err)
		}
	}
}

// openPlace returns the place for the bytes of files: a directory beside the current one,
// or the bucket that the settings name.
func (r *restore) openPlace(ctx context.Context, installation string) (place filesPlace, err error) {
	place, err = openFilesPlace(ctx, r.data, func() (filesPlace, error) {
		blobs, err := dir.Open(r.files + partialSuffix)
		return filesPlace{name: directoryPlace, blobs: blobs}, err
	})
	if err == nil && place.name != directoryPlace {
		err = file.MarkInstallation(ctx, place.blobs, installation)
	}
	return place, err
}

func storeBlob(ctx context.Context, blobs blob.Store, id blob.ID, from io.Reader) error {
	u, err := blobs.Begin(ctx, id)
	if err != nil {
		return err
	}
	if _, err = io.Copy(u, from); err == nil {
		err = u.Commit()
	}
	return errors.Join(err, u.Abort())
}

func (r *restore) swap() (previous string, err error) {
	if previous, err = r.moveAside(); err != nil {
		return "", err
	}
	if err := os.Rename(r.files+partialSuffix, r.files); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := syncDir(r.data.Dir); err != nil {
		return "", err
	}
	if err := os.Rename(r.database+partialSuffix, r.database); err != nil {
		return "", err
	}
	return previous, syncDir(r.data.Dir)
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
	matches, err := masterKeyMatches(data, check)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !matches {
		return fmt.Errorf("the master key %s does not match this backup, which was encrypted with another one: use that one with --master-key-file or STEPMILL_MASTER_KEY", data.KeyLocation())
	}
	return nil
}

// masterKeyMatches reports whether data with a check was encrypted with the master key.
// If there is no key, the error is fs.ErrNotExist.
func masterKeyMatches(data config.Data, check []byte) (bool, error) {
	key, err := readMasterKey(data)
	if err != nil {
		return false, err
	}
	v, err := vault.New(key, nil)
	if err != nil {
		return false, err
	}
	return bytes.Equal(v.Check(), check), nil
}

// readMasterKey reads the master key and never creates one.
func readMasterKey(data config.Data) ([]byte, error) {
	if data.MasterKey != "" {
		return vault.ParseMasterKey(data.MasterKey)
	}
	return vault.ReadMasterKey(data.KeyFile())
}

// moveAside renames the database with its WAL files, and then its files, so that nothing
// is overwritten.
func (r *restore) moveAside() (previous string, err error) {
	if _, err := os.Stat(r.database); errors.Is(err, fs.ErrNotExist) {
		return lastPrevious(r.database), nil
	}
	previous = newPrevious(r.database)
	if err := os.Rename(r.database, previous); err != nil {
		return "", err
	}
	return previous, r.moveRest(previous)
}

// finishMove moves what belongs to a database that is gone to where an interrupted
// restore has moved the database. A log that is left in place would be applied to the
// restored one.
func (r *restore) finishMove() error {
	if _, err := os.Stat(r.database); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.moveRest(cmp.Or(lastPrevious(r.database), newPrevious(r.database)))
}

func newPrevious(target string) string {
	return target + previousSuffix + clock.Now().Format("20060102-150405.000000")
}

// moveRest moves the WAL files and the folder of files of a database that was moved.
func (r *restore) moveRest(previous string) error {
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(r.database+suffix, previous+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	files := r.files + strings.TrimPrefix(previous, r.database)
	if _, err := os.Stat(files); err == nil { // it is complete, and these are others
		files = newPrevious(r.files)
	}
	if err := os.Rename(r.files, files); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(r.data.Dir)
}
