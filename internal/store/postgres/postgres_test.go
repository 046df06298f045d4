package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/postgrestest"
	"github.com/stepmill/stepmill/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, notify store.Notify) *store.DB {
		return store.New(postgrestest.Open(t, postgrestest.New(t)), notify)
	})
}

// connect returns a separate connection until the test ends.
func connect(t *testing.T, opts postgres.Options) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), postgrestest.ListenConfig(t, opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
