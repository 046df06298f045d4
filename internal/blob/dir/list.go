package dir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
)

// List implements blob.Store. It reads one folder at a time, so it holds the names
// of about a thousandth of all blobs in memory.
func (s *Store) List(ctx context.Context, page paging.Request) (paging.Page[blob.Info], error) {
	txn.MustBeOutside(ctx)
	limit := blob.PageLimit(page)
	found, err := s.list(ctx, page.After, limit+1)
	if err != nil {
		return paging.Page[blob.Info]{}, explain("list the blobs", err)
	}
	return paging.Cut(found, limit, func(i blob.Info) string { return string(i.ID) }), nil
}

func (s *Store) list(ctx context.Context, after string, limit int) (found []blob.Info, err error) {
	shards, err := os.ReadDir(s.root) // sorted by name
	if err != nil {
		return nil, err
	}
	for _, shard := range shards {
		name := shard.Name()
		if len(name) != shardLength || name < after[:min(len(after), shardLength)] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if found, err = s.listShard(found, name, after, limit); err != nil || len(found) == limit {
			return found, err
		}
	}
	return found, ctx.Err()
}

// listShard appends the blobs of a folder. Other files are ignored.
func (s *Store) listShard(found []blob.Info, shard, after string, limit int) ([]blob.Info, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, shard))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		id := blob.ID(entry.Name())
		if id.Check() != nil || string(id) <= after || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		found = append(found, blob.Info{ID: id, Size: info.Size(), Created: info.ModTime().UTC()})
		if len(found) == limit {
			break
		}
	}
	return found, nil
}
