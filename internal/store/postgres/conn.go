package postgres

import (
	"context"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/database"
)

// sendFunc runs statements of a transaction. Those of several transactions may
// share a round trip.
type sendFunc func([]*statement) error

// conn implements store.Conn for one transaction. Statements whose result is not
// needed are deferred and sent together with the next one whose result is.
type conn struct {
	raw      *pgx.Conn
	send     sendFunc
	tx       *transaction // nil in a group
	ctx      context.Context
	pending  []*statement
	onCommit []*statement // their rows are read once the transaction is durable
	// wrote is set if the transaction may have changed something.
	wrote bool
}

// Exec implements store.Conn.
func (c *conn) Exec(text string, args ...any) (int64, error) {
	s := newStatement(text, args, false)
	if err := c.run(s); err != nil {
		return 0, err
	}
	c.wrote = c.wrote || s.affected > 0
	return s.affected, nil
}

// Do implements store.Conn.
func (c *conn) Do(text string, args ...any) error {
	s := newStatement(text, args, false)
	s.effectOnly = true
	c.pending = append(c.pending, s)
	return nil
}

// Expect implements store.Conn.
func (c *conn) Expect(text string, args ...any) error {
	s := newStatement(text, args, false)
	s.expect = true
	c.pending = append(c.pending, s)
	return nil
}

// Query implements store.Conn.
func (c *conn) Query(text string, args []any, each func(database.Row) error) error {
	s := newStatement(text, args, true)
	if err := c.run(s); err != nil {
		return err
	}
	c.wrote = c.wrote || s.writes()
	return s.each(c.raw, each)
}

// Tally implements store.Conn.
func (c *conn) Tally(text string, n int64, args []any, each func(database.Row) error) error {
	s := newStatement(text, append([]any{n}, args...), true)
	s.onCommit = each
	c.pending, c.onCommit = append(c.pending, s), append(c.onCommit, s)
	return nil
}

// runOnCommit reads the rows of tallies. The transaction is durable, so errors
// are ignored.
func (c *conn) runOnCommit() {
	for _, s := range c.onCommit {
		_ = s.each(c.raw, s.onCommit)
	}
}

// Lock implements store.Conn with a transaction-level advisory lock, which also
// works behind a transaction pooler.
func (c *conn) Lock(lock database.Lock) error {
	text := `SELECT pg_advisory_xact_lock($1)`
	if lock.Shared {
		text = `SELECT pg_advisory_xact_lock_shared($1)`
	}
	s := newStatement(text, []any{lockNumber(lock)}, false)
	s.lock, s.atEnd = true, lock.Kind == database.LockWorkspace
	c.pending = append(c.pending, s)
	return nil
}

// lockNumber returns the key of the advisory lock. A collision only makes two
// transactions wait for each other unnecessarily.
func lockNumber(lock database.Lock) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(lock.Kind))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(lock.Key))
	return int64(h.Sum64())
}

func newStatement(text string, args []any, wantRows bool) *statement {
	s := &statement{text: text, wantRows: wantRows, args: make([]any, len(args))}
	for i, arg := range args {
		s.args[i] = toArg(arg)
	}
	return s
}

func (c *conn) run(s *statement) error {
	c.wrote = c.wrote || len(c.pending) > 0
	c.pending = append(c.pending, s)
	return c.sendPending()
}

// sendPending sends the pending statements and checks expectations.
func (c *conn) sendPending() error {
	all := c.pending
	c.pending = nil
	if err := c.send(all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, (*statement).failedExpectation) {
		return database.ErrUnexpected
	}
	return nil
}

// finalStatements returns the statements to send with the COMMIT. Those that must
// run before are sent now.
func (c *conn) finalStatements() ([]*statement, error) {
	before, final := c.split()
	if len(before) == 0 {
		return final, nil
	}
	c.pending, c.wrote = before, true
	return final, c.sendPending()
}

// split divides the pending statements at the end of a transaction. Statements
// that can still fail an expectation run before the COMMIT. The lock for the end
// of the transaction and the statements after it are sent with the COMMIT, so
// that the lock is held only briefly.
func (c *conn) split() (before, final []*statement) {
	expects := func(s *statement) bool { return s.expect }
	if !slices.ContainsFunc(c.pending, expects) {
		return nil, c.pending
	}
	i := indexEndLock(c.pending)
	if slices.ContainsFunc(c.pending[i:], expects) {
		return c.pending, nil
	}
	return c.pending[:i:i], c.pending[i:]
}

// indexEndLock returns the index of the lock for the end of a transaction, or the
// number of statements if there is none.
func indexEndLock(statements []*statement) int {
	if i := slices.IndexFunc(statements, func(s *statement) bool { return s.atEnd }); i >= 0 {
		return i
	}
	return len(statements)
}

func (c *conn) flush() error {
	if len(c.pending) == 0 && c.tx.begun {
		return nil
	}
	c.wrote = c.wrote || len(c.pending) > 0
	return c.sendPending()
}

func sendNow(ctx context.Context, t *transaction) sendFunc {
	return func(statements []*statement) error { return t.send(ctx, statements) }
}
