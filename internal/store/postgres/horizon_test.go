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
	"github.com/stepmill/stepmill/test/lane"
)

// holdTime is how long a test holds a transaction open.
const holdTime = 1500 * time.Millisecond

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

// TestOldestTransaction checks that a transaction counts from its beginning if it
// holds back vacuum: it has a snapshot or has written something.
func TestOldestTransaction(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := newDatabase(t)
	db, conn := open(t, opts), connect(t, opts)
	mustExec(t, conn, `SET idle_in_transaction_session_timeout = 0`)
	for name, c := range map[string]struct {
		text  string
		holds bool
	}{
		"one that sees the past":      {`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM run_queue`, true},
		"one that has written":        {`BEGIN; INSERT INTO rate_windows (window_start, workspace_id, taken, granted) VALUES (1, 'x', 1, 1)`, true},
		"one that looks anew":         {`BEGIN; SELECT * FROM run_queue`, false},
		"one that has not begun work": {`BEGIN`, false},
	} {
		if age := oldestNow(t, db); age >= holdTime {
			t.Errorf("before %s: %v", name, age)
		}
		began := time.Now()
		mustExec(t, conn, c.text)
		time.Sleep(holdTime)
		age := oldestNow(t, db)
		if most := time.Since(began); c.holds && (age < holdTime || age > most) || !c.holds && age >= holdTime {
			t.Errorf("%s: %v", name, age)
		}
		mustExec(t, conn, `ROLLBACK`)
		if again := oldest(t, db); again != age {
			t.Errorf("%s: asked again at once, got %v after %v", name, again, age)
		}
	}
}

// TestOldestTransactionOfOthers checks that sessions of other roles count
// although their start time is hidden.
func TestOldestTransactionOfOthers(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	opts := newDatabase(t)
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
	db := open(t, plain)

	for range 2 { // the second is not mistaken for the first
		began := time.Now()
		mustExec(t, conn, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()`)
		if age := oldestNow(t, db); age >= holdTime {
			t.Errorf("at first sight: %v", age)
		}
		time.Sleep(holdTime)
		if age := oldestNow(t, db); age < holdTime || age > time.Since(began) {
			t.Errorf("after %v: %v", holdTime, age)
		}
		mustExec(t, conn, `ROLLBACK`)
	}
	if age := oldestNow(t, db); age >= holdTime {
		t.Errorf("afterwards: %v", age)
	}
}
