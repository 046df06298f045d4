package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
)

// table is a database with a table of notes and the transactions that wrote them.
func table(t *testing.T, opts postgres.Options) *postgres.DB {
	t.Helper()
	db := open(t, opts)
	exec(t, db, `CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, wrote BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint)`)
	exec(t, db, `CREATE TABLE IF NOT EXISTS tallies (id TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
	exec(t, db, `INSERT INTO tallies VALUES ('written', 0) ON CONFLICT DO NOTHING`)
	return db
}

// asks has a unit run in its transaction.
func asks(c store.Conn) error {
	return c.Query(`SELECT 1`, nil, func(store.Row) error { return nil })
}

// writtenNote writes a note and asks for nothing: its unit is written down, and
// ends as one does that counts something under the lock of a workspace.
func writtenNote(c store.Conn, id string, atMost int) error {
	return errors.Join(
		c.Expect(`INSERT INTO notes (id) VALUES ($1)`, id),
		c.Lock(store.Lock{Kind: store.LockWorkspace, Key: "w"}),
		c.Tally(`UPDATE tallies SET n = n + $1 WHERE id = $2 RETURNING n, 1 / (n <= $3)::int`, 1, []any{"written", atMost}, func(store.Row) error { return nil }),
	)
}

func exec(t *testing.T, db *postgres.DB, statement string, args ...any) {
	t.Helper()
	if err := db.Write(t.Context(), func(c store.Conn) error { return c.Do(statement, args...) }); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, db *postgres.DB, statement string, args ...any) (n int) {
	t.Helper()
	err := db.Read(t.Context(), func(c store.Conn) error {
		return c.Query(statement, args, func(r store.Row) error { return r.Scan(&n) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// note writes a note; its unit has several round trips.
func note(c store.Conn, id string) error {
	if _, err := c.Exec(`INSERT INTO notes (id) VALUES ($1)`, id); err != nil {
		return err
	}
	return c.Query(`SELECT count(*) FROM notes WHERE id = $1`, []any{id}, func(r store.Row) error {
		n := 0
		if err := r.Scan(&n); err != nil || n != 1 {
			return fmt.Errorf("a unit sees %d of its own rows, %w", n, err)
		}
		return nil
	})
}

// writeTogether runs units that queue while all who commit are busy, so that
// they share transactions.
func writeTogether(t *testing.T, db *postgres.DB, units map[string]func(store.Conn) error) map[string]error {
	t.Helper()
	const busy = 2 // all of them
	var (
		gate, in = make(chan struct{}), make(chan struct{}, busy)
		running  sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]error{}
	)
	for i := range busy {
		running.Go(func() {
			_ = db.WriteRun(context.Background(), fmt.Sprint("busy ", i), func(c store.Conn) error {
				// One that asks runs in its transaction, and keeps it.
				if err := asks(c); err != nil {
					return err
				}
				in <- struct{}{}
				<-gate
				return nil
			})
		})
		<-in
	}
	for id, unit := range units {
		running.Go(func() {
			err := db.WriteRun(context.Background(), id, unit)
			mu.Lock()
			defer mu.Unlock()
			outcomes[id] = err
		})
	}
	for settled := 0; settled < len(units); time.Sleep(time.Millisecond) {
		mu.Lock()
		settled = db.Queued() + len(outcomes) // one that goes wrong by itself is not queued
		mu.Unlock()
	}
	close(gate)
	running.Wait()
	return outcomes
}

// writtenDown ends the names of notes that were counted too.
const writtenDown = " written down"

// notes are units of both kinds.
func notes(n int) map[string]func(store.Conn) error {
	units := map[string]func(store.Conn) error{}
	for i := range n {
		id := fmt.Sprintf("run_%03d", i)
		if i%2 == 1 {
			id += writtenDown
			units[id] = func(c store.Conn) error { return writtenNote(c, id, 1000) }
			continue
		}
		units[id] = func(c store.Conn) error { return note(c, id) }
	}
	return units
}

// checkNotes checks that the notes of exactly those units are there that went
// through.
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
	if written, counted := number(t, db, `SELECT count(*) FROM notes WHERE id LIKE '%' || $1`, writtenDown), number(t, db, `SELECT n FROM tallies`); written != counted {
		t.Errorf("of %d notes %d were counted", written, counted)
	}
}

func TestUnitsShareATransaction(t *testing.T) {
	t.Parallel()
	db := table(t, newDatabase(t))
	outcomes := writeTogether(t, db, notes(40))
	checkNotes(t, db, outcomes)
	for id, err := range outcomes {
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := number(t, db, `SELECT count(DISTINCT wrote) FROM notes`); n > 3 {
		t.Errorf("40 units took %d transactions", n)
	}
}

// A unit that goes wrong takes nothing with it, in whatever way it does.
func TestOneOfAGroupFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		unit func(store.Conn) error
		want string
	}{
		"before it wrote": {func(c store.Conn) error { return errors.Join(asks(c), broken) }, "broken"},
		"by itself":       {func(store.Conn) error { return broken }, "broken"},
		"after it wrote":  {func(c store.Conn) error { return errors.Join(note(c, "bad"), broken) }, "broken"},
		"with what it left": {func(c store.Conn) error {
			return errors.Join(asks(c), c.Do(`INSERT INTO notes (id) VALUES ('bad')`), broken)
		}, "broken"},
		"with what it left, by itself": {func(c store.Conn) error { return errors.Join(c.Do(`INSERT INTO notes (id) VALUES ('bad')`), broken) }, "broken"},
		"with what it expected": {func(c store.Conn) error {
			return errors.Join(c.Do(`INSERT INTO notes (id) VALUES ('bad')`), c.Expect(`UPDATE notes SET id = id WHERE id = 'nobody'`))
		}, store.ErrUnexpected.Error()},
		"with what it expected under its lock": {func(c store.Conn) error { return writtenNote(c, "bad", 0) }, store.ErrUnexpected.Error()},
		"in the database": {func(c store.Conn) error {
			_, err := c.Exec(`INSERT INTO notes (id) VALUES ('bad'), ((1/0)::text)`)
			return err
		}, "division by zero"},
		"in the database, at its end": {func(c store.Conn) error {
			if err := note(c, "bad"); err != nil {
				return err
			}
			return c.Do(`INSERT INTO notes (id) VALUES ((1/0)::text)`)
		}, "division by zero"},
		"with a panic": {func(c store.Conn) error {
			if err := note(c, "bad"); err != nil {
				return err
			}
			panic("oh")
		}, "panic in a unit: oh"},
		"although it goes on": {func(c store.Conn) error {
			_, _ = c.Exec(`INSERT INTO notes (id) VALUES ((1/0)::text)`)
			_ = note(c, "bad")
			return nil
		}, "ROLLBACK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, units := table(t, newDatabase(t)), notes(20)
			units["bad"] = tc.unit
			outcomes := writeTogether(t, db, units)
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

// Two units of one run do not share a transaction: they would not see each other
// as units should.
func TestUnitsOfOneRun(t *testing.T) {
	t.Parallel()
	db := table(t, newDatabase(t))
	exec(t, db, `CREATE TABLE counts (id TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
	exec(t, db, `INSERT INTO counts VALUES ('r', 0)`)
	var running sync.WaitGroup
	for range 60 {
		running.Go(func() {
			err := db.WriteRun(t.Context(), "r", func(c store.Conn) error {
				n := 0
				if err := c.Query(`SELECT n FROM counts WHERE id = 'r' FOR UPDATE`, nil, func(r store.Row) error { return r.Scan(&n) }); err != nil {
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

// Groups of two nodes that take the locks of many workspaces never wait for each
// other.
func TestGroupsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	nodes := []*postgres.DB{table(t, opts), table(t, opts)}
	var running sync.WaitGroup
	for i := range 600 {
		db, id := nodes[i%2], fmt.Sprint("run_", i)
		lock := store.Lock{Kind: store.LockWorkspace, Key: fmt.Sprint("ws_", i*7919%13)}
		running.Go(func() {
			err := db.WriteRun(t.Context(), id, func(c store.Conn) error {
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

// Every unit has an answer that is true when the database is closed under load.
func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
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
			err := db.WriteRun(context.Background(), id, func(c store.Conn) error { return note(c, id) })
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
	if err := db.WriteRun(context.Background(), "late", func(store.Conn) error { return nil }); err == nil {
		t.Error("a closed database took a unit")
	}
	stop()
}

func TestGivenUp(t *testing.T) {
	t.Parallel()
	db := table(t, newDatabase(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, write := range map[string]func(context.Context) error{
		"Write": func(ctx context.Context) error {
			return db.Write(ctx, func(c store.Conn) error { return note(c, "a") })
		},
		"WriteRun": func(ctx context.Context) error {
			return db.WriteRun(ctx, "b", func(c store.Conn) error { return note(c, "b") })
		},
	} {
		if f, ok := fault.As(write(ctx)); !ok || f.Code != fault.Unavailable {
			t.Errorf("%s after its request was given up: %v", name, f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Write(ctx, func(c store.Conn) error {
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
