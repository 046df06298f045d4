package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
)

// nonZero returns the counts that are not zero.
func nonZero(counts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range counts {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

func TestStats(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	noErrors(t, []error{db.Write(t.Context(), putKey("first"))})
	before := db.Stats()
	release := blockWriter(t, db)
	reject := func(err error) func(database.Conn) error {
		return func(c database.Conn) error { return errors.Join(putKey("refused")(c), err) }
	}
	statement := func(text string) func(database.Conn) error {
		return func(c database.Conn) error { _, err := c.Exec(text); return err }
	}
	writes := append(puts([]string{"a", "b", "c"}),
		reject(errors.New("a rule")), reject(fault.New(fault.NotFound, "gone")), putKey("first"), statement("SELECT nonsense"))
	wait := enqueue(t, db, writes...)
	if got := db.Stats().Waiting; got != len(writes) {
		t.Errorf("%d transactions wait, want %d", got, len(writes))
	}
	release()
	if failed := len(slices.DeleteFunc(wait(), func(err error) bool { return err == nil })); failed != 4 {
		t.Errorf("%d transactions failed, want 4", failed)
	}
	after := db.Stats()
	// A duplicate key is rejected by the database; an invalid statement is a bug,
	// like an error from the callers' code.
	want := map[string]int64{store.TransactionCommitted: 4 + before.Transactions[store.TransactionCommitted], store.TransactionRolledBack: 3, store.TransactionFailed: 1}
	if diff := cmp.Diff(want, after.Transactions); diff != "" {
		t.Errorf("transactions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"other": 1}, nonZero(after.Errors)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if n := after.Groups.Total() - before.Groups.Total(); n != 2 || after.Groups.Sum-before.Groups.Sum != float64(1+len(writes)) {
		t.Errorf("%d groups: %+v", n, after.Groups)
	}
	if after.Commits.Total() != after.Groups.Total() || after.Commits.Sum <= before.Commits.Sum || after.Waiting != 0 {
		t.Errorf("%+v", after)
	}
}

func TestStatsOnFullDisk(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	limitPages(t, db, 0)
	err := db.Write(t.Context(), putKey(strings.Repeat("x", 1<<20)))
	isFault(t, "a write to a full disk", err, fault.StorageFull)
	stats := db.Stats()
	if stats.Errors["full"] != 1 || stats.Transactions[store.TransactionFailed] != 1 {
		t.Errorf("%+v", stats)
	}
}

// TestStatsOfReads checks that a failed query counts and a canceled one does not.
func TestStatsOfReads(t *testing.T) {
	t.Parallel()
	db := open(t, newDir(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		err := db.Read(ctx, func(c database.Conn) error {
			return c.Query(`INSERT INTO audit (id) VALUES ('x')`, nil, func(database.Row) error { return nil })
		})
		if err == nil {
			t.Error("it succeeded")
		}
	}
	if diff := cmp.Diff(map[string]int64{"read_only": 1}, nonZero(db.Stats().Errors)); diff != "" {
		t.Error(diff)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	db := open(t, dir)
	noErrors(t, []error{db.Write(t.Context(), putKey(strings.Repeat("x", 1<<16)))})
	files := db.Files()
	for name, got := range map[string]int64{"": files.Bytes, "-wal": files.LogBytes} {
		info, err := os.Stat(filepath.Join(dir, sqlite.FileName+name))
		if err != nil || got != info.Size() || got == 0 {
			t.Errorf("%d bytes of %s, want %d, %v", got, info.Name(), info.Size(), err)
		}
	}
	if files.Free == 0 || files.Free < -1 {
		t.Errorf("%d bytes are free", files.Free)
	}
}

// TestQueryPlansOfTheBacklog checks that the backlog is read from an index.
func TestQueryPlansOfTheBacklog(t *testing.T) {
	t.Parallel()
	for _, analyzed := range []bool{false, true} {
		d := &planningDriver{DB: open(t, newDir(t))}
		if analyzed {
			analyze(t, d.DB)
		}
		if _, err := store.New(d, store.Notify{}).Runs.Backlog(t.Context(), clock.Now()); err != nil {
			t.Fatal(err)
		}
		want := []string{"INDEX run_queue_due (wake_at<?)", "COVERING INDEX deliveries_due (next_at<?)", "COVERING INDEX deliveries_due"}
		if len(d.plans) != len(want) {
			t.Fatalf("analyzed %v: the plans are %q", analyzed, d.plans)
		}
		for i, plan := range d.plans {
			if !strings.Contains(plan, want[i]) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("analyzed %v: the plan is %s, want %s", analyzed, plan, want[i])
			}
		}
	}
}
