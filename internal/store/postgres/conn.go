package postgres

import (
	"context"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/internal/store"
)

// exchange runs statements of a unit. Those of several units may travel
// together.
type exchange func([]*statement) error

// conn implements store.Conn for one unit. Statements of which only the effect
// is wanted wait for one of which more is: they make the way together.
type conn struct {
	raw      *pgx.Conn
	exchange exchange
	tx       *transaction // nil: shared with other units
	ctx      context.Context
	waiting  []*statement
	later    []*statement // their rows are looked at when the unit is durable
	// wrote says that the unit has left something in the transaction.
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
	s.plain = true
	c.waiting = append(c.waiting, s)
	return nil
}

// Expect implements store.Conn.
func (c *conn) Expect(text string, args ...any) error {
	s := newStatement(text, args, false)
	s.expect = true
	c.waiting = append(c.waiting, s)
	return nil
}

// Query implements store.Conn.
func (c *conn) Query(text string, args []any, each func(store.Row) error) error {
	s := newStatement(text, args, true)
	if err := c.run(s); err != nil {
		return err
	}
	c.wrote = c.wrote || s.writes()
	return s.each(c.raw, each)
}

// Tally implements store.Conn.
func (c *conn) Tally(text string, n int64, args []any, each func(store.Row) error) error {
	s := newStatement(text, append([]any{n}, args...), true)
	s.later = each
	c.waiting, c.later = append(c.waiting, s), append(c.later, s)
	return nil
}

// learn looks at what the unit wanted to know later. Whatever comes of it, the
// unit is durable.
func (c *conn) learn() {
	for _, s := range c.later {
		_ = s.each(c.raw, s.later)
	}
}

// Lock implements store.Conn, with a lock that ends with the transaction: it
// also works where connections are lent out for one transaction at a time.
func (c *conn) Lock(lock store.Lock) error {
	text := `SELECT pg_advisory_xact_lock($1)`
	if lock.Shared {
		text = `SELECT pg_advisory_xact_lock_shared($1)`
	}
	s := newStatement(text, []any{lockNumber(lock)}, false)
	s.lock, s.last = true, lock.Kind == store.LockWorkspace
	c.waiting = append(c.waiting, s)
	return nil
}

// lockNumber is what the database knows a lock by. Two that share a number only
// wait for each other without need.
func lockNumber(lock store.Lock) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(lock.Kind))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(lock.Key))
	return int64(h.Sum64())
}

func newStatement(text string, args []any, want bool) *statement {
	s := &statement{text: text, want: want, args: make([]any, len(args))}
	for i, arg := range args {
		s.args[i] = argument(arg)
	}
	return s
}

// run runs what waits, and the statement.
func (c *conn) run(s *statement) error {
	c.wrote = c.wrote || len(c.waiting) > 0
	c.waiting = append(c.waiting, s)
	return c.sendWaiting()
}

// sendWaiting runs what waits, and looks whether it met what was expected.
func (c *conn) sendWaiting() error {
	all := c.waiting
	c.waiting = nil
	if err := c.exchange(all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, (*statement).disappoints) {
		return store.ErrUnexpected
	}
	return nil
}

// last are the statements that go with the end of the transaction. What has to be
// done before is done now.
func (c *conn) last() ([]*statement, error) {
	before, last := c.split()
	if len(before) == 0 {
		return last, nil
	}
	c.waiting, c.wrote = before, true
	return last, c.sendWaiting()
}

// split parts what waits at the end of a unit. What can still make the unit come
// to nothing is to be done before the end of the transaction. The lock for the
// end of the unit, and what follows it, goes with that: it is not held for longer
// than the database takes.
func (c *conn) split() (before, last []*statement) {
	expects := func(s *statement) bool { return s.expect }
	if !slices.ContainsFunc(c.waiting, expects) {
		return nil, c.waiting
	}
	cut := endLock(c.waiting)
	if slices.ContainsFunc(c.waiting[cut:], expects) {
		return c.waiting, nil
	}
	return c.waiting[:cut:cut], c.waiting[cut:]
}

// endLock is where the lock for the end of a unit is among its statements.
func endLock(of []*statement) int {
	if i := slices.IndexFunc(of, func(s *statement) bool { return s.last }); i >= 0 {
		return i
	}
	return len(of)
}

// flush runs what waits.
func (c *conn) flush() error {
	if len(c.waiting) == 0 && c.tx.begun {
		return nil
	}
	c.wrote = c.wrote || len(c.waiting) > 0
	return c.sendWaiting()
}

// sending is an exchange that sends at once.
func sending(ctx context.Context, t *transaction) exchange {
	return func(statements []*statement) error { return t.send(ctx, statements) }
}
