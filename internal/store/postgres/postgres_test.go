package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/storetest"
	server "github.com/stepmill/stepmill/test/postgres"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, notify store.Notify) *store.DB {
		return store.New(open(t, newDatabase(t)), notify)
	})
}

// newDatabase creates a database with the schema and no rows.
func newDatabase(t *testing.T) postgres.Options {
	t.Helper()
	return postgres.Options{URL: server.Shared(t).CopyDatabase(t, migratedDatabase(t)), Name: "test", Timeout: timeout}
}

// timeout is the limit on the time of transactions, high enough for a busy machine. It
// is also how long a test waits for what must happen.
const timeout = 3 * time.Minute

// shortTimeout is for tests that wait until a limit is reached. All limits that follow
// from it still bear a machine that stalls for a few seconds.
const shortTimeout = 30 * time.Second

var (
	template     string
	makeTemplate sync.Once
)

// migratedDatabase returns the name of a template database with the schema, which
// is created once.
func migratedDatabase(t *testing.T) string {
	makeTemplate.Do(func() {
		template = server.Shared(t).NewTemplate(t, func(url string) error {
			return postgres.Migrate(t.Context(), postgres.Options{URL: url, Name: "test", Timeout: timeout}, river.Migrate)
		})
	})
	return template
}

// open opens a database until the test ends.
func open(t *testing.T, opts postgres.Options) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := db.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return db
}

func listenConfig(t *testing.T, opts postgres.Options) *pgx.ConnConfig {
	t.Helper()
	config, err := new(postgres.DB).Configure(opts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return config.ConnConfig
}

// connect returns a separate connection until the test ends.
func connect(t *testing.T, opts postgres.Options) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), listenConfig(t, opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: timeout", what)
		}
	}
}
