// Package dir stores blobs as files in a directory, for an installation with one
// process. A blob is written to a temporary file and flushed, then renamed and
// flushed again, so that a crash leaves all of a blob or only a temporary file.
//
//	<root>/uploads/<id>        an upload
//	<root>/<2 letters>/<id>    a blob, in a folder named after the start of its id
//
// Directories have the mode 0700 and files 0600. Neither an upload nor a reader
// buffers anything.
package dir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/txn"
)

const (
	uploads = "uploads"
	// shardLength is how many characters of an id name its folder, which makes
	// 1,024 folders.
	shardLength = 2
)

// Store is a directory of blobs. It implements blob.Store.
type Store struct{ root string }

// Open opens a directory, which it creates if it does not exist, and removes the
// uploads that a previous process left behind. The caller makes sure that no other
// process uses the directory.
func Open(root string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(root, uploads), 0o700); err != nil {
		return nil, explain("create the directory of blobs", err)
	}
	// A new directory that a crash removes would take its blobs along.
	if err := errors.Join(syncDir(root), syncDir(filepath.Dir(root))); err != nil {
		return nil, explain("create the directory of blobs", err)
	}
	s := &Store{root: root}
	if _, err := s.removeUploads(context.Background(), nil); err != nil {
		return nil, explain("remove the leftovers of uploads", err)
	}
	return s, nil
}

// OpenReadOnly opens a directory that cannot be written to.
func OpenReadOnly(root string) *Store { return &Store{root: root} }

func shardOf(id blob.ID) string { return string(id[:shardLength]) }

func (s *Store) path(id blob.ID) string { return filepath.Join(s.root, shardOf(id), string(id)) }

func (s *Store) uploadPath(id blob.ID) string { return filepath.Join(s.root, uploads, string(id)) }

// Begin implements blob.Store.
func (s *Store) Begin(ctx context.Context, id blob.ID) (blob.Upload, error) {
	if err := blob.Ready(ctx, id); err != nil {
		return nil, err
	}
	// Whoever creates the temporary file has the id until the file is renamed or
	// removed. So the check for the blob comes second.
	file, err := os.OpenFile(s.uploadPath(id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, blob.ErrExists
	}
	if err != nil {
		return nil, explain("begin an upload", err)
	}
	u := &upload{store: s, ctx: ctx, id: id, file: file}
	switch _, err := os.Lstat(s.path(id)); {
	case err == nil:
		return nil, errors.Join(blob.ErrExists, u.Abort())
	case !errors.Is(err, fs.ErrNotExist):
		return nil, errors.Join(explain("begin an upload", err), u.Abort())
	}
	return u, nil
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, id blob.ID, offset, length int64) (io.ReadCloser, error) {
	if err := blob.Ready(ctx, id); err != nil {
		return nil, err
	}
	file, err := os.Open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, explain("open a blob", err)
	}
	return &reader{ctx: ctx, file: file, section: io.NewSectionReader(file, offset, length)}, nil
}

// reader reads a part of a file until its context ends.
type reader struct {
	ctx     context.Context
	file    *os.File
	section *io.SectionReader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.section.Read(p)
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.file.Close() }

// Delete implements blob.Store. The deletion need not be durable: a blob that
// returns with a crash is an orphan, and the caller finds it with List.
func (s *Store) Delete(ctx context.Context, id blob.ID) error {
	if err := blob.Ready(ctx, id); err != nil {
		return err
	}
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain("delete a blob", err)
	}
	return nil
}

// Sweep implements blob.Store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (int, error) {
	txn.MustBeOutside(ctx)
	n, err := s.removeUploads(ctx, &before)
	return n, explain("remove the leftovers of uploads", err)
}

// removeUploads removes all uploads, or those last written to before a time.
func (s *Store) removeUploads(ctx context.Context, before *time.Time) (removed int, err error) {
	entries, err := os.ReadDir(filepath.Join(s.root, uploads))
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // committed or aborted since
		}
		if err != nil {
			return removed, err
		}
		if before != nil && !info.ModTime().Before(*before) {
			continue
		}
		switch err := os.Remove(filepath.Join(s.root, uploads, entry.Name())); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, err
		}
	}
	return removed, ctx.Err()
}
