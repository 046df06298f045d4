// Package postgres stores blobs as rows of PostgreSQL, for installations with
// several nodes and no bucket. It uses the tables blobs and blob_chunks, which the
// migrations of internal/store/postgres create: a blob is uploading, stored or deleted,
// and its size is 0 until it is stored.
//
// Times are microseconds since 1970 in UTC. Chunks have 256 KiB and are not
// compressed, because sealed bytes do not shrink. Each is written and read by a
// statement of its own, so that no transaction is open between two of them. An
// upload and a reader hold one chunk in memory, and the connection another one
// while it is on its way.
//
// Every byte is also written to the database's log and to its replicas. That is
// why the size of a blob is limited, to MaxSize.
package postgres

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/txn"
)

const (
	// MaxPlainSize is the maximum size of a blob before it is sealed. It is lower than in a bucket
	// because every byte also goes through the write-ahead log and to replicas.
	MaxPlainSize = 1 << 30
	// MaxSize leaves room for the header and the tags of a blob of that size.
	MaxSize = MaxPlainSize + 1<<20

	chunkSize = 256 << 10
	// deleteBatch is how many chunks a statement deletes.
	deleteBatch = 64
	// sweepBatch is how many uploads a statement marks.
	sweepBatch = 100
	// timeout bounds a statement, including the wait for a connection.
	timeout = 30 * time.Second
)

// Store is a database of blobs. It implements blob.Store.
type Store struct{ pool *pgxpool.Pool }

// New returns a store that uses the connections of a pool.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// exec runs a statement and returns how many rows it affected.
func (s *Store) exec(ctx context.Context, text string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

// queryRow reads a row. It reports false if there is none.
func (s *Store) queryRow(ctx context.Context, text string, args []any, into ...any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.pool.QueryRow(ctx, text, args...).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Begin implements blob.Store.
func (s *Store) Begin(ctx context.Context, id blob.ID) (blob.Upload, error) {
	if err := blob.Ready(ctx, id); err != nil {
		return nil, err
	}
	n, err := s.exec(ctx, `INSERT INTO blobs (id, state, size, created_at) VALUES ($1, 'uploading', 0, $2) ON CONFLICT DO NOTHING`,
		id, clock.Now().UnixMicro())
	if err != nil {
		return nil, explain("begin an upload", err)
	}
	if n == 0 {
		return nil, blob.ErrExists
	}
	return &upload{store: s, ctx: ctx, id: id}, nil
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, id blob.ID, offset, length int64) (io.ReadCloser, error) {
	if err := blob.Ready(ctx, id); err != nil {
		return nil, err
	}
	var size int64
	found, err := s.queryRow(ctx, `SELECT size FROM blobs WHERE id = $1 AND state = 'stored'`, []any{id}, &size)
	if err != nil {
		return nil, explain("open a blob", err)
	}
	if !found {
		return nil, blob.ErrNotFound
	}
	return &reader{store: s, ctx: ctx, id: id, offset: offset, rest: min(length, max(0, size-offset))}, nil
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, id blob.ID) error {
	if err := blob.Ready(ctx, id); err != nil {
		return err
	}
	return explain("delete a blob", s.deleteFrom(ctx, id, "stored"))
}

// deleteFrom deletes a blob that is in a state, or whose deletion was cut off.
func (s *Store) deleteFrom(ctx context.Context, id blob.ID, state string) error {
	n, err := s.exec(ctx, `UPDATE blobs SET state = 'deleted' WHERE id = $1 AND state IN ($2, 'deleted')`, id, state)
	if err != nil || n == 0 {
		return err
	}
	return s.remove(ctx, id)
}

// remove removes the rows of a blob that is marked as deleted: the chunks in
// batches, so that no transaction takes long.
func (s *Store) remove(ctx context.Context, id blob.ID) error {
	for n := int64(deleteBatch); n == deleteBatch; {
		var err error
		n, err = s.exec(ctx, `DELETE FROM blob_chunks WHERE blob_id = $1 AND number IN
			(SELECT number FROM blob_chunks WHERE blob_id = $1 ORDER BY number LIMIT $2)`, id, deleteBatch)
		if err != nil {
			return err
		}
	}
	// A chunk that was written since goes with the row.
	_, err := s.exec(ctx, `DELETE FROM blobs WHERE id = $1 AND state = 'deleted'`, id)
	return err
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, page paging.Request) (paging.Page[blob.Info], error) {
	txn.MustBeOutside(ctx)
	limit := blob.PageLimit(page)
	found, err := query(ctx, s.pool, scanInfo,
		`SELECT id, size, created_at FROM blobs WHERE id > $1 AND state = 'stored' ORDER BY id LIMIT $2`, page.After, limit+1)
	if err != nil {
		return paging.Page[blob.Info]{}, explain("list the blobs", err)
	}
	return paging.Cut(found, limit, func(i blob.Info) string { return string(i.ID) }), nil
}

func scanInfo(row pgx.CollectableRow) (info blob.Info, err error) {
	var created int64
	err = row.Scan(&info.ID, &info.Size, &created)
	info.Created = time.UnixMicro(created).UTC()
	return info, err
}

// Sweep implements blob.Store. It also completes deletions that were cut off.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	txn.MustBeOutside(ctx)
	for {
		// The mark comes first, so that what loses chunks can no longer be committed.
		ids, err := query(ctx, s.pool, pgx.RowTo[blob.ID], `UPDATE blobs SET state = 'deleted' WHERE id IN
			(SELECT id FROM blobs WHERE state <> 'stored' AND created_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id`, before.UnixMicro(), sweepBatch)
		if err != nil || len(ids) == 0 {
			return removed, explain("remove the leftovers of uploads", err)
		}
		for _, id := range ids {
			if err := s.remove(ctx, id); err != nil {
				return removed, explain("remove the leftovers of uploads", err)
			}
			removed++
		}
	}
}

func query[T any](ctx context.Context, pool *pgxpool.Pool, each pgx.RowToFunc[T], text string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := pool.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, each)
}
