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
)

// held is how long a test holds a transaction open.
const held = 1500 * time.Millisecond

// oldest asks for the age of the oldest transaction, now or lately.
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
	db.LookAnew()
	return oldest(t, db)
}

func sends(t *testing.T, conn *pgx.Conn, text string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// A transaction counts from its beginning if it holds back vacuum: it still sees
// what is gone, or has written something.
func TestOldestTransaction(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	db, conn := open(t, opts), connect(t, opts)
	sends(t, conn, `SET idle_in_transaction_session_timeout = 0`)
	for name, c := range map[string]struct {
		text  string
		holds bool
	}{
		"one that sees the past":      {`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM run_queue`, true},
		"one that has written":        {`BEGIN; INSERT INTO rate_windows (window_start, workspace_id, taken, granted) VALUES (1, 'x', 1, 1)`, true},
		"one that looks anew":         {`BEGIN; SELECT * FROM run_queue`, false},
		"one that has not begun work": {`BEGIN`, false},
	} {
		if age := oldestNow(t, db); age > held/2 {
			t.Errorf("before %s: %v", name, age)
		}
		began := time.Now()
		sends(t, conn, c.text)
		time.Sleep(held)
		age := oldestNow(t, db)
		if most := time.Since(began); c.holds && (age < held || age > most) || !c.holds && age > held/2 {
			t.Errorf("%s: %v", name, age)
		}
		sends(t, conn, `ROLLBACK`)
		if again := oldest(t, db); again != age {
			t.Errorf("%s: asked at once again the database said %v after %v", name, again, age)
		}
	}
}

// When a session of another role began is hidden from one who is nothing special.
// That it is there is not.
func TestOldestTransactionOfOthers(t *testing.T) {
	t.Parallel()
	opts := newDatabase(t)
	conn := connect(t, opts)
	sends(t, conn, `SET idle_in_transaction_session_timeout = 0`)
	role := "plain_" + strings.ToLower(rand.Text())
	sends(t, conn, `CREATE ROLE `+role+` LOGIN; GRANT pg_read_all_data TO `+role)
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

	for range 2 { // the second is not taken for the first
		sends(t, conn, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()`)
		if age := oldestNow(t, db); age > held/2 {
			t.Errorf("at first sight: %v", age)
		}
		time.Sleep(held)
		if age := oldestNow(t, db); age < held || age > 4*held {
			t.Errorf("after %v: %v", held, age)
		}
		sends(t, conn, `ROLLBACK`)
	}
	if age := oldestNow(t, db); age > held/2 {
		t.Errorf("afterwards: %v", age)
	}
}
