package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/postgres"
)

// shared measures one node, then two nodes, on a dedicated PostgreSQL on the same
// machine.
func (r *report) shared(ctx context.Context, dir string, length time.Duration) (err error) {
	db, node, err := nodes(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	first, err := node(start)
	if err != nil {
		return err
	}
	setup := &client{server: first}
	workspaces, err := setup.workspaces(tenants + 1)
	if err != nil {
		return err
	}
	fmt.Printf("\n%-44s %9s %9s %9s %9s %9s %9s %9s\n", "stepmill on PostgreSQL, one node", "per s", "p50 ms", "p99 ms", "CPU s/1k", "×commits", "×ceiling", "×embedded")
	fmt.Printf("ready after %s on a new database, %.0f MiB resident when idle\n", first.ready.Round(time.Millisecond), first.memory())
	list := rows(workspaces[:tenants])
	for _, row := range list {
		if err := r.measure([]*process{first}, row, length); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	second, err := node(restart)
	if err != nil {
		return err
	}
	time.Sleep(membershipDelay)
	fmt.Println("two nodes, clients distributed over both")
	for _, row := range list[2:5] {
		if err := r.measure([]*process{first, second}, row, length); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	third, err := node(restart)
	if err != nil {
		return err
	}
	if err := idleCost(ctx, db.URL("postgres")); err != nil {
		return err
	}
	if err := setup.deliveries(ctx, workspaces[tenants]); err != nil {
		return fmt.Errorf("deliveries: %w", err)
	}
	return firstError(third.stop(), second.stop(), first.stop())
}

// membershipDelay is how long nodes take to learn how many there are.
const membershipDelay = 4 * time.Second

// nodes starts a database and returns a function that starts nodes on it from the
// binary in the directory.
func nodes(ctx context.Context, dir string) (*postgres.Server, func(startFunc) (*process, error), error) {
	key := filepath.Join(dir, "master.key")
	if err := os.WriteFile(key, []byte(hex.EncodeToString(random(32))), 0o600); err != nil {
		return nil, nil, err
	}
	db, err := postgres.Launch(ctx, postgres.Options{MaxConnections: 100, Settings: map[string]string{"shared_buffers": "128MB"}})
	if err != nil {
		return nil, nil, err
	}
	return db, func(begin startFunc) (*process, error) {
		return begin(ctx, filepath.Join(dir, "stepmill"), "serve", "--listen", "127.0.0.1:0", "--database-url", db.URL("postgres"), "--master-key-file", key,
			"--log-level", "warn", "--egress-allow", "127.0.0.0/8")
	}, nil
}

// startFunc is start or restart.
type startFunc func(ctx context.Context, binary string, args ...string) (*process, error)

// idleCost prints the load that three idle nodes put on the database.
func idleCost(ctx context.Context, url string) error {
	const warmUp, period = 5 * time.Second, 20 * time.Second
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	transactions := func() (n int64, err error) {
		err = conn.QueryRow(ctx, `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
		return n, err
	}
	time.Sleep(warmUp)
	before, err := transactions()
	if err != nil {
		return err
	}
	time.Sleep(period)
	after, err := transactions()
	if err != nil {
		return err
	}
	fmt.Printf("three idle nodes: %.1f transactions per second in the database\n", float64(after-before)/period.Seconds())
	return nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
