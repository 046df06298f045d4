package sqlite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/store"
)

// conn implements store.Conn on one connection. It caches all prepared
// statements: the store has a fixed number of them.
type conn struct {
	raw        *sqlite.Conn
	statements map[string]*statement
	// deadline is when the current transaction has run for too long; the zero time
	// if there is no limit.
	deadline time.Time
}

// errTooLong ends a transaction that has reached its deadline.
var errTooLong = errors.New("the transaction took too long")

// statement is a prepared statement. For each parameter, in SQLite's order,
// params has the index of its argument. SQLite treats $1 as a name and numbers
// names in the order in which they appear.
type statement struct {
	raw    *sqlite.Stmt
	params []int
}

func newConn(raw *sqlite.Conn) *conn {
	return &conn{raw: raw, statements: map[string]*statement{}}
}

func (c *conn) prepare(text string) (*statement, error) {
	if s, ok := c.statements[text]; ok {
		return s, nil
	}
	raw, _, err := c.raw.PrepareTransient(text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	s := &statement{raw: raw}
	for i := 1; i <= raw.BindParamCount(); i++ {
		n, err := strconv.Atoi(raw.BindParamName(i)[1:])
		if err != nil {
			return nil, fmt.Errorf("prepare %q: parameter %d has no number", text, i)
		}
		s.params = append(s.params, n-1)
	}
	c.statements[text] = s
	return s, nil
}

// Exec implements store.Conn.
func (c *conn) Exec(text string, args ...any) (int64, error) {
	err := c.Query(text, args, func(database.Row) error { return nil })
	return int64(c.raw.Changes()), err
}

// Do implements store.Conn.
func (c *conn) Do(text string, args ...any) error {
	_, err := c.Exec(text, args...)
	return err
}

// Expect implements store.Conn.
func (c *conn) Expect(text string, args ...any) error {
	found := int64(0)
	if err := c.Query(text, args, func(database.Row) error { found++; return nil }); err != nil {
		return err
	}
	if !strings.HasPrefix(text, "SELECT") {
		found = int64(c.raw.Changes())
	}
	if found != 1 {
		return database.ErrUnexpected
	}
	return nil
}

// Tally implements store.Conn.
func (c *conn) Tally(text string, n int64, args []any, each func(database.Row) error) error {
	return c.Query(text, append([]any{n}, args...), each)
}

// Lock implements store.Conn. It does nothing, because there is only one writer.
func (c *conn) Lock(database.Lock) error { return nil }

// Query implements store.Conn.
func (c *conn) Query(text string, args []any, each func(database.Row) error) (err error) {
	if !c.deadline.IsZero() && clock.Monotonic().After(c.deadline) {
		return errTooLong
	}
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	if err := s.bind(args); err != nil {
		return err
	}
	defer func() {
		// Reset returns the error of the last step again.
		if resetErr := s.raw.Reset(); err == nil {
			err = resetErr
		}
	}()
	for {
		more, err := s.raw.Step()
		if err != nil || !more {
			return err
		}
		if err := each(row{s.raw}); err != nil {
			return err
		}
	}
}

func (s *statement) bind(args []any) error {
	for i, arg := range s.params {
		if arg >= len(args) {
			return fmt.Errorf("parameter $%d has no argument", arg+1)
		}
		if err := bindOne(s.raw, i+1, args[arg]); err != nil {
			return err
		}
	}
	return nil
}

func bindOne(stmt *sqlite.Stmt, param int, arg any) error {
	switch v := arg.(type) {
	case nil:
		stmt.BindNull(param)
	case string:
		stmt.BindText(param, store.Text(v))
	case *string:
		if v == nil {
			stmt.BindNull(param)
		} else {
			stmt.BindText(param, store.Text(*v))
		}
	case []byte:
		stmt.BindBytes(param, v)
	case int:
		stmt.BindInt64(param, int64(v))
	case int64:
		stmt.BindInt64(param, v)
	case bool:
		stmt.BindBool(param, v)
	case time.Time:
		stmt.BindInt64(param, v.UnixMicro())
	default:
		return fmt.Errorf("parameter %d: cannot store a %T", param, arg)
	}
	return nil
}

type row struct{ stmt *sqlite.Stmt }

// Scan implements store.Row.
func (r row) Scan(dest ...any) error {
	for i, d := range dest {
		if r.stmt.ColumnType(i) == sqlite.TypeNull {
			continue
		}
		if err := r.scanOne(i, d); err != nil {
			return err
		}
	}
	return nil
}

func (r row) scanOne(i int, dest any) error {
	switch d := dest.(type) {
	case *string:
		*d = r.stmt.ColumnText(i)
	case **string:
		text := r.stmt.ColumnText(i)
		*d = &text
	case *[]byte:
		*d = make([]byte, r.stmt.ColumnLen(i))
		r.stmt.ColumnBytes(i, *d)
	case *int:
		*d = r.stmt.ColumnInt(i)
	case *int64:
		*d = r.stmt.ColumnInt64(i)
	case **int64:
		n := r.stmt.ColumnInt64(i)
		*d = &n
	case *bool:
		*d = r.stmt.ColumnInt64(i) != 0
	case **bool:
		is := r.stmt.ColumnInt64(i) != 0
		*d = &is
	case *time.Time:
		*d = time.UnixMicro(r.stmt.ColumnInt64(i)).UTC()
	case **time.Time:
		t := time.UnixMicro(r.stmt.ColumnInt64(i)).UTC()
		*d = &t
	default:
		return fmt.Errorf("column %d: cannot read into a %T", i, dest)
	}
	return nil
}

// run executes a statement whose result is not needed.
func (c *conn) run(text string) error {
	_, err := c.Exec(text)
	return err
}

// finalize closes all prepared statements, as a connection must before it closes.
func (c *conn) finalize() {
	for _, s := range c.statements {
		_ = s.raw.Finalize()
	}
	clear(c.statements)
}

func (c *conn) close() error {
	c.finalize()
	return c.raw.Close()
}
