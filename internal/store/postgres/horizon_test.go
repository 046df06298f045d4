package postgres_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/test/lane"
)

// oldest returns the age of the oldest transaction, possibly cached.
func oldest(t *testing.T, db *postgres.DB) time.Duration {
	t.Helper()
	age, err := db.OldestTransaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return age
}

func oldestNow(t *testing.T, db *postgres.DB) time.Duration {
	t.Helper()
	db.ExpireHorizon()
	return oldest(t, db)
}

func mustExec(t *testing.T, conn *pgx.Conn, text string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// awaitNone waits until no transaction counts. The pool may just have opened a
// connection, which counts for a moment.
func awaitNone(t *testing.T, db *postgres.DB) {
	t.Helper()
	postgrestest.Eventually(t, "no transaction counts", func() bool { return oldestNow(t, db) == 0 })
}

// TestOldestTransaction checks that a transaction counts from its beginning if it
// holds back vacuum: it has a snapshot or has written something.
func TestOldestTransaction(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	db, conn, observer := postgrestest.Open(t, opts), connect(t, opts), connect(t, opts)
	mustExec(t, conn, `SET idle_in_transaction_session_timeout = 0`)
	age := func() time.Duration { // of the open transaction, by the clock of the database
		var age int64
		if err := observer.QueryRow(t.Context(), `SELECT (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = $1`, conn.PgConn().PID()).Scan(&age); err != nil {
			t.Fatal(err)
		}
		return time.Duration(age) * time.Microsecond
	}
	for name, c := range map[string]struct {
		text  string
		holds bool
	}{
		"one that sees the past":      {`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM run_queue`, true},
		"one that has written":        {`BEGIN; INSERT INTO rate_windows (window_start, workspace_id, taken, granted) VALUES (1, 'x', 1, 1)`, true},
		"one that looks anew":         {`BEGIN; SELECT * FROM run_queue`, false},
		"one that has not begun work": {`BEGIN`, false},
	} {
		awaitNone(t, db)
		mustExec(t, conn, c.text)
		least := age()
		got := oldestNow(t, db)
		if most := age(); c.holds && (got < least || got > most) {
			t.Errorf("%s: %v, want %v to %v", name, got, least, most)
		}
		if !c.holds {
			awaitNone(t, db)
			got = 0
		}
		db.ExtendHorizon()
		mustExec(t, conn, `ROLLBACK`)
		if again := oldest(t, db); again != got {
			t.Errorf("%s: the next result is %v, want the %v from before", name, again, got)
		}
	}
}

// TestOldestTransactionOfOthers checks that sessions of other roles count
// although their start time is hidden.
func TestOldestTransactionOfOthers(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := postgrestest.New(t)
	conn := connect(t, opts)
	mustExec(t, conn, `SET idle_in_transaction_session_timeout = 0`)
	role := "plain_" + strings.ToLower(rand.Text())
	mustExec(t, conn, `CREATE ROLE `+role+` LOGIN; GRANT pg_read_all_data TO `+role)
	address, err := url.Parse(opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), `DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	address.User = url.User(role)
	plain := opts
	plain.URL = address.String()
	db := postgrestest.Open(t, plain)

	for range 2 { // the second is not mistaken for the first
		awaitNone(t, db)
		began := time.Now()
		mustExec(t, conn, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()`)
		asked := time.Now()
		if age := oldestNow(t, db); age > time.Since(asked) {
			t.Errorf("at first sight: %v", age)
		}
		seen := time.Now()
		time.Sleep(100 * time.Millisecond)
		least := time.Since(seen)
		if age := oldestNow(t, db); age < least || age > time.Since(began) {
			t.Errorf("later: %v, want %v to %v", age, least, time.Since(began))
		}
		mustExec(t, conn, `ROLLBACK`)
	}
	awaitNone(t, db)
}
