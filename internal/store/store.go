// Package store owns the tables. It holds every SQL statement that both databases
// understand, written once in PostgreSQL's dialect, on top of a small Driver that
// each database provides. Each exported method is one transaction. Business rules
// live in the packages above; the store only checks the conditions it is given.
package store

import (
	"context"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/txn"
)

// Driver is a database.
type Driver interface {
	// Read calls fn with a consistent view of the committed data.
	Read(ctx context.Context, fn func(Conn) error) error
	// ReadAll runs the queries in one batch, on a consistent view of the
	// committed data. It may call queries again to start over.
	ReadAll(ctx context.Context, queries func() []Query) error
	// Write calls fn in a transaction and returns nil once its writes are
	// durable. After an error none of its writes remain. Write may call fn again
	// after a conflict, and other callers' functions may run before or after it
	// in the same database transaction.
	Write(ctx context.Context, fn func(Conn) error) error
	// WriteRun is Write for a transaction about a single run. Apart from rows of
	// that run, fn may touch only what it has locked. Statements of other runs'
	// transactions may be interleaved with its own.
	WriteRun(ctx context.Context, runID string, fn func(Conn) error) error
}

// Conn runs statements. Placeholders are $1, $2, …; a time.Time is stored as
// microseconds.
type Conn interface {
	// Exec runs a statement and returns the number of rows it affected.
	Exec(statement string, args ...any) (affected int64, err error)
	// Do runs a statement whose result the caller does not need. It runs before
	// the next Exec or Query; its error may be reported as late as the end of the
	// transaction.
	Do(statement string, args ...any) error
	// Expect runs a statement that must find or change exactly one row. If it
	// does not, the transaction is rolled back and returns ErrUnexpected, which,
	// like an error of Do, may be reported late.
	Expect(statement string, args ...any) error
	Query(statement string, args []any, each func(Row) error) error
	// Tally runs a statement that adds its first argument to a counter. If
	// several transactions run it with otherwise equal arguments, the driver may
	// run it once with the sum. Each is called with the rows once the transaction
	// is durable and before it returns; its error is ignored. It may not be
	// called if the response to the commit was lost.
	Tally(statement string, n int64, args []any, each func(Row) error) error
	// Lock blocks other transactions that request the same lock until this one
	// ends. It does nothing where transactions run one at a time.
	Lock(Lock) error
}

// Query is a statement and the function that reads its rows.
type Query struct {
	Statement string
	Args      []any
	Each      func(Row) error
}

// statement is the text of a statement with its arguments.
type statement struct {
	text string
	args []any
}

// ErrUnexpected is returned by a transaction in which an Expect did not match
// exactly one row.
var ErrUnexpected = errors.New("a statement did not find or change exactly one row")

// Row is one row of a result.
type Row interface {
	// Scan copies the columns into pointers to string, int, int64, bool, []byte
	// or time.Time. A nullable column can be scanned into a pointer to a pointer;
	// NULL leaves other destinations at their zero value.
	Scan(dest ...any) error
}

// Notify holds callbacks that the store calls after a commit. They must not
// block.
type Notify struct {
	// Wake passes on a run that has work to do.
	Wake func(run.Wake)
	// AnswerArrived is called when an answer arrived for a run that this or
	// another node is executing.
	AnswerArrived func(runID string)
	// Changed is called when steps of a run were written.
	Changed func(runID string)
	// HeldBack is called when a new run waits for its concurrency limit.
	HeldBack func(runID string)
	// Started and Ended are called when a run starts and ends.
	Started func(workspaceID string)
	Ended   func(run.Completion)
	// Recorded is called when an event of a workspace was written.
	Recorded func(workspaceID string)
	// Deliverable is called when there is a delivery to send to a webhook.
	Deliverable func()
	// Scheduled is called when a trigger of the given type was scheduled,
	// possibly earlier than all others.
	Scheduled func(kind string, at time.Time)
	// EventPending is called when there is an event for a trigger to fire on.
	EventPending func(at time.Time)
	// WorkflowDeleted is called when the runs of a workflow became void.
	WorkflowDeleted func(workflowID string)
	// WorkspaceCreated is called when a workspace after the first was created.
	WorkspaceCreated func()
}

// Store implements the Store interfaces of the domain packages.
type Store struct {
	driver  Driver
	notify  Notify
	cluster *Cluster // nil for a single process

	subscribers  subscriberCache
	workflowRefs workflowRefs
	sweepCursor  atomic.Pointer[overdueRun] // where the next Sweep continues
}

// New returns a store on top of a driver. Functions of notify may be nil.
func New(driver Driver, notify Notify) *Store {
	if notify.Wake == nil {
		notify.Wake = func(run.Wake) {}
	}
	if notify.AnswerArrived == nil {
		notify.AnswerArrived = func(string) {}
	}
	if notify.Changed == nil {
		notify.Changed = func(string) {}
	}
	if notify.HeldBack == nil {
		notify.HeldBack = func(string) {}
	}
	if notify.Started == nil {
		notify.Started = func(string) {}
	}
	if notify.Ended == nil {
		notify.Ended = func(run.Completion) {}
	}
	if notify.Recorded == nil {
		notify.Recorded = func(string) {}
	}
	if notify.Deliverable == nil {
		notify.Deliverable = func() {}
	}
	if notify.Scheduled == nil {
		notify.Scheduled = func(string, time.Time) {}
	}
	if notify.EventPending == nil {
		notify.EventPending = func(time.Time) {}
	}
	if notify.WorkflowDeleted == nil {
		notify.WorkflowDeleted = func(string) {}
	}
	if notify.WorkspaceCreated == nil {
		notify.WorkspaceCreated = func() {}
	}
	return &Store{driver: driver, notify: notify}
}

