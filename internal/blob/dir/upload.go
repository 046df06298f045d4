package dir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/blob"
)

// upload is a temporary file that becomes a blob.
type upload struct {
	store *Store
	ctx   context.Context
	id    blob.ID
	file  *os.File
	done  bool  // committed or aborted
	err   error // of a Write
}

// Write implements blob.Upload.
func (u *upload) Write(p []byte) (int, error) {
	if err := u.usable(); err != nil {
		return 0, err
	}
	n, err := u.file.Write(p)
	u.err = explain("write a blob", err)
	return n, u.err
}

func (u *upload) usable() error { return blob.Usable(u.ctx, u.done, u.err) }

// Commit implements blob.Upload.
func (u *upload) Commit() error {
	if err := u.usable(); err != nil {
		return err
	}
	if err := u.commit(); err != nil {
		return errors.Join(explain("commit a blob", err), u.Abort())
	}
	return nil
}

func (u *upload) commit() error {
	if err := errors.Join(u.file.Sync(), u.file.Close()); err != nil {
		return err
	}
	shard := filepath.Join(u.store.root, shardOf(u.id))
	switch err := os.Mkdir(shard, 0o700); {
	case err == nil:
		if err := syncDir(u.store.root); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := os.Rename(u.store.uploadPath(u.id), u.store.path(u.id)); err != nil {
		return err
	}
	u.done = true
	return syncDir(shard)
}

// Abort implements blob.Upload.
func (u *upload) Abort() error {
	if u.done {
		return nil
	}
	u.done = true
	_ = u.file.Close() // Commit may have closed it
	if err := os.Remove(u.store.uploadPath(u.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain("abort an upload", err)
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
