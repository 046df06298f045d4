package dir

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/paging"
)

// Clone creates a directory with the blobs of another one. Where the file system allows
// it, both have the same files under different names, which is safe because blobs never
// change. The caller makes sure that no process uses the directories.
func Clone(ctx context.Context, source, target string) error {
	to, err := Open(target)
	if err != nil {
		return err
	}
	from, page := &Store{root: source}, paging.Request{Limit: blob.MaxPage}
	for {
		found, err := from.List(ctx, page)
		if err != nil {
			return err
		}
		shard := ""
		for _, info := range found.Items {
			if shard != "" && shard != shardOf(info.ID) {
				err = syncDir(filepath.Join(target, shard))
			}
			shard = shardOf(info.ID)
			if err := errors.Join(err, to.link(ctx, from, info)); err != nil {
				return explain("copy a blob", err)
			}
		}
		if shard != "" {
			if err := syncDir(filepath.Join(target, shard)); err != nil {
				return explain("copy a blob", err)
			}
		}
		if found.Next == "" {
			return explain("copy the blobs", syncDir(target))
		}
		page.After = found.Next
	}
}

// link adds a blob of another directory, as a copy if a link is not possible.
func (s *Store) link(ctx context.Context, from *Store, info blob.Info) error {
	if err := os.MkdirAll(filepath.Join(s.root, shardOf(info.ID)), 0o700); err != nil {
		return err
	}
	if os.Link(from.path(info.ID), s.path(info.ID)) == nil {
		return nil
	}
	source, err := from.Open(ctx, info.ID, 0, info.Size)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	u, err := s.Begin(ctx, info.ID)
	if err != nil {
		return err
	}
	if _, err = io.Copy(u, source); err == nil {
		err = u.Commit()
	}
	return errors.Join(err, u.Abort())
}
