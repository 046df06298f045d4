// Package postgres is the database for clusters. It implements store.Driver on
// PostgreSQL 14 or newer and commits transactions of many runs together. Apart
// from the migrations it knows nothing about the tables.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/database"
)

// Options configure how to connect to a database.
type Options struct {
	URL string
	// Connections is the maximum number of connections of this process, at least
	// 7.
	Connections int
	// Pooled is set if a transaction pooler such as PgBouncer is in front of the
	// database: no state may stay with a connection.
	Pooled bool
	// Name identifies this process in the database. For a node it is the node's
	// id.
	Name string
	// Timeout bounds a transaction, however long its caller would wait. All other
	// limits on time follow from it. It defaults to DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is the default limit on the time of a transaction.
const DefaultTimeout = 10 * time.Second

type limits struct {
	// transaction bounds a transaction from its first statement to its end, and
	// statement each of its statements.
	transaction, statement time.Duration
	// connect bounds the making of a connection, acquire the wait for a free one.
	connect, acquire time.Duration
	// idle bounds how long a transaction waits for its next statement. That
	// normally takes milliseconds, unless the node is paused or disconnected: then
	// its locks block others, including those that take over its runs.
	idle time.Duration
	// lock bounds how long a statement waits for a lock.
	lock time.Duration
	// ping bounds how long the database may take to respond to Ping.
	ping time.Duration
	// retry is how long a transaction is retried while the database is unavailable.
	retry time.Duration
	// resolve is how long the database is asked for the outcome of a COMMIT.
	resolve time.Duration
	// rollback bounds a ROLLBACK, horizon the query for open transactions.
	rollback, horizon time.Duration
}

func (o Options) limits() limits {
	t := cmp.Or(o.Timeout, DefaultTimeout)
	return limits{
		transaction: t, statement: t, connect: t / 2, acquire: t / 2,
		idle: t * 3 / 10, lock: t / 5, ping: t * 3 / 10, retry: t / 5, resolve: t / 2,
		rollback: t / 10, horizon: t / 10,
	}
}

// reserved is the number of connections reserved for what must not wait:
// heartbeats, readiness checks, and finding out the outcome of a COMMIT.
const reserved = 2

// DB is an open database.
type DB struct {
	pool    *pgxpool.Pool
	reserve *pgxpool.Pool
	groups  *groups
	pooled  bool
	counts  *counts
	dialed  addrLog
	horizon horizon

	limits              limits
	begin, beginReading []string
	// multiStatement holds the first statement of every read that turned out to
	// need more than one. Those get a transaction; the others run without.
	multiStatement sync.Map
}

// Open connects to the database and checks that this binary supports its schema.
// It does not wait for a database that is unavailable.
func Open(ctx context.Context, opts Options) (*DB, error) {
	db := &DB{pooled: opts.Pooled, counts: newCounts(), limits: opts.limits(), begin: []string{begin, transactionID}, beginReading: []string{beginReading}}
	if opts.Pooled {
		perTransaction := transactionSettings(opts)
		db.begin, db.beginReading = []string{begin, perTransaction, transactionID}, []string{beginReading, perTransaction}
	}
	var err error
	if db.pool, err = db.newPool(ctx, opts, max(7, opts.Connections)-reserved); err != nil {
		return nil, err
	}
	if db.reserve, err = db.newPool(ctx, opts, reserved); err != nil {
		db.pool.Close()
		return nil, err
	}
	db.groups = &groups{db: db, queue: make(chan *groupedTx, queueLength), startToken: make(chan struct{}, 1), done: make(chan struct{})}
	if err := checkSchema(ctx, db.reserve); err != nil {
		db.close()
		return nil, err
	}
	// Without the mark, the outcome of a COMMIT without a response stays unknown.
	_, _ = db.reserve.Exec(ctx, markRecovery)
	return db, nil
}

const markRecovery = `INSERT INTO recovery (id, mark) VALUES (1, gen_random_uuid()::text) ON CONFLICT (id) DO NOTHING`

// Pool returns the pool of connections for everything else.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Reserved returns the pool of connections for what must not wait.
func (db *DB) Reserved() *pgxpool.Pool { return db.reserve }

// Ping checks, on a reserved connection, that the database responds.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.limits.ping)
	defer cancel()
	return db.reserve.Ping(ctx)
}

// Run commits transactions until the context ends, then waits for those in flight
// and closes the connections.
func (db *DB) Run(ctx context.Context) error {
	err := db.groups.run(ctx)
	db.close()
	return err
}

func (db *DB) close() {
	db.pool.Close()
	db.reserve.Close()
}

// sessionSettings apply to every connection. Transactions are written for READ
// COMMITTED and take locks where that is not enough. Every frequent statement has
// an index. A plan made while the queue of runs is almost empty would prefer a
// sequential scan, and would be reused while the queue grows, until the next
// ANALYZE; enable_seqscan = off prevents that.
func sessionSettings(opts Options) map[string]string {
	limits := opts.limits()
	return map[string]string{
		"application_name":                    applicationName(opts.Name),
		"statement_timeout":                   milliseconds(limits.statement),
		"lock_timeout":                        milliseconds(limits.lock),
		"idle_in_transaction_session_timeout": milliseconds(limits.idle),
		"synchronous_commit":                  "on",
		"default_transaction_isolation":       "read committed",
		"timezone":                            "UTC",
		"enable_seqscan":                      "off",
		"jit":                                 "off",
	}
}

// transactionSettings returns a statement that applies the same settings to one
// transaction, for connections shared through a pooler.
func transactionSettings(opts Options) string {
	limits := opts.limits()
	return `SELECT set_config('statement_timeout', '` + milliseconds(limits.statement) + `', true), set_config('lock_timeout', '` + milliseconds(limits.lock) + `', true),
	set_config('idle_in_transaction_session_timeout', '` + milliseconds(limits.idle) + `', true), set_config('synchronous_commit', 'on', true),
	set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
	set_config('application_name', '` + strings.ReplaceAll(applicationName(opts.Name), "'", "''") + `', true)`
}

// milliseconds formats a limit as PostgreSQL reads it. Zero would mean no limit.
func milliseconds(limit time.Duration) string {
	return strconv.FormatInt(max(1, limit.Milliseconds()), 10)
}

// applicationName returns the name that the sessions of a process have in the
// database.
func applicationName(name string) string { return strings.TrimSpace("stepmill " + name) }

// configure parses the address of a database and applies the common
// configuration.
func configure(opts Options, size int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(opts.URL)
	if err != nil {
		return nil, errors.New("--database-url is not the address of a PostgreSQL database, such as postgres://user:password@host:5432/name")
	}
	config.MaxConns = int32(size)
	config.MinConns = 1
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = time.Minute
	config.ConnConfig.ConnectTimeout = opts.limits().connect
	// A lost connection is noticed when it is used, and the transaction is
	// retried.
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > config.HealthCheckPeriod
	}
	if opts.Pooled {
		// Settings and prepared statements would not stay with the connection.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return config, nil
	}
	maps.Copy(config.ConnConfig.RuntimeParams, sessionSettings(opts))
	return config, nil
}

// Describe returns a readable description of an address without credentials.
func Describe(url string) string {
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

var _ database.Driver = (*DB)(nil)
