package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
)

// throughBouncer connects without prepared statements, which older versions of
// PgBouncer do not track.
func throughBouncer(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	return connect(t, url+"&default_query_exec_mode=exec")
}

func TestBouncerSharesConnectionsByTransaction(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	server := postgres.Shared(t)
	database := query[string](t, connect(t, server.NewDatabase(t)), "SELECT current_database()")
	bouncer := postgres.StartBouncer(t, postgres.BouncerOptions{Server: server, PoolSize: 1})
	backends := map[int]bool{}
	for range 5 {
		conn := throughBouncer(t, bouncer.URL(database))
		backends[query[int](t, conn, "SELECT pg_backend_pid()")] = true
		if got := query[string](t, conn, "SELECT current_database()"); got != database {
			t.Fatalf("connected to %s, want %s", got, database)
		}
	}
	if len(backends) != 1 {
		t.Errorf("5 clients have %d connections to the server, want 1", len(backends))
	}
}
