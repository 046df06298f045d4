// Package store owns the tables: every statement that both databases
// understand is written here once, in the style of PostgreSQL, on top of a
// small Driver that a database provides. Each exported method is one atomic
// unit. Rules do not live here: what may happen is decided above, the store
// only checks the conditions it is given.
package store

import (
	"context"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
)

// Driver is a database.
type Driver interface {
	// Read calls fn with a consistent view of what is committed.
	Read(ctx context.Context, fn func(Conn) error) error
	// ReadAll runs queries on a consistent view of what is committed, all of them
	// in one go. It may ask for them again and begin anew.
	ReadAll(ctx context.Context, queries func() []Query) error
	// Write calls fn in a transaction and returns nil when all it did is
	// durable; after an error nothing of it is there. It may call fn again
	// after a conflict, and it may share the transaction with other units that
	// run before or after it.
	Write(ctx context.Context, fn func(Conn) error) error
	// WriteRun is Write for a unit of one run that touches, beside rows of that
	// run, only what it has locked. Statements of units of other runs may run
	// between its own, in the same transaction.
	WriteRun(ctx context.Context, runID string, fn func(Conn) error) error
}

// Conn runs statements. Placeholders are $1, $2, …; a time.Time is stored as
// microseconds.
type Conn interface {
	// Exec runs a statement and tells how many rows it touched.
	Exec(statement string, args ...any) (affected int64, err error)
	// Do runs a statement of which only the effect is wanted. It runs before
	// the next Exec or Query, and its error may come as late as the end of the
	// unit.
	Do(statement string, args ...any) error
	// Expect runs a statement that has one row to find or to change. When it has
	// not, the unit comes to nothing and ends with ErrUnexpected, which may come as
	// late as an error of Do.
	Expect(statement string, args ...any) error
	Query(statement string, args []any, each func(Row) error) error
	// Tally runs a statement whose first argument is added to something. Where
	// several units run one that is otherwise the same, it may be run once, with the
	// sum. Its rows are for when the unit is durable: each is called before its end
	// is told, and its error changes nothing. After a commit whose answer was lost
	// it may not be called.
	Tally(statement string, n int64, args []any, each func(Row) error) error
	// Lock keeps other units that ask for the same lock waiting until this one
	// has ended. Where units run one after the other it does nothing.
	Lock(Lock) error
}

// Query is a statement whose rows are wanted.
type Query struct {
	Statement string
	Args      []any
	Each      func(Row) error
}

// statement is one with what it is about.
type statement struct {
	text string
	args []any
}

// ErrUnexpected is what a unit ends with when something is not as it expected.
var ErrUnexpected = errors.New("something is not as the unit expected it")

// Row is one row of a result.
type Row interface {
	// Scan copies the columns into pointers to string, int, int64, bool,
	// []byte, time.Time, or into a pointer to a pointer for what may be NULL;
	// NULL leaves other destinations at their zero value.
	Scan(dest ...any) error
}

// Notify is told, after the commit, what happened. Its functions must not
// block.
type Notify struct {
	// Wake hands over runs that have something to do.
	Wake func(run.Wake)
	// Stirred tells that there is news for a run that this or another node works
	// on.
	Stirred func(runID string)
	// Changed tells that steps of a run were written.
	Changed func(runID string)
	// HeldBack tells that a new run waits for one of the places that it shares.
	HeldBack func(runID string)
	// Started and Ended tell of the beginning and the end of a run.
	Started func(workspaceID string)
	Ended   func(run.Ending)
	// Recorded tells that an event of a workspace was written.
	Recorded func(workspaceID string)
	// Deliverable tells that there is something to send to a webhook.
	Deliverable func()
	// Scheduled tells that a trigger of a type fires at a time, maybe before all
	// others.
	Scheduled func(kind string, at time.Time)
	// Occasion tells that there is an event that a trigger fires on.
	Occasion func(at time.Time)
	// WorkflowDeleted tells that all runs of a workflow are void.
	WorkflowDeleted func(workflowID string)
}

// Store implements the Store interfaces of the nouns.
type Store struct {
	driver  Driver
	notify  Notify
	cluster *Cluster // nil: a process by itself

	audiences audiences
	heads     heads
	swept     atomic.Pointer[late] // how far the look for lost runs has come
}

