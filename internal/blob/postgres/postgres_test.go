package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"math"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	blobpostgres "github.com/stepmill/stepmill/internal/blob/postgres"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
)

const chunk = 256 << 10

func random(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

// connect returns a pool on a database, which closes at the end of the test.
func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// newDatabase returns the URL of a database with the tables.
func newDatabase(t *testing.T, server *postgres.Server) string {
	t.Helper()
	migration, err := os.ReadFile("../../store/migrations/postgres/00007_files.sql")
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile(`(?s)CREATE TABLE blobs .* SET STORAGE EXTERNAL;`).Find(migration)
	url := server.NewDatabase(t)
	exec(t, connect(t, url), string(tables))
	return url
}

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return connect(t, newDatabase(t, postgres.Shared(t)))
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, from string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, blobtest.Backend{
		Open:     func(t *testing.T) blob.Store { return blobpostgres.New(newPool(t)) },
		Boundary: chunk,
	})
}

// Behind a transaction pooler, statements are not prepared.
func TestConformanceWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, blobtest.Backend{
		Open: func(t *testing.T) blob.Store {
			url := newDatabase(t, postgres.Shared(t))
			return blobpostgres.New(connect(t, url+"&default_query_exec_mode=cache_describe"))
		},
		Boundary: chunk,
	})
}

// It is not parallel, because it measures the heap of the process.
func TestMemory(t *testing.T) {
	lane.NotShort(t)
	blobtest.CheckMemory(t, blobpostgres.New(newPool(t)), lane.Pick[int64](32<<20, 64<<20), 8<<20)
}

func TestLostDatabase(t *testing.T) {
	t.Parallel()
	lane.NotShort(t)
	server := postgres.Start(t, postgres.Options{})
	pool := connect(t, newDatabase(t, server))
	s, stored := blobpostgres.New(pool), blob.NewID()
	content := random(3 * chunk)
	if err := blobtest.Put(t.Context(), s, stored, content, chunk); err != nil {
		t.Fatal(err)
	}
	u, err := s.Begin(t.Context(), blob.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write(content); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), stored, 0, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server.StopImmediate()
	if _, err := u.Write(content); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a write: %v", err)
	}
	if err := u.Abort(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an abort: %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a read: %v", err)
	}
	server.Start()
	if n, err := s.Sweep(t.Context(), clock.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("swept %d uploads, %v", n, err)
	}
	if got, err := blobtest.Get(t.Context(), s, stored, 0, math.MaxInt64); err != nil || !bytes.Equal(got, content) {
		t.Errorf("a committed blob: %d bytes, %v", len(got), err)
	}
}

func TestIDIsUsedOnce(t *testing.T) {
	t.Parallel()
	s, id := blobpostgres.New(newPool(t)), blob.NewID()
	u, err := s.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), id); !errors.Is(err, blob.ErrExists) {
		t.Errorf("during the upload: %v", err)
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), id); !errors.Is(err, blob.ErrExists) {
		t.Errorf("after the commit: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	s, id := blobpostgres.New(pool), blob.NewID()
	u, err := s.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if sealed := blob.SealedSize(blobpostgres.MaxPlainSize); sealed > blobpostgres.MaxSize {
		t.Errorf("a sealed blob can have %d bytes, more than %d", sealed, blobpostgres.MaxSize)
	}
	blobpostgres.SetSize(u, blobpostgres.MaxSize-1)
	if n, err := u.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("wrote %d bytes up to the maximum, %v", n, err)
	}
	if n, err := u.Write([]byte("x")); n != 0 || !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("wrote %d bytes beyond the maximum, %v", n, err)
	}
	if err := u.Commit(); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("the commit: %v", err)
	}
	if err := u.Abort(); err != nil {
		t.Error(err)
	}
	if n := count(t, pool, "blobs"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestDeletingRemovesAllRows(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	s, id := blobpostgres.New(pool), blob.NewID()
	if err := blobtest.Put(t.Context(), s, id, random(130*chunk+1), chunk); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, "blob_chunks WHERE blob_id = $1", id); n != 131 {
		t.Errorf("%d chunks", n)
	}
	r, err := s.Open(t.Context(), id, 0, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, "blob_chunks") + count(t, pool, "blobs"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a reader of the deleted blob: %v", err)
	}
}

// A process can die between the mark and the last chunk.
func TestSweepCompletesDeletions(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	s, id := blobpostgres.New(pool), blob.NewID()
	if err := blobtest.Put(t.Context(), s, id, random(3*chunk), chunk); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "UPDATE blobs SET state = 'deleted'")
	exec(t, pool, "DELETE FROM blob_chunks WHERE number = 0")
	if _, err := s.Open(t.Context(), id, 0, 1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if n, err := s.Sweep(t.Context(), clock.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if n := count(t, pool, "blob_chunks") + count(t, pool, "blobs"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	all := func(s *blobpostgres.Store) map[string]error {
		id := blob.NewID()
		_, readErr := blobtest.Get(context.Background(), s, id, 0, 1)
		_, listErr := s.List(context.Background(), paging.Request{Limit: 1})
		_, sweepErr := s.Sweep(context.Background(), clock.Now())
		return map[string]error{
			"write": blobtest.Put(context.Background(), s, id, []byte("x"), 1), "read": readErr,
			"delete": s.Delete(context.Background(), id), "list": listErr, "sweep": sweepErr,
		}
	}
	t.Run("without tables", func(t *testing.T) {
		t.Parallel()
		for what, err := range all(blobpostgres.New(connect(t, postgres.Shared(t).NewDatabase(t)))) {
			if !errors.Is(err, blob.ErrDenied) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Run("without a server", func(t *testing.T) {
		t.Parallel()
		for what, err := range all(blobpostgres.New(connect(t, "postgres://stepmill@127.0.0.1:1/none?sslmode=disable"))) {
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		url := newDatabase(t, postgres.Shared(t))
		s := blobpostgres.New(connect(t, url+"&default_transaction_read_only=on"))
		for _, what := range []string{"write", "delete", "sweep"} {
			if err := all(s)[what]; !fault.Is(err, fault.StorageReadOnly) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
