package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	server "github.com/stepmill/stepmill/test/postgres"
)

// A database that crashes gives the number of a transaction that it forgot to
// another one. That the other was committed is not taken for the answer to the
// COMMIT of the first.
func TestNumberOfLostTransactionIsReused(t *testing.T) {
	t.Parallel()
	pg := server.Start(t, server.Options{})
	url := pg.NewDatabase(t)
	opts := postgres.Options{URL: url, Name: "test"}
	if err := postgres.Migrate(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	db := open(t, opts)
	reused := false
	err := db.Write(t.Context(), func(c store.Conn) error {
		if reused { // it is tried again: nothing is done
			return nil
		}
		if _, err := c.Exec(`INSERT INTO terms (name, holder, until) VALUES ('lost', 'a', 1)`); err != nil {
			return err
		}
		var id int64
		if err := c.Query(`SELECT pg_current_xact_id()::text::bigint`, nil, func(r store.Row) error { return r.Scan(&id) }); err != nil {
			return err
		}
		pg.StopImmediate()
		pg.Start()
		reused = commitNumber(t, url, id)
		return nil
	})
	there := 0
	if err := db.Read(t.Context(), func(c store.Conn) error {
		return c.Query(`SELECT count(*) FROM terms WHERE name = 'lost'`, nil, func(r store.Row) error { return r.Scan(&there) })
	}); err != nil {
		t.Fatal(err)
	}
	// The log of the database may have kept the number; then nothing else has it.
	if reused && !fault.Is(err, fault.Unavailable) || there != 0 {
		t.Errorf("%d rows are there, the number was given away again: %t, the unit ended with %v", there, reused, err)
	}
}

// commitNumber commits transactions until one has the number.
func commitNumber(t *testing.T, url string, number int64) bool {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for range 1000 {
		var id int64
		if err := conn.QueryRow(ctx, `INSERT INTO terms (name, holder, until) VALUES (gen_random_uuid()::text, 'b', 1) RETURNING pg_current_xact_id()::text::bigint`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		if id >= number {
			return id == number
		}
	}
	return false
}