// transaction is a transaction in progress. It collects what finalize writes at
// its end (events, audit entries, freed slots, runs to wake, jobs to enqueue) and the callbacks
// to run after the commit.
type transaction struct {
	Conn
	optimistic         bool // relies on cached data and is rolled back if that is stale
	events             []event.Event
	audit              []audit.Record
	loads              map[string]load
	subscriberVersions map[string]int64 // by workspace
	subscribersDirty   map[string]bool  // workspaces whose subscribers this transaction changes
	toWake             []string         // run ids; in a cluster only
	jobs               []run.Job
	after              []func()
}

func (tx *transaction) afterCommit(fn func()) { tx.after = append(tx.after, fn) }

// write runs fn in a transaction. If the context already carries one, fn joins
// it.
func (s *Store) write(ctx context.Context, fn func(*transaction) error) error {
	if outer, ok := txn.From(ctx).(*transaction); ok {
		return fn(outer)
	}
	return s.commit(ctx, transaction{}, fn, s.driver.Write)
}

// writeRun is write for a transaction that touches only rows of one run and what
// it has locked. It uses Expect instead of reading conditions first, and returns
// false, without having changed anything, if one of them did not hold.
func (s *Store) writeRun(ctx context.Context, runID string, fn func(*transaction) error) (bool, error) {
	err := s.commit(ctx, transaction{optimistic: true}, fn, func(ctx context.Context, body func(Conn) error) error {
		return s.driver.WriteRun(ctx, runID, body)
	})
	if errors.Is(err, ErrUnexpected) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) commit(ctx context.Context, initial transaction, fn func(*transaction) error, write func(context.Context, func(Conn) error) error) error {
	tx := &transaction{}
	err := write(ctx, func(c Conn) error {
		*tx = initial // the transaction may be retried
		tx.Conn = c
		if err := fn(tx); err != nil {
			return err
		}
		return s.finalize(ctx, tx)
	})
	if err != nil {
		return err
	}
	for _, callback := range tx.after {
		callback()
	}
	return nil
}

// nested reports whether the context carries a transaction that writes would
// join.
func nested(ctx context.Context) bool { return txn.From(ctx) != nil }

// read runs fn on a consistent view. Inside a transaction, fn sees that
// transaction's writes.
func (s *Store) read(ctx context.Context, fn func(Conn) error) error {
	if outer, ok := txn.From(ctx).(*transaction); ok {
		return fn(outer.Conn)
	}
	return s.driver.Read(ctx, fn)
}

// readAll runs independent queries on a consistent view.
func (s *Store) readAll(ctx context.Context, queries func() []Query) error {
	outer, ok := txn.From(ctx).(*transaction)
	if !ok {
		return s.driver.ReadAll(ctx, queries)
	}
	for _, q := range queries() {
		if err := outer.Query(q.Statement, q.Args, q.Each); err != nil {
			return err
		}
	}
	return nil
}

// collect returns a query that appends its rows to a slice.
func collect[T any](rows *[]T, statement string, args []any, scan func(Row) (T, error)) Query {
	*rows = []T{}
	return Query{statement, args, func(r Row) error {
		item, err := scan(r)
		*rows = append(*rows, item)
		return err
	}}
}

// within returns a context whose nested calls join the transaction.
func within(ctx context.Context, tx *transaction) context.Context {
	return txn.With(ctx, tx)
}

// list returns the rows of a query.
func list[T any](c Conn, statement string, args []any, scan func(Row) (T, error)) ([]T, error) {
	out := []T{}
	err := c.Query(statement, args, func(r Row) error {
		item, err := scan(r)
		out = append(out, item)
		return err
	})
	return out, err
}

// one returns the first row of a query, or nil.
func one[T any](c Conn, statement string, args []any, scan func(Row) (T, error)) (*T, error) {
	rows, err := list(c, statement, args, scan)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// number returns the only column of the only row of a query.
func number(c Conn, statement string, args ...any) (int, error) {
	n := 0
	err := c.Query(statement, args, func(r Row) error { return r.Scan(&n) })
	return n, err
}

// incrementUsage adds one to a workspace's counter, a column of workspaces, and
// returns false if it is already at the limit.
func incrementUsage(tx *transaction, kind, workspaceID string, atMost int) (bool, error) {
	n, err := tx.Exec(`UPDATE workspaces SET `+kind+` = `+kind+` + 1 WHERE id = $1 AND `+kind+` < $2`, workspaceID, atMost)
	return n == 1, err
}

// decrementUsage subtracts from a counter that incrementUsage raised.
func decrementUsage(tx *transaction, kind, workspaceID string, by int64) error {
	err := tx.Do(`UPDATE workspaces SET `+kind+` = `+kind+` - $1 WHERE id = $2`, by, workspaceID)
	return err
}

// before returns the position from which a descending list starts.
func before(position string) string {
	if position == "" {
		return "~" // sorts after every id
	}
	return position
}

// notIn adds a condition that excludes the given values. Their number is rounded
// up to a power of two by repeating the last one, which keeps the number of
// distinct prepared statements small.
func notIn(statement, column string, values []string, args []any) (string, []any) {
	if len(values) == 0 {
		return statement, args
	}
	placeholders := make([]string, 1<<bits.Len(uint(len(values)-1)))
	for i := range placeholders {
		args = append(args, values[min(i, len(values)-1)])
		placeholders[i] = `$` + strconv.Itoa(len(args))
	}
	return statement + ` AND ` + column + ` NOT IN (` + strings.Join(placeholders, `, `) + `)`, args
}

// orNil stores "" as NULL.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// bytesOrNil stores absent bytes as NULL.
func bytesOrNil(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// timeOrNil stores an absent time as NULL.
func timeOrNil(t *time.Time) any {
	if t == nil {
		return nil
	}
	return *t
}
