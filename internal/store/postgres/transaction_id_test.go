package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	server "github.com/stepmill/stepmill/test/postgres"
)

// TestReusedTransactionID checks a crash after which another transaction gets the
// id of a lost one. That the other was committed must not be taken for the
// outcome of the first.
func TestReusedTransactionID(t *testing.T) {
	t.Parallel()
	pg := server.Start(t, server.Options{})
	url := pg.NewDatabase(t)
	opts := postgres.Options{URL: url, Name: "test", Timeout: postgrestest.Timeout}
	if err := postgres.Migrate(t.Context(), opts, river.Migrate); err != nil {
		t.Fatal(err)
	}
	db := postgrestest.Open(t, opts)
	reused := false
	err := db.Write(t.Context(), func(c database.Conn) error {
		if reused { // the retry does nothing
			return nil
		}
		if _, err := c.Exec(`INSERT INTO leaderships (name, holder, until) VALUES ('lost', 'a', 1)`); err != nil {
			return err
		}
		var id int64
		if err := c.Query(`SELECT pg_current_xact_id()::text::bigint`, nil, func(r database.Row) error { return r.Scan(&id) }); err != nil {
			return err
		}
		pg.StopImmediate()
		pg.Start()
		reused = commitUntilID(t, url, id)
		return nil
	})
	there := 0
	if err := db.Read(t.Context(), func(c database.Conn) error {
		return c.Query(`SELECT count(*) FROM leaderships WHERE name = 'lost'`, nil, func(r database.Row) error { return r.Scan(&there) })
	}); err != nil {
		t.Fatal(err)
	}
	// The WAL may have kept the id; then no other transaction has it.
	if reused && !fault.Is(err, fault.Unavailable) || there != 0 {
		t.Errorf("%d rows, id reused: %t, the transaction returned %v", there, reused, err)
	}
}

// commitUntilID commits transactions until one has the id.
func commitUntilID(t *testing.T, url string, number int64) bool {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for range 1000 {
		var id int64
		if err := conn.QueryRow(ctx, `INSERT INTO leaderships (name, holder, until) VALUES (gen_random_uuid()::text, 'b', 1) RETURNING pg_current_xact_id()::text::bigint`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		if id >= number {
			return id == number
		}
	}
	return false
}
