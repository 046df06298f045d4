// Package postgres is the database of several nodes: it implements store.Driver
// on PostgreSQL 14 or newer, commits units of many runs together, and knows
// nothing of the tables beyond their migrations.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/store"
)

// Options say how to reach a database.
type Options struct {
	URL string
	// Connections is how many connections this process may have, at least 7.
	Connections int
	// Pooled says that a pooler stands in front that lends connections out for
	// one transaction at a time: nothing may stay with a connection.
	Pooled bool
	// Name tells this process apart in the database: that of a node is its id.
	Name string
}

// reserved is how many connections are kept for what must not wait: heartbeats,
// the question whether the service is ready, what became of a COMMIT.
const reserved = 2

// DB is an open database.
type DB struct {
	pool    *pgxpool.Pool
	reserve *pgxpool.Pool
	groups  *groups
	pooled  bool
	counts  *counts
	dialled dialled
	horizon horizon

	begin, beginReading []string
	// several has the first statements of reads that need more than one: these
	// get a transaction, the others are their own.
	several sync.Map
}

// Open connects to the database and checks that its schema is one this binary
// can work with. It does not wait for a database that is away.
func Open(ctx context.Context, opts Options) (*DB, error) {
	db := &DB{pooled: opts.Pooled, counts: newCounts(), begin: []string{begin, transactionID}, beginReading: []string{beginReading}}
	if opts.Pooled {
		once := settingsOnce(opts.Name)
		db.begin, db.beginReading = []string{begin, once, transactionID}, []string{beginReading, once}
	}
	var err error
	if db.pool, err = db.newPool(ctx, opts, max(7, opts.Connections)-reserved); err != nil {
		return nil, err
	}
	if db.reserve, err = db.newPool(ctx, opts, reserved); err != nil {
		db.pool.Close()
		return nil, err
	}
	db.groups = newGroups(db)
	if err := checkSchema(ctx, db.reserve); err != nil {
		db.close()
		return nil, err
	}
	// Without the mark the outcome of a COMMIT that is not answered stays unknown.
	_, _ = db.reserve.Exec(ctx, markRecovery)
	return db, nil
}

// markRecovery leaves a mark that a recovery from a crash takes away.
const markRecovery = `INSERT INTO recovery (id, mark) VALUES (1, gen_random_uuid()::text) ON CONFLICT (id) DO NOTHING`

// Reserved is the pool of connections for what must not wait.
func (db *DB) Reserved() *pgxpool.Pool { return db.reserve }

// Answers tells whether the database does, on a connection that is kept for such
// questions.
func (db *DB) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return db.reserve.Ping(ctx)
}

// readyTime is how long the database may take to answer for a node to be ready.
const readyTime = 3 * time.Second

// Run commits units until the context ends, then waits for those under way and
// closes the connections.
func (db *DB) Run(ctx context.Context) error {
	err := db.groups.run(ctx)
	db.close()
	return err
}

func (db *DB) close() {
	db.pool.Close()
	db.reserve.Close()
}

// idleTime is how long a transaction may wait for the next statement of its unit.
// Units are there within milliseconds, unless their node is paused or cut off:
// then what they have locked keeps others waiting, also from taking its runs
// over.
const idleTime = "3s"

// statementTime and lockTime are how long a statement may take, and how long it
// may wait for a lock.
const statementTime, lockTime = "10s", "2s"

// settings are given to every connection. READ COMMITTED is what units are
// written for: where that is not enough they lock. Every statement that is run
// often has an index. A plan that is made while the queue of runs is almost empty
// would rather read all of the table, and is kept while it grows, until the next
// time that its statistics are taken: no plan does, where there is an index.
func settings(name string) map[string]string {
	return map[string]string{
		"application_name":                    application(name),
		"statement_timeout":                   statementTime,
		"lock_timeout":                        lockTime,
		"idle_in_transaction_session_timeout": idleTime,
		"synchronous_commit":                  "on",
		"default_transaction_isolation":       "read committed",
		"timezone":                            "UTC",
		"enable_seqscan":                      "off",
		"jit":                                 "off",
	}
}

// settingsOnce gives the same to one transaction, where connections are shared
// with others.
func settingsOnce(name string) string {
	return `SELECT set_config('statement_timeout', '` + statementTime + `', true), set_config('lock_timeout', '` + lockTime + `', true),
	set_config('idle_in_transaction_session_timeout', '` + idleTime + `', true), set_config('synchronous_commit', 'on', true),
	set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
	set_config('application_name', '` + strings.ReplaceAll(application(name), "'", "''") + `', true)`
}

// application is what the sessions of a process are known by.
func application(name string) string { return strings.TrimSpace("stepmill " + name) }

// configure reads the address of a database and fills in what every connection
// of Stepmill has.
func configure(opts Options, size int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(opts.URL)
	if err != nil {
		return nil, errors.New("--database-url is not the address of a PostgreSQL database, such as postgres://user:password@host:5432/name")
	}
	config.MaxConns = int32(size)
	config.MinConns = 1
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = time.Minute
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	// A connection that was lost is noticed when it is used, and the unit tried
	// again.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > config.HealthCheckPeriod
	}
	if opts.Pooled {
		// Neither settings nor prepared statements would stay with us.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return config, nil
	}
	maps.Copy(config.ConnConfig.RuntimeParams, settings(opts.Name))
	return config, nil
}

// Place is where an address leads to, for people to read: without the password,
// and whatever else lets in.
func Place(url string) string {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return "the shared database"
	}
	name := cmp.Or(config.Database, config.User) // as PostgreSQL does
	return fmt.Sprintf("database %s on %s", name, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
}

func (db *DB) newPool(ctx context.Context, opts Options, size int) (*pgxpool.Pool, error) {
	config, err := db.Configure(opts, size)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return pool, nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

var _ store.Driver = (*DB)(nil)
