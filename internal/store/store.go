// Package store owns the tables. It holds every SQL statement that both databases
// understand, written once in PostgreSQL's dialect, on top of package database. Each
// exported method is one transaction. Business rules live in the packages above; the
// store only checks the conditions it is given.
package store

import (
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/txn"
)

// DB runs the transactions of the stores below, each of which implements the interfaces of
// one domain package.
type DB struct {
	Accounts        Accounts
	Audit           Audit
	Connections     Connections
	Events          Events
	Files           Files
	Idempotency     Idempotency
	Installation    Installation
	Leases          Leases
	OwnIntegrations OwnIntegrations
	RateLimits      RateLimits
	Runs            Runs
	Secrets         Secrets
	State           State
	Subscriptions   Subscriptions
	Tables          Tables
	Triggers        Triggers
	Usage           Usage
	Webhooks        Webhooks
	Workflows       Workflows
	Workspaces      Workspaces

	driver database.Driver
	notify Notify
	queue  runqueue.Queue

	subscribers  *subscriberCache
	workflowRefs *workflowRefs
	// tx is the transaction that all methods are part of; nil: each is one of its own.
	tx *transaction
}

// New returns the stores on top of a driver. Functions of notify may be nil.
func New(driver database.Driver, notify Notify) *DB {
	notify = notify.complete()
	db := &DB{driver: driver, notify: notify, queue: runqueue.NewLocal(notify.Wake), subscribers: &subscriberCache{}, workflowRefs: &workflowRefs{}}
	db.open()
	return db
}

func (db *DB) open() {
	var (
		auditLog    = auditWriter{db}
		definitions = definitionReader{db}
		files       = fileReader{db}
		polls       = triggerPoller{db}
		workspaces  = workspaceReader{db}
	)
	db.Accounts = Accounts{db, workspaces, auditLog}
	db.Audit = Audit{db, auditLog}
	db.Connections = Connections{db, workspaces, auditLog}
	db.Events = Events{db}
	db.Files = Files{db, files}
	db.Idempotency = Idempotency{db}
	db.Installation = Installation{db}
	db.Leases = Leases{db}
	db.OwnIntegrations = OwnIntegrations{db}
	db.RateLimits = RateLimits{db}
	db.Runs = Runs{db, definitions, files}
	db.Secrets = Secrets{db}
	db.State = State{db}
	db.Subscriptions = Subscriptions{db, workspaces, polls}
	db.Tables = Tables{db}
	db.Triggers = Triggers{db, workspaces, polls}
	db.Usage = Usage{db}
	db.Webhooks = Webhooks{db}
	db.Workflows = Workflows{db, definitions, files}
	db.Workspaces = Workspaces{db, workspaces}
}

// in returns stores whose methods are part of the transaction. Without one it returns db.
func (db *DB) in(tx txn.Tx) *DB {
	if tx == nil {
		return db
	}
	bound := *db
	bound.tx = tx.(*transaction)
	bound.open()
	return &bound
}

// SetQueue replaces the queue of a single process.
func (db *DB) SetQueue(q runqueue.Queue) { db.queue = q }

// transaction is a transaction in progress. It collects what finalize writes at its
// end, such as events and audit entries, and the callbacks to run after the commit.
type transaction struct {
	database.Conn
	db         *DB
	queue      runqueue.Transaction
	optimistic bool // relies on cached data and is rolled back if that is stale
	events     []event.Event
	audit      []audit.Record
	after      []func()
}

// WriteTransaction implements txn.Tx.
func (tx *transaction) WriteTransaction() {}

// AfterCommit implements runqueue.Tx.
func (tx *transaction) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// Optimistic implements runqueue.Tx.
func (tx *transaction) Optimistic() bool { return tx.optimistic }

// Unwrap implements runqueue.Tx.
func (tx *transaction) Unwrap() database.Conn { return tx.Conn }

// WriteQueue implements runqueue.Store.
func (db *DB) WriteQueue(ctx context.Context, fn func(runqueue.Transaction) error) error {
	return db.write(ctx, func(tx *transaction) error { return fn(tx.queue) })
}

// ReadQueue implements runqueue.Store.
func (db *DB) ReadQueue(ctx context.Context, fn func(database.Conn) error) error {
	return db.read(ctx, fn)
}

func (db *DB) write(ctx context.Context, fn func(*transaction) error) error {
	if db.tx != nil {
		return fn(db.tx)
	}
	mustNotBypass(ctx)
	return db.commit(ctx, transaction{}, fn, db.driver.Write)
}

