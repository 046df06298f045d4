package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
)

// table returns a database with a table of notes and the transactions that wrote
// them.
func table(t *testing.T, opts postgres.Options) *postgres.DB {
	t.Helper()
	db := postgrestest.Open(t, opts)
	exec(t, db, `CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, wrote BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint)`)
	exec(t, db, `CREATE TABLE IF NOT EXISTS tallies (id TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
	exec(t, db, `INSERT INTO tallies VALUES ('written', 0) ON CONFLICT DO NOTHING`)
	return db
}

// needsResult makes a transaction run in its group instead of being recorded.
func needsResult(c database.Conn) error {
	return c.Query(`SELECT 1`, nil, func(database.Row) error { return nil })
}

// recordedNote writes a note without needing a result, so that its transaction is
// recorded. It ends like one that counts something under the lock of a workspace.
func recordedNote(c database.Conn, id string, atMost int) error {
	return errors.Join(
		c.Expect(`INSERT INTO notes (id) VALUES ($1)`, id),
		c.Lock(database.Lock{Kind: database.LockWorkspace, Key: "w"}),
		c.Tally(`UPDATE tallies SET n = n + $1 WHERE id = $2 RETURNING n, 1 / (n <= $3)::int`, 1, []any{"written", atMost}, func(database.Row) error { return nil }),
	)
}

func exec(t *testing.T, db *postgres.DB, statement string, args ...any) {
	t.Helper()
	if err := db.Write(t.Context(), func(c database.Conn) error { return c.Do(statement, args...) }); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, db *postgres.DB, statement string, args ...any) (n int) {
	t.Helper()
	err := db.Read(t.Context(), func(c database.Conn) error {
		return c.Query(statement, args, func(r database.Row) error { return r.Scan(&n) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// note writes a note in a transaction with several round trips.
func note(c database.Conn, id string) error {
	if _, err := c.Exec(`INSERT INTO notes (id) VALUES ($1)`, id); err != nil {
		return err
	}
	return c.Query(`SELECT count(*) FROM notes WHERE id = $1`, []any{id}, func(r database.Row) error {
		n := 0
		if err := r.Scan(&n); err != nil || n != 1 {
			return fmt.Errorf("a transaction sees %d of its own rows, %w", n, err)
		}
		return nil
	})
}

// writeTogether runs transactions that queue up while all workers are busy, so
// that they share commits.
func writeTogether(t *testing.T, db *postgres.DB, txs map[string]func(database.Conn) error) map[string]error {
	t.Helper()
	const busy = 2 // all workers
	var (
		gate, in = make(chan struct{}), make(chan struct{}, busy)
		running  sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]error{}
	)
	for i := range busy {
		running.Go(func() {
			_ = db.WriteRun(context.Background(), fmt.Sprint("busy ", i), func(c database.Conn) error {
				// A transaction that needs a result keeps its worker busy.
				if err := needsResult(c); err != nil {
					return err
				}
				in <- struct{}{}
				<-gate
				return nil
			})
		})
		<-in
	}
	for id, tx := range txs {
		running.Go(func() {
			err := db.WriteRun(context.Background(), id, tx)
			mu.Lock()
			defer mu.Unlock()
			outcomes[id] = err
		})
	}
	for accounted := 0; accounted < len(txs); time.Sleep(time.Millisecond) {
		mu.Lock()
		accounted = db.Queued() + len(outcomes) // one that fails while it is recorded is not queued
		mu.Unlock()
	}
	close(gate)
	running.Wait()
	return outcomes
}

// recordedSuffix marks the names of notes that were also counted.
const recordedSuffix = " written down"

// notes returns transactions of both kinds.
func notes(n int) map[string]func(database.Conn) error {
	txs := map[string]func(database.Conn) error{}
	for i := range n {
		id := fmt.Sprintf("run_%03d", i)
		if i%2 == 1 {
			id += recordedSuffix
			txs[id] = func(c database.Conn) error { return recordedNote(c, id, 1000) }
			continue
		}
		txs[id] = func(c database.Conn) error { return note(c, id) }
	}
	return txs
}

// checkNotes checks that the notes of exactly the successful transactions exist.
func checkNotes(t *testing.T, db *postgres.DB, outcomes map[string]error) {
	t.Helper()
	for id, err := range outcomes {
		want := 1
		if err != nil {
			want = 0
		}
		if got := number(t, db, `SELECT count(*) FROM notes WHERE id = $1`, id); got != want {
			t.Errorf("%s: %d notes, outcome %v", id, got, err)
		}
	}
	if written, counted := number(t, db, `SELECT count(*) FROM notes WHERE id LIKE '%' || $1`, recordedSuffix), number(t, db, `SELECT n FROM tallies`); written != counted {
		t.Errorf("%d notes, %d counted", written, counted)
	}
}

func TestTransactionsShareACommit(t *testing.T) {
	t.Parallel()
	db := table(t, postgrestest.New(t))
	outcomes := writeTogether(t, db, notes(40))
	checkNotes(t, db, outcomes)
	for id, err := range outcomes {
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := number(t, db, `SELECT count(DISTINCT wrote) FROM notes`); n > 3 {
		t.Errorf("40 transactions took %d commits", n)
	}
}

// TestFailureInAGroup checks that a failing transaction does not affect the
// others, in whatever way it fails.
func TestFailureInAGroup(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		tx   func(database.Conn) error
		want string
	}{
		"before it wrote": {func(c database.Conn) error { return errors.Join(needsResult(c), broken) }, "broken"},
		"while recorded":  {func(database.Conn) error { return broken }, "broken"},
		"after it wrote":  {func(c database.Conn) error { return errors.Join(note(c, "bad"), broken) }, "broken"},
		"with what it left": {func(c database.Conn) error {
			return errors.Join(needsResult(c), c.Do(`INSERT INTO notes (id) VALUES ('bad')`), broken)
		}, "broken"},
		"with what it left, by itself": {func(c database.Conn) error { return errors.Join(c.Do(`INSERT INTO notes (id) VALUES ('bad')`), broken) }, "broken"},
		"with what it expected": {func(c database.Conn) error {
			return errors.Join(c.Do(`INSERT INTO notes (id) VALUES ('bad')`), c.Expect(`UPDATE notes SET id = id WHERE id = 'nobody'`))
		}, database.ErrUnexpected.Error()},
		"with what it expected under its lock": {func(c database.Conn) error { return recordedNote(c, "bad", 0) }, database.ErrUnexpected.Error()},
		"in the database": {func(c database.Conn) error {
			_, err := c.Exec(`INSERT INTO notes (id) VALUES ('bad'), ((1/0)::text)`)
			return err
		}, "division by zero"},
		"in the database, at its end": {func(c database.Conn) error {
			if err := note(c, "bad"); err != nil {
				return err
			}
			return c.Do(`INSERT INTO notes (id) VALUES ((1/0)::text)`)
		}, "division by zero"},
		"with a panic": {func(c database.Conn) error {
			if err := note(c, "bad"); err != nil {
				return err
			}
			panic("oh")
		}, "panic in a transaction: oh"},
		"although it goes on": {func(c database.Conn) error {
			_, _ = c.Exec(`INSERT INTO notes (id) VALUES ((1/0)::text)`)
			_ = note(c, "bad")
			return nil
		}, "ROLLBACK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, txs := table(t, postgrestest.New(t)), notes(20)
			txs["bad"] = tc.tx
			outcomes := writeTogether(t, db, txs)
			if err := outcomes["bad"]; err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the bad one: %v", err)
			}
			checkNotes(t, db, outcomes)
			if n := number(t, db, `SELECT count(*) FROM notes`); n != 20 {
				t.Errorf("%d notes of the good ones", n)
			}
		})
	}
}

// TestTransactionsOfOneRun checks that two transactions of one run do not share a
// commit: they would not be isolated from each other.
func TestTransactionsOfOneRun(t *testing.T) {
	t.Parallel()
	db := table(t, postgrestest.New(t))
	exec(t, db, `CREATE TABLE counts (id TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
	exec(t, db, `INSERT INTO counts VALUES ('r', 0)`)
	var running sync.WaitGroup
	for range 60 {
		running.Go(func() {
			err := db.WriteRun(t.Context(), "r", func(c database.Conn) error {
				n := 0
				if err := c.Query(`SELECT n FROM counts WHERE id = 'r' FOR UPDATE`, nil, func(r database.Row) error { return r.Scan(&n) }); err != nil {
					return err
				}
				return c.Do(`UPDATE counts SET n = $1 WHERE id = 'r'`, n+1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if n := number(t, db, `SELECT n FROM counts`); n != 60 {
		t.Errorf("counted to %d", n)
	}
}

// TestGroupsDoNotDeadlock checks that groups of two nodes that lock many
// workspaces never deadlock.
func TestGroupsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	nodes := []*postgres.DB{table(t, opts), table(t, opts)}
	var running sync.WaitGroup
	for i := range 600 {
		db, id := nodes[i%2], fmt.Sprint("run_", i)
		lock := database.Lock{Kind: database.LockWorkspace, Key: fmt.Sprint("ws_", i*7919%13)}
		running.Go(func() {
			err := db.WriteRun(t.Context(), id, func(c database.Conn) error {
				if err := note(c, id); err != nil {
					return err
				}
				if i%3 == 0 {
					if err := note(c, id+" again"); err != nil {
						return err
					}
				}
				if err := c.Lock(lock); err != nil {
					return err
				}
				return note(c, id+" last")
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	exec(t, nodes[0], `SELECT pg_stat_clear_snapshot()`)
	if n := number(t, nodes[0], `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	if n := number(t, nodes[0], `SELECT count(*) FROM notes`); n != 1400 {
		t.Errorf("%d notes", n)
	}
}

// TestCloseUnderLoad checks that every transaction gets a correct result when the
// database is closed under load.
func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	opts := postgrestest.New(t)
	look := table(t, opts)
	db, err := postgres.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	var (
		running  sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]error{}
	)
	for i := range 300 {
		running.Go(func() {
			id := fmt.Sprintf("run_%03d", i)
			err := db.WriteRun(context.Background(), id, func(c database.Conn) error { return note(c, id) })
			mu.Lock()
			defer mu.Unlock()
			if outcomes[id] = err; len(outcomes) == 20 {
				stop()
			}
		})
	}
	running.Wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	checkNotes(t, look, outcomes)
	if err := db.WriteRun(context.Background(), "late", func(database.Conn) error { return nil }); err == nil {
		t.Error("a closed database accepted a transaction")
	}
	stop()
}

func TestCanceledRequest(t *testing.T) {
	t.Parallel()
	db := table(t, postgrestest.New(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, write := range map[string]func(context.Context) error{
		"Write": func(ctx context.Context) error {
			return db.Write(ctx, func(c database.Conn) error { return note(c, "a") })
		},
		"WriteRun": func(ctx context.Context) error {
			return db.WriteRun(ctx, "b", func(c database.Conn) error { return note(c, "b") })
		},
	} {
		if f, ok := fault.As(write(ctx)); !ok || f.Code != fault.Unavailable {
			t.Errorf("%s after its request was canceled: %v", name, f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Write(ctx, func(c database.Conn) error {
			cancel() // too late: it has begun
			return note(c, name)
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := number(t, db, `SELECT count(*) FROM notes`); n != 2 {
		t.Errorf("%d notes", n)
	}
}
