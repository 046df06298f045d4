package sqlite_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	raw "zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/txn"
)

// commits counts the transactions in a write-ahead log: the last frame of a
// transaction contains the size of the database, others contain zero.
func commits(t *testing.T, dir string) (count int) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, sqlite.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	const header, frameHeader = 32, 24
	frame := frameHeader + int(binary.BigEndian.Uint32(log[8:]))
	salt := log[16:24]
	for at := header; at+frame <= len(log); at += frame {
		if !slices.Equal(log[at+8:at+16], salt) {
			break // a frame from before the log was restarted
		}
		if binary.BigEndian.Uint32(log[at+4:]) != 0 {
			count++
		}
	}
	return count
}

// blockWriter occupies the writer until release is called, which returns when the
// blocking write has ended.
func blockWriter(t *testing.T, db *sqlite.DB) (release func()) {
	t.Helper()
	blocked, unblock, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		result <- db.Write(context.Background(), func(c database.Conn) error {
			close(blocked)
			<-unblock
			return putKey("holder")(c)
		})
	}()
	<-blocked
	return sync.OnceFunc(func() {
		close(unblock)
		if err := <-result; err != nil {
			t.Errorf("the write that blocked the writer: %v", err)
		}
	})
}

// enqueue queues writes behind a blocked writer and returns a function that waits
// for their results.
func enqueue(t *testing.T, db *sqlite.DB, writes ...func(database.Conn) error) func() []error {
	t.Helper()
	results := make([]error, len(writes))
	var waiting sync.WaitGroup
	before := db.Queued()
	for i, write := range writes {
		waiting.Go(func() { results[i] = db.Write(context.Background(), write) })
	}
	for db.Queued() < min(before+len(writes), sqlite.QueueLength) {
		runtime.Gosched()
	}
	return func() []error {
		waiting.Wait()
		return results
	}
}

func puts(keys []string) (writes []func(database.Conn) error) {
	for _, key := range keys {
		writes = append(writes, putKey(key))
	}
	return writes
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func TestQueuedTransactionsShareACommit(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, sqlite.MaxGroup, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			db := open(t, dir)
			release := blockWriter(t, db)
			wait := enqueue(t, db, puts(numbered("k", n))...)
			release()
			noErrors(t, wait())
			groups := (n + sqlite.MaxGroup - 1) / sqlite.MaxGroup
			if got := commits(t, dir); got != 1+groups {
				t.Errorf("%d writes needed %d commits, not %d", n, got-1, groups)
			}
			if got := len(keys(t, db)); got != n+1 {
				t.Errorf("%d rows, want %d", got, n+1)
			}
		})
	}
}

func TestGroupBecomesVisibleAtOnce(t *testing.T) {
	t.Parallel()
	const n = 300
	dir := newDir(t)
	db := open(t, dir)
	release := blockWriter(t, db)
	wait := enqueue(t, db, puts(numbered("k", n))...)
	conn, seen := outside(t, filepath.Join(dir, sqlite.FileName)), map[string]bool{}
	looking, looked := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			got, err := query(conn, `SELECT count(*) FROM usage WHERE workspace_id <> 'holder'`)
			if err != nil {
				looked <- err
				return
			}
			if len(seen) == 0 {
				close(looking)
			}
			seen[got[0]] = true
			if got[0] == fmt.Sprint(n) {
				looked <- nil
				return
			}
		}
	}()
	<-looking
	release()
	noErrors(t, append(wait(), <-looked))
	if diff := cmp.Diff(map[string]bool{"0": true, fmt.Sprint(n): true}, seen); diff != "" {
		t.Errorf("a reader saw a part of a group (-want +got):\n%s", diff)
	}
}

