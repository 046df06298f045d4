package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/store"
)

// Tx is the transaction of a unit for a library that wants to write in it. The
// unit runs by itself, and what it did so far is in the database.
func Tx(c store.Conn) (pgx.Tx, error) {
	unit, ok := c.(*conn)
	if !ok || unit.tx == nil {
		return nil, errors.New("the unit has no transaction of its own")
	}
	if err := unit.flush(); err != nil {
		return nil, err
	}
	unit.wrote = true
	return unitTx{conn: unit.raw, ctx: unit.ctx}, nil
}

// unitTx implements pgx.Tx on a transaction that somebody else began and ends.
// What it does has the time of the unit, whatever context it is called with.
type unitTx struct {
	pgx.Tx
	conn *pgx.Conn
	ctx  context.Context
}

var (
	errNotYours = errors.New("the transaction belongs to a unit")
	errEndless  = errors.New("a unit does not use COPY: the database waits for its data without end, with all that the unit has locked")
)

// Begin implements pgx.Tx.
func (t unitTx) Begin(context.Context) (pgx.Tx, error) { return nil, errNotYours }

// Commit implements pgx.Tx.
func (t unitTx) Commit(context.Context) error { return errNotYours }

// Rollback implements pgx.Tx.
func (t unitTx) Rollback(context.Context) error { return errNotYours }

// Conn implements pgx.Tx.
func (t unitTx) Conn() *pgx.Conn { return t.conn }

// Exec implements pgx.Tx.
func (t unitTx) Exec(_ context.Context, text string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(t.ctx, text, args...)
}

// Query implements pgx.Tx.
func (t unitTx) Query(_ context.Context, text string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(t.ctx, text, args...)
}

// QueryRow implements pgx.Tx.
func (t unitTx) QueryRow(_ context.Context, text string, args ...any) pgx.Row {
	return t.conn.QueryRow(t.ctx, text, args...)
}

// SendBatch implements pgx.Tx.
func (t unitTx) SendBatch(_ context.Context, batch *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(t.ctx, batch)
}

// CopyFrom implements pgx.Tx.
func (t unitTx) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errEndless
}
