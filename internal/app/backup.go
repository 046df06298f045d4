package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/adminsocket"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/backup"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// errSharedDatabase is returned by commands that work only on a data directory.
var errSharedDatabase = errors.New("--database-url (STEPMILL_DATABASE_URL) names a shared database, but this command works on a data directory: " +
	"to back up or restore a shared database, use the tools of PostgreSQL, such as pg_dump and pg_restore (see docs/cluster.md, Backup); nothing was changed")

// Backup writes a consistent copy of the data to a new file, also while the
// server runs: the database and the bytes of its files. The master key is not in it.
// It writes to notices if the backup cannot be recorded in the audit log.
func Backup(ctx context.Context, data config.Data, target string, notices io.Writer) error {
	return writeNewFile(target, func(file io.Writer) error { return BackupTo(ctx, data, file, notices) })
}

// BackupTo is like Backup but writes to an io.Writer.
func BackupTo(ctx context.Context, data config.Data, to, notices io.Writer) error {
	at := locate(data)
	if err := at.needDirectory(); err != nil {
		return err
	}
	// Without a server the command has locked the data directory, and a server could not
	// start.
	to = impatientWriter{to, adminsocket.StallLimit()}
	return at.inServerOr(ctx, []string{"backup", "-"}, to, notices, func(readOnly bool) error {
		if readOnly {
			return backUpReadOnly(ctx, data, to, notices)
		}
		noteUnrecorded(notices, "backup", recordBackup(ctx, data))
		snapshot, err := sqlite.OpenSnapshot(data.Dir, false)
		if err != nil {
			return err
		}
		return writeBackup(ctx, to, snapshot, func() (filesPlace, error) {
			return openFilesPlace(ctx, data, func() (filesPlace, error) { return openDirectory(data.Dir) })
		})
	})
}

// recordBackup records in the audit log of the first workspace that a backup is taken. It
// needs no master key, like the backup.
func recordBackup(ctx context.Context, data config.Data) error {
	c, err := openStore(ctx, data, sqlite.Options{Readers: 1}, store.Notify{})
	if err != nil {
		return err
	}
	return errors.Join(c.recordCopy(ctx, backupCreated), c.close())
}

// The actions in the audit log of an operator who copies all data.
const (
	backupCreated = "backup.created"
	exportCreated = "export.created"
)

// recordCopy records in the audit log of the first workspace, if there is one, that the
// data is copied.
func (c *core) recordCopy(ctx context.Context, action string) error {
	first, err := c.store.Workspaces.FirstWorkspace(ctx)
	if err != nil || first == nil {
		return err
	}
	return c.store.Audit.RecordAudit(ctx, copyEntry(*first, action))
}

func copyEntry(first auth.Workspace, action string) audit.Entry {
	actor := auth.Actor{Workspace: first, Type: audit.ActorCLI}
	return actor.AuditEntry(action, "installation", first.ID, nil)
}

// noteUnrecorded writes a notice if a copy, such as a backup, could not be recorded. It is
// made nevertheless: a disk that cannot be written to is a reason for a copy.
func noteUnrecorded(notices io.Writer, copied string, err error) {
	if err != nil {
		fmt.Fprintf(notices, "stepmill: the audit log does not have this %s: %v\n", copied, cliError(err))
	}
}

// maxBackup is how long a backup of a running server may take. Meanwhile the server deletes no
// bytes of files, so one that never ended would keep their space for ever.
const maxBackup = 24 * time.Hour

// WriteBackup writes a consistent copy of the data that the server has open. It writes to
// notices if the backup cannot be recorded in the audit log.
func (a *Admin) WriteBackup(ctx context.Context, to, notices io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, maxBackup)
	defer cancel()
	ctx, progress, stop := withProgress(ctx, adminsocket.StallLimit())
	defer stop()
	// Before the copy is made, so that one that is interrupted is recorded too.
	noteUnrecorded(notices, "backup", a.onDisk(ctx, func(ctx context.Context) error {
		return a.core.store.Audit.RecordAudit(ctx, copyEntry(a.first, backupCreated))
	}))
	release := a.files.KeepBytes()
	defer release()
	defer context.AfterFunc(ctx, release)() // also while nobody reads what is written
	snapshot, err := a.core.db.snapshot(ctx, a.diskReserve, progress.report)
	if err == nil {
		err = writeBackup(ctx, progress.writer(to), snapshot, a.openPlace)
	}
	if stalled := (stalledError{}); errors.As(context.Cause(ctx), &stalled) {
		return stalled
	}
	return err
}

type storedBlob struct {
	id   blob.ID
	size int64 // of the sealed bytes
}

// writeBackup writes the database of a snapshot, which it closes, and then the blobs that
// it refers to. Until it returns, nobody may delete any of them.
func writeBackup(ctx context.Context, to io.Writer, snapshot *sqlite.Snapshot, open func() (filesPlace, error)) (err error) {
	closeSnapshot := sync.OnceValue(snapshot.Close)
	defer func() { err = errors.Join(err, closeSnapshot()) }()
	var blobs []storedBlob
	err = snapshot.EachBlob(func(id string, size int64) error {
		blobs = append(blobs, storedBlob{blob.ID(id), blob.SealedSize(size)})
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	var place filesPlace
	if len(blobs) > 0 {
		found, err := snapshot.Installation()
		if err != nil {
			return err
		}
		if place, err = open(); err == nil {
			err = place.is(found.FilesPlace)
		}
		if err != nil {
			return err
		}
	}
	buffered := bufio.NewWriterSize(to, 1<<16)
	w := backup.NewWriter(buffered, clock.Now())
	err = w.Database(snapshot.Size(), func(to io.Writer) error {
		_, err := snapshot.WriteTo(to)
		return err
	})
	// The copy that a snapshot can be takes up space.
	if err := errors.Join(err, closeSnapshot()); err != nil {
		return err
	}
	for _, b := range blobs {
		if err := copyToBackup(ctx, w, place.blobs, b); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), buffered.Flush())
}

func copyToBackup(ctx context.Context, w *backup.Writer, blobs blob.Store, b storedBlob) error {
	source, err := blobs.Open(ctx, b.id, 0, b.size+1) // a byte more, to notice if there is one
	if err == nil {
		err = errors.Join(w.Blob(b.id, b.size, source), source.Close())
	}
	if err != nil {
		return explainMissingBytes(fmt.Errorf("copy the bytes of a file: blob %s: %w", b.id, err))
	}
	return nil
}

// explainMissingBytes adds what to do about bytes that are missing or damaged.
func explainMissingBytes(err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, backup.ErrSize) {
		return fmt.Errorf("%w; `stepmill files verify` lists the files whose bytes are missing or damaged", err)
	}
	return err
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
	if err := writeFile(partial, write); err != nil {
		return err
	}
	if err := os.Rename(partial, target); err != nil {
		return err
	}
	return syncDir(filepath.Dir(target))
}

// writeFile writes a file that must not exist, private to its owner. If it fails, it
// leaves none.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<16)
	if err = write(buffered); err == nil {
		err = errors.Join(buffered.Flush(), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