func TestFailureInAGroup(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	failure := errors.New("no")
	rejected := fault.New(fault.WorkflowPaused, "a rule said no")
	ends := map[string]func(database.Conn) error{
		"succeeds": func(database.Conn) error { return nil },
		"fails":    func(database.Conn) error { return failure },
		"rejects":  func(database.Conn) error { return fmt.Errorf("wrapped: %w", rejected) },
		"panics":   func(database.Conn) error { panic("in a write") },
		"repeats":  func(c database.Conn) error { return putKey("holder")(c) },
		"babbles":  func(c database.Conn) error { return putKey("x")(nil) },
		"misspells": func(c database.Conn) error {
			_, err := c.Exec(`INSERT INTO nowhere VALUES (1)`)
			return err
		},
	}
	var writes []func(database.Conn) error
	var names, want []string
	for round := range 20 {
		for name, end := range ends {
			key := fmt.Sprintf("%s %d", name, round)
			writes = append(writes, func(c database.Conn) error {
				if err := putKey(key)(c); err != nil {
					return err
				}
				return end(c)
			})
			names = append(names, name)
			if name == "succeeds" {
				want = append(want, key)
			}
		}
	}
	release := blockWriter(t, db)
	wait := enqueue(t, db, writes...)
	release()
	for i, err := range wait() {
		switch names[i] {
		case "succeeds":
			if err != nil {
				t.Errorf("a good write: %v", err)
			}
		case "fails":
			if !errors.Is(err, failure) {
				t.Errorf("the error of a write became %v", err)
			}
		case "rejects":
			isFault(t, "the fault of a write", err, fault.WorkflowPaused)
		default:
			if _, known := fault.As(err); err == nil || known {
				t.Errorf("a write that %s returned %v", names[i], err)
			}
		}
	}
	if got := commits(t, dir); got != 2 {
		t.Errorf("%d commits, want 2", got)
	}
	want = append(want, "holder")
	slices.Sort(want)
	if diff := cmp.Diff(want, keys(t, db)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if err := db.Write(t.Context(), putKey("afterwards")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestPanicIsReportedWithStack(t *testing.T) {
	t.Parallel()
	err := open(t, newDir(t)).Write(t.Context(), func(database.Conn) error { panic("oh no") })
	if err == nil || !strings.Contains(err.Error(), "oh no") || !strings.Contains(err.Error(), "writer_test.go") {
		t.Errorf("got %v", err)
	}
}

func TestWriteLimit(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), dir, sqlite.Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = db.Run(ctx) })
		defer running.Wait()
		defer stop()
		slow := func(pause time.Duration) func(database.Conn) error {
			return func(c database.Conn) error {
				if err := putKey("before " + pause.String())(c); err != nil {
					return err
				}
				time.Sleep(pause)
				return putKey("after " + pause.String())(c)
			}
		}
		results := map[time.Duration]error{}
		var mu sync.Mutex
		release := blockWriter(t, db) // so that all share a commit
		var writes sync.WaitGroup
		for _, pause := range []time.Duration{0, 4 * time.Second, txn.Limit + time.Second} {
			writes.Go(func() {
				err := db.Write(t.Context(), slow(pause))
				mu.Lock()
				defer mu.Unlock()
				results[pause] = err
			})
		}
		synctest.Wait()
		release()
		writes.Wait()
		isFault(t, "a write over the limit", results[txn.Limit+time.Second], fault.Unavailable)
		if results[0] != nil || results[4*time.Second] != nil {
			t.Errorf("writes within the limit failed: %v", results)
		}
		var keys []string
		if err := db.Read(t.Context(), func(c database.Conn) (err error) {
			keys, err = column(c, allKeys)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"after 0s", "after 4s", "before 0s", "before 4s", "holder"}, keys); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAcknowledgedWritesAreCommitted(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	var running sync.WaitGroup
	for i := range 16 {
		conn := outside(t, filepath.Join(dir, sqlite.FileName))
		running.Go(func() {
			for _, key := range numbered(fmt.Sprint("k", i, "-"), 25) {
				if err := db.Write(t.Context(), putKey(key)); err != nil {
					t.Error(err)
				}
				if got, err := query(conn, `SELECT count(*) FROM usage WHERE workspace_id = $1`, key); err != nil || got[0] != "1" {
					t.Errorf("another connection sees %q, %v after the write returned", got, err)
				}
			}
		})
	}
	running.Wait()
}

func TestQueuedWritesAreWrittenOnShutdown(t *testing.T) {
	t.Parallel()
	const n = 8 * sqlite.MaxGroup
	dir := newDir(t)
	db, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	release := blockWriter(t, db)
	wait := enqueue(t, db, puts(numbered("k", n))...)
	stop()
	release()
	noErrors(t, append(wait(), <-ended))
	if got := len(keys(t, open(t, dir))); got != n+1 {
		t.Errorf("%d rows, want %d", got, n+1)
	}
}

func TestClosedDatabase(t *testing.T) {
	t.Parallel()
	db, stop := start(t, newDir(t))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		never := func(database.Conn) error {
			t.Error("a write ran after the shutdown")
			return nil
		}
		isFault(t, "write", db.Write(context.Background(), never), fault.Unavailable)
		isFault(t, "read", db.Read(context.Background(), never), fault.Unavailable)
	}
}

// TestShutdownUnderLoad checks that every caller gets an error when the writer
// ends, whatever it waits for.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	db, stop := start(t, newDir(t))
	var running sync.WaitGroup
	var written atomic.Int64
	for i := range 32 {
		running.Go(func() {
			for n := 0; ; n++ {
				err := db.Write(context.Background(), putKey(fmt.Sprint(i, "-", n)))
				if err == nil {
					written.Add(1)
					err = db.Read(context.Background(), func(c database.Conn) error { return nil })
				}
				if err != nil {
					isFault(t, "the last call", err, fault.Unavailable)
					return
				}
			}
		})
	}
	for written.Load() < 100 {
		runtime.Gosched()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	running.Wait()
}

