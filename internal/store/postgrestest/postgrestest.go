// Package postgrestest gives tests databases on PostgreSQL that have the schema and no rows,
// and what tests of several packages do with them.
package postgrestest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster/river"
	"github.com/stepmill/stepmill/internal/store/postgres"
	server "github.com/stepmill/stepmill/test/postgres"
)

const (
	// Timeout is the limit on the time of transactions, high enough for a busy machine. It is
	// also how long a test waits for what must happen.
	Timeout = 3 * time.Minute
	// ShortTimeout is for tests that wait until a limit is reached. All limits that follow
	// from it still bear a machine that stalls for a few seconds.
	ShortTimeout = 30 * time.Second
)

var (
	template     string
	makeTemplate sync.Once
)

// Template returns the name of a template database with the schema, which is created once.
func Template(t *testing.T) string {
	t.Helper()
	makeTemplate.Do(func() {
		template = server.Shared(t).NewTemplate(t, func(url string) error {
			return postgres.Migrate(t.Context(), postgres.Options{URL: url, Name: "test", Timeout: Timeout}, river.Migrate)
		})
	})
	return template
}

// New creates a database with the schema and no rows.
func New(t *testing.T) postgres.Options {
	t.Helper()
	return postgres.Options{URL: server.Shared(t).CopyDatabase(t, Template(t)), Name: "test", Timeout: Timeout}
}

// Open opens a database until the test ends.
func Open(t *testing.T, opts postgres.Options) *postgres.DB {
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

// ListenConfig returns the configuration of a separate connection.
func ListenConfig(t *testing.T, opts postgres.Options) *pgx.ConnConfig {
	t.Helper()
	config, err := new(postgres.DB).Configure(opts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return config.ConnConfig
}

// Eventually waits until a condition holds.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for start := clock.Monotonic(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > Timeout {
			t.Fatalf("%s: timeout", what)
		}
	}
}