// transact returns what fn returns in a transaction, and a zero value if that is not committed.
func transact[T any](ctx context.Context, db *DB, fn func(*transaction) (T, error)) (T, error) {
	var result, none T
	err := db.write(ctx, func(tx *transaction) (err error) {
		result, err = fn(tx)
		return err
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

// writeRun is write for a transaction that touches only rows of one run and what
// it has locked. It uses Expect instead of reading conditions first, and returns
// false, without having changed anything, if one of them did not hold.
func (db *DB) writeRun(ctx context.Context, runID string, fn func(*transaction) error) (bool, error) {
	err := db.commit(ctx, transaction{optimistic: true}, fn, func(ctx context.Context, body func(database.Conn) error) error {
		return db.driver.WriteRun(ctx, runID, body)
	})
	if errors.Is(err, database.ErrUnexpected) {
		return false, nil
	}
	return err == nil, err
}

func (db *DB) commit(ctx context.Context, initial transaction, fn func(*transaction) error, write func(context.Context, func(database.Conn) error) error) error {
	tx := &transaction{}
	err := write(ctx, func(c database.Conn) error {
		*tx = initial // the transaction may be retried
		tx.Conn, tx.db, tx.queue = c, db, db.queue.Begin(tx)
		if err := fn(tx); err != nil {
			return err
		}
		return finalize(ctx, tx)
	})
	if err != nil {
		return err
	}
	for _, callback := range tx.after {
		callback()
	}
	return nil
}

// mustNotBypass panics if the caller is inside a transaction that it has not passed on. Such
// a write would wait for itself on SQLite. Such a read would not see what the transaction has
// written, and would need a second connection while it holds one, of which all may be held.
func mustNotBypass(ctx context.Context) {
	if txn.Inside(ctx) {
		panic("the store is used beside the transaction in progress")
	}
}

// read runs fn on a consistent view. Inside a transaction, fn sees that
// transaction's writes.
func (db *DB) read(ctx context.Context, fn func(database.Conn) error) error {
	if db.tx != nil {
		return fn(db.tx.Conn)
	}
	mustNotBypass(ctx)
	return db.driver.Read(ctx, fn)
}

// view returns what fn reads on a consistent view.
func view[T any](ctx context.Context, db *DB, fn func(database.Conn) (T, error)) (found T, err error) {
	err = db.read(ctx, func(c database.Conn) (err error) {
		found, err = fn(c)
		return err
	})
	return found, err
}

// readOne returns the first row of a query, or nil.
func readOne[T any](ctx context.Context, db *DB, statement string, args []any, scan func(database.Row) (T, error)) (*T, error) {
	return view(ctx, db, func(c database.Conn) (*T, error) { return database.One(c, statement, args, scan) })
}

func readList[T any](ctx context.Context, db *DB, statement string, args []any, scan func(database.Row) (T, error)) ([]T, error) {
	return view(ctx, db, func(c database.Conn) ([]T, error) { return database.List(c, statement, args, scan) })
}

// readValue returns the only column of the first row of a query, or a zero value.
func readValue[T any](ctx context.Context, db *DB, statement string, args ...any) (T, error) {
	return view(ctx, db, func(c database.Conn) (value T, err error) {
		err = c.Query(statement, args, func(r database.Row) error { return r.Scan(&value) })
		return value, err
	})
}

// readAll runs independent queries on a consistent view.
func (db *DB) readAll(ctx context.Context, queries func() []database.Query) error {
	if db.tx == nil {
		mustNotBypass(ctx)
		return db.driver.ReadAll(ctx, queries)
	}
	for _, q := range queries() {
		if err := db.tx.Query(q.Statement, q.Args, q.Each); err != nil {
			return err
		}
	}
	return nil
}

// incrementUsage adds one to a workspace's counter, a column of workspaces, and
// returns false if it is already at the limit.
func incrementUsage(tx *transaction, kind, workspaceID string, atMost int) (bool, error) {
	n, err := tx.Exec(`UPDATE workspaces SET `+kind+` = `+kind+` + 1 WHERE id = $1 AND `+kind+` < $2`, workspaceID, atMost)
	return n == 1, err
}

// decrementUsage subtracts from a counter that incrementUsage raised.
func decrementUsage(tx *transaction, kind, workspaceID string, by int64) error {
	return tx.Do(`UPDATE workspaces SET `+kind+` = `+kind+` - $1 WHERE id = $2`, by, workspaceID)
}

// before returns the position from which a descending list starts.
func before(position string) string {
	if position == "" {
		return "~" // sorts after every id
	}
	return position
}
