// Package database is the seam between statements and the databases that run them:
// what a database offers, the locks that transactions take, and helpers for reading
// rows. internal/store/sqlite and internal/store/postgres implement Driver.
package database

import (
	"context"
	"errors"
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

// Statement is the text of a statement with its arguments.
type Statement struct {
	Text string
	Args []any
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
