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

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// useAll reads with every connection of the pool at the same time.
func useAll(t *testing.T, db *sqlite.DB) {
	t.Helper()
	var arrived, running sync.WaitGroup
	arrived.Add(db.Readers())
	for range db.Readers() {
		running.Go(func() {
			err := db.Read(context.Background(), func(c store.Conn) error {
				arrived.Done()
				arrived.Wait()
				_, err := column(c, allKeys)
				return err
			})
			if err != nil {
				t.Errorf("a connection of the pool: %v", err)
			}
		})
	}
	running.Wait()
}

func TestAReaderSeesOneState(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	err := db.Read(t.Context(), func(c store.Conn) error {
		for i := range 3 {
			got, err := column(c, allKeys)
			if err != nil || len(got) != 0 {
				t.Errorf("look %d: %q, %v", i, got, err)
			}
			if err := db.Write(t.Context(), put(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if got := keys(t, db); err != nil || len(got) != 3 {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

func TestAReaderCannotWrite(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	if err := db.Read(t.Context(), put("x")); err == nil {
		t.Error("a reader wrote")
	}
	if got := keys(t, db); len(got) != 0 {
		t.Errorf("rows: %q", got)
	}
}

func TestAReaderComesBackAfterAnything(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	failure := errors.New("no")
	for range 3 * db.Readers() {
		if err := db.Read(t.Context(), func(store.Conn) error { return failure }); !errors.Is(err, failure) {
			t.Errorf("the error of a reader became %v", err)
		}
		if err := db.Read(t.Context(), func(c store.Conn) error { return c.Query("SELECT nothing", nil, nil) }); err == nil {
			t.Error("a wrong statement went through")
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of a reader was swallowed")
				}
			}()
			_ = db.Read(t.Context(), func(c store.Conn) error {
				return c.Query("SELECT 1 UNION SELECT 2", nil, func(store.Row) error { panic("in a row") })
			})
		}()
	}
	useAll(t, db)
}

func TestACallerCanGiveUpWaitingForAReader(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	var arrived, running sync.WaitGroup
	release := make(chan struct{})
	arrived.Add(db.Readers())
	for range db.Readers() {
		running.Go(func() {
			_ = db.Read(context.Background(), func(store.Conn) error {
				arrived.Done()
				<-release
				return nil
			})
		})
	}
	arrived.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- db.Read(ctx, func(store.Conn) error { return nil }) }()
	cancel()
	isFault(t, "read", <-given, fault.Unavailable)
	close(release)
	running.Wait()
	useAll(t, db)
}

func TestNobodyWaitsForever(t *testing.T) {
	t.Parallel()
	db, dir := open(t, newDir(t)), newDir(t)
	locked := open(t, dir)
	lock := outside(t, filepath.Join(dir, sqlite.FileName))
	if _, err := query(lock, "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() {
		err := db.Read(context.Background(), func(c store.Conn) error {
			return c.Query(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`, nil,
				func(store.Row) error { return nil })
		})
		isFault(t, "a query without an end", err, fault.Unavailable)
	})
	running.Go(func() {
		err := db.Read(context.Background(), func(c store.Conn) error {
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
		isFault(t, "a write to a file that somebody has locked", locked.Write(context.Background(), put("x")), fault.Unavailable)
	})
	running.Wait()
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("all were told after %s", took)
	}
	useAll(t, db)
	if _, err := query(lock, "ROLLBACK"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(db.Write(t.Context(), put("y")), locked.Write(t.Context(), put("y"))); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestACheckpointDoesNotWaitForReaders(t *testing.T) {
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
	err := db.Read(t.Context(), func(c store.Conn) error {
		if _, err := column(c, allKeys); err != nil {
			return err
		}
		if err := db.Write(t.Context(), put("x")); err != nil {
			return err
		}
		began := time.Now()
		db.Checkpoint()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a reader held up the writer for %s", took)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size() == 0 {
		t.Error("the log was emptied under a reader")
	}
	db.Checkpoint()
	if got := size(); got != 0 {
		t.Errorf("the log still has %d bytes", got)
	}
	if err := db.Write(t.Context(), put("y")); err != nil {
		t.Error(err)
	}
}