func TestCancelBeforeTheQueue(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		isFault(t, "write", db.Write(ctx, putKey("given up")), fault.Unavailable)
		isFault(t, "read", db.Read(ctx, func(database.Conn) error { return nil }), fault.Unavailable)
	}

	// The same for a caller blocked on a full queue.
	release := blockWriter(t, db)
	wait := enqueue(t, db, puts(numbered("k", sqlite.QueueLength))...)
	ctx, cancel = context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- db.Write(ctx, putKey("given up")) }()
	cancel()
	isFault(t, "write at a full queue", <-given, fault.Unavailable)
	release()
	noErrors(t, wait())
	if got := keys(t, db); slices.Contains(got, "given up") || len(got) != sqlite.QueueLength+1 {
		t.Errorf("%d rows", len(got))
	}
}

func TestQueuedWriteIsNotCanceled(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	release := blockWriter(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- db.Write(ctx, putKey("queued")) }()
	for db.Queued() == 0 {
		runtime.Gosched()
	}
	cancel()
	release()
	if err := <-result; err != nil {
		t.Errorf("the outcome is known, but the caller got %v", err)
	}
	if diff := cmp.Diff([]string{"holder", "queued"}, keys(t, db)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// limitPages makes the disk full, or frees space again.
func limitPages(t *testing.T, db *sqlite.DB, more int) {
	t.Helper()
	err := db.Write(t.Context(), func(c database.Conn) error {
		pages := 0
		if err := c.Query("PRAGMA page_count", nil, func(r database.Row) error { return r.Scan(&pages) }); err != nil {
			return err
		}
		_, err := c.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+more))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	big := func(key string) func(database.Conn) error { return putKey(key + strings.Repeat("x", 100_000)) }
	if err := db.Write(t.Context(), big("before")); err != nil {
		t.Fatal(err)
	}
	limitPages(t, db, 0)

	release := blockWriter(t, db)
	wait := enqueue(t, db, big("a"), putKey("b"), big("c"))
	release()
	for _, err := range wait() {
		// All writes of the group share the outcome of the transaction.
		isFault(t, "a write to a full disk", err, fault.StorageFull)
	}
	isFault(t, "a single write", db.Write(t.Context(), big("d")), fault.StorageFull)
	if got := keys(t, db); len(got) != 2 {
		t.Errorf("%d rows, want the 2 from before", len(got))
	}

	limitPages(t, db, 1000)
	for _, key := range []string{"e", "f"} {
		if err := db.Write(t.Context(), big(key)); err != nil {
			t.Errorf("after space was freed: %v", err)
		}
	}
	if got := keys(t, db); len(got) != 4 {
		t.Errorf("%d rows, want 4", len(got))
	}
	checkIntegrity(t, outside(t, filepath.Join(dir, sqlite.FileName)))
}

func checkIntegrity(t *testing.T, conn *raw.Conn) {
	t.Helper()
	for _, check := range []string{"PRAGMA integrity_check", "PRAGMA foreign_key_check"} {
		if got, err := query(conn, check); err != nil || len(got) > 1 || len(got) == 1 && got[0] != "ok" {
			t.Errorf("%s: %q, %v", check, got, err)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code  raw.ResultCode
		fault fault.Code
		fatal bool
	}{
		{code: raw.ResultFull, fault: fault.StorageFull},
		{code: raw.ResultReadOnly, fault: fault.StorageReadOnly},
		{code: raw.ResultReadOnlyDBMoved, fault: fault.StorageReadOnly},
		{code: raw.ResultPerm, fault: fault.StorageReadOnly},
		{code: raw.ResultBusy, fault: fault.Unavailable},
		{code: raw.ResultBusySnapshot, fault: fault.Unavailable},
		{code: raw.ResultLocked, fault: fault.Unavailable},
		{code: raw.ResultInterrupt, fault: fault.Unavailable},
		{code: raw.ResultIOErr, fault: fault.Unavailable, fatal: true},
		{code: raw.ResultIOErrFsync, fault: fault.Unavailable, fatal: true},
		{code: raw.ResultIOErrWrite, fault: fault.Unavailable, fatal: true},
		{code: raw.ResultCorrupt, fatal: true},
		{code: raw.ResultNotADB, fatal: true},
		{code: raw.ResultConstraintUnique},
		{code: raw.ResultError},
	} {
		err := fmt.Errorf("step: %w", tc.code.ToError())
		explained := sqlite.Explain(err)
		if f, ok := fault.As(explained); ok != (tc.fault != "") || ok && f.Code != tc.fault {
			t.Errorf("%v became %v", tc.code, explained)
		}
		if !errors.Is(explained, err) {
			t.Errorf("%v: the cause is lost in %v", tc.code, explained)
		}
		if got := sqlite.Fatal(err); got != tc.fatal {
			t.Errorf("%v: fatal is %t", tc.code, got)
		}
	}
	rule := fault.New(fault.WorkflowPaused, "no").Because(raw.ResultFull.ToError())
	isFault(t, "a fault from above", sqlite.Explain(rule), fault.WorkflowPaused)
}
