package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/test/lane"
)

// useAll reads on every connection of the pool at the same time.
func useAll(t *testing.T, db *sqlite.DB) {
	t.Helper()
	if err := tryAll(db); err != nil {
		t.Errorf("a connection of the pool: %v", err)
	}
}

// tryAll is like useAll and returns the errors of the connections.
func tryAll(db *sqlite.DB) error {
	var arrived, running sync.WaitGroup
	arrived.Add(db.Readers())
	errs := make([]error, db.Readers())
	for i := range errs {
		running.Go(func() {
			arrive := sync.OnceFunc(arrived.Done)
			defer arrive() // a read may end before it begins
			errs[i] = db.Read(context.Background(), func(c database.Conn) error {
				arrive()
				arrived.Wait()
				_, err := column(c, allKeys)
				return err
			})
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func TestReadIsASnapshot(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	err := db.Read(t.Context(), func(c database.Conn) error {
		for i := range 3 {
			got, err := column(c, allKeys)
			if err != nil || len(got) != 0 {
				t.Errorf("read %d: %q, %v", i, got, err)
			}
			if err := db.Write(t.Context(), putKey(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if got := keys(t, db); err != nil || len(got) != 3 {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

func TestReaderCannotWrite(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	if err := db.Read(t.Context(), putKey("x")); err == nil {
		t.Error("a reader wrote")
	}
	if got := keys(t, db); len(got) != 0 {
		t.Errorf("rows: %q", got)
	}
}

func TestReaderReturnsToThePool(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	failure := errors.New("no")
	for range 3 * db.Readers() {
		if err := db.Read(t.Context(), func(database.Conn) error { return failure }); !errors.Is(err, failure) {
			t.Errorf("the error of fn became %v", err)
		}
		if err := db.Read(t.Context(), func(c database.Conn) error { return c.Query("SELECT nothing", nil, nil) }); err == nil {
			t.Error("an invalid statement succeeded")
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of fn was swallowed")
				}
			}()
			_ = db.Read(t.Context(), func(c database.Conn) error {
				return c.Query("SELECT 1 UNION SELECT 2", nil, func(database.Row) error { panic("in a row") })
			})
		}()
	}
	useAll(t, db)
}

func TestCancelWhileWaitingForAReader(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	var arrived, running sync.WaitGroup
	release := make(chan struct{})
	arrived.Add(db.Readers())
	for range db.Readers() {
		running.Go(func() {
			_ = db.Read(context.Background(), func(database.Conn) error {
				arrived.Done()
				<-release
				return nil
			})
		})
	}
	arrived.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- db.Read(ctx, func(database.Conn) error { return nil }) }()
	cancel()
	isFault(t, "read", <-given, fault.Unavailable)
	close(release)
	running.Wait()
	useAll(t, db)
}

// openWithShortReads opens a database with a very short read limit.
func openWithShortReads(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), newDir(t), sqlite.Options{Migrate: true, ReadLimit: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = db.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return db
}

func TestReadLimit(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	db, dir := openWithShortReads(t), newDir(t)
	locked := open(t, dir)
	lock := outside(t, filepath.Join(dir, sqlite.FileName))
	if _, err := query(lock, "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() {
		err := db.Read(context.Background(), func(c database.Conn) error {
			return c.Query(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`, nil,
				func(database.Row) error { return nil })
		})
		isFault(t, "a query without an end", err, fault.Unavailable)
	})
	running.Go(func() {
		err := db.Read(context.Background(), func(c database.Conn) error {
			for time.Since(began) < time.Minute {
				if _, err := column(c, "SELECT 1"); err != nil {
					return err
				}
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		isFault(t, "a reader that keeps asking", err, fault.Unavailable)
	})
	running.Go(func() {
		isFault(t, "a write to a locked file", locked.Write(context.Background(), putKey("x")), fault.Unavailable)
	})
	running.Wait()
	err := tryAll(db)
	for range 100 { // on a busy machine a short read can exceed the limit too
		if err == nil {
			break
		}
		err = tryAll(db)
	}
	if err != nil {
		t.Errorf("the connections are no longer usable: %v", err)
	}
	if _, err := query(lock, "ROLLBACK"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(db.Write(t.Context(), putKey("y")), locked.Write(t.Context(), putKey("y"))); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestCheckpointDoesNotWaitForReaders(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, sqlite.FileName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	err := db.Read(t.Context(), func(c database.Conn) error {
		if _, err := column(c, allKeys); err != nil {
			return err
		}
		if err := db.Write(t.Context(), putKey("x")); err != nil {
			return err
		}
		db.Checkpoint() // returns although this reader still needs the log
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size() == 0 {
		t.Error("the log was truncated under a reader")
	}
	db.Checkpoint()
	if got := size(); got != 0 {
		t.Errorf("the log still has %d bytes", got)
	}
	if err := db.Write(t.Context(), putKey("y")); err != nil {
		t.Error(err)
	}
}