// New makes a store on a driver. Functions of notify that are nil are not
// called.
func New(driver Driver, notify Notify) *Store {
	if notify.Wake == nil {
		notify.Wake = func(run.Wake) {}
	}
	if notify.Stirred == nil {
		notify.Stirred = func(string) {}
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
		notify.Ended = func(run.Ending) {}
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
	if notify.Occasion == nil {
		notify.Occasion = func(time.Time) {}
	}
	if notify.WorkflowDeleted == nil {
		notify.WorkflowDeleted = func(string) {}
	}
	return &Store{driver: driver, notify: notify}
}

// unit is an atomic unit under way, with what it ends with: the runs it wakes,
// the slots it gives back, its events, the runs it hands over; and with what to
// tell once it is durable.
type unit struct {
	Conn
	expecting bool // it takes for granted what is remembered, and comes to nothing if it is wrong
	events    []event.Event
	loads     map[string]load
	audience  map[string]int64 // by workspace: its number
	changed   map[string]bool  // workspaces whose audience is another one now
	waking    []string         // runs, in a cluster
	handovers []run.Handover
	after     []func()
}

func (u *unit) afterCommit(tell func()) { u.after = append(u.after, tell) }

type unitKey struct{}

// write runs fn as one atomic unit. Inside another unit of the same context it
// becomes part of that one.
func (s *Store) write(ctx context.Context, fn func(*unit) error) error {
	if outer, ok := ctx.Value(unitKey{}).(*unit); ok {
		return fn(outer)
	}
	return s.commit(ctx, unit{}, fn, s.driver.Write)
}

// writeRun is write for a unit that touches nothing but rows of one run and what
// it has locked. Such a unit asks for nothing that it can expect; it answers false
// when something was otherwise, having changed nothing.
func (s *Store) writeRun(ctx context.Context, runID string, fn func(*unit) error) (bool, error) {
	err := s.commit(ctx, unit{expecting: true}, fn, func(ctx context.Context, body func(Conn) error) error {
		return s.driver.WriteRun(ctx, runID, body)
	})
	if errors.Is(err, ErrUnexpected) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) commit(ctx context.Context, begun unit, fn func(*unit) error, write func(context.Context, func(Conn) error) error) error {
	u := &unit{}
	err := write(ctx, func(c Conn) error {
		*u = begun // also when the unit runs again
		u.Conn = c
		if err := fn(u); err != nil {
			return err
		}
		return s.seal(ctx, u)
	})
	if err != nil {
		return err
	}
	for _, tell := range u.after {
		tell()
	}
	return nil
}

// nested tells whether a unit of this context would become part of another one.
func nested(ctx context.Context) bool { return ctx.Value(unitKey{}) != nil }

// read runs fn on a consistent view; inside a unit it sees that unit's writes.
func (s *Store) read(ctx context.Context, fn func(Conn) error) error {
	if outer, ok := ctx.Value(unitKey{}).(*unit); ok {
		return fn(outer.Conn)
	}
	return s.driver.Read(ctx, fn)
}

// readAll runs queries on a consistent view, which do not depend on each other.
func (s *Store) readAll(ctx context.Context, queries func() []Query) error {
	outer, ok := ctx.Value(unitKey{}).(*unit)
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

// into makes a query whose rows are collected.
func into[T any](rows *[]T, statement string, args []any, scan func(Row) (T, error)) Query {
	*rows = []T{}
	return Query{statement, args, func(r Row) error {
		item, err := scan(r)
		*rows = append(*rows, item)
		return err
	}}
}

// within makes the unit the one that nested calls join.
func within(ctx context.Context, u *unit) context.Context {
	return context.WithValue(ctx, unitKey{}, u)
}

// list collects the rows of a query.
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

// grow adds one to what a workspace holds of a kind, and answers false when it
// holds atMost already. The kind is a column of workspaces.
func grow(u *unit, kind, workspaceID string, atMost int) (bool, error) {
	n, err := u.Exec(`UPDATE workspaces SET `+kind+` = `+kind+` + 1 WHERE id = $1 AND `+kind+` < $2`, workspaceID, atMost)
	return n == 1, err
}

// shrink takes back what grow added.
func shrink(u *unit, kind, workspaceID string, by int64) error {
	err := u.Do(`UPDATE workspaces SET `+kind+` = `+kind+` - $1 WHERE id = $2`, by, workspaceID)
	return err
}

// before is the position to start a descending list from.
func before(position string) string {
	if position == "" {
		return "~" // after every id
	}
	return position
}

// without adds the condition that a column has none of the given values. Their
// number is rounded up by repeating one, so that there are few different
// statements: each is prepared once and kept.
func without(statement, column string, values []string, args []any) (string, []any) {
	if len(values) == 0 {
		return statement, args
	}
	places := make([]string, 1<<bits.Len(uint(len(values)-1)))
	for i := range places {
		args = append(args, values[min(i, len(values)-1)])
		places[i] = `$` + strconv.Itoa(len(args))
	}
	return statement + ` AND ` + column + ` NOT IN (` + strings.Join(places, `, `) + `)`, args
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
