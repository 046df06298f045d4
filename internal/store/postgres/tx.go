package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stepmill/stepmill/internal/database"
)

// Tx returns the transaction behind c for a library that writes in it. It must be
// a transaction of its own, not one of a group. All earlier statements are sent
// first.
func Tx(c database.Conn) (pgx.Tx, error) {
	own, ok := c.(*conn)
	if !ok || own.tx == nil {
		return nil, errors.New("the transaction is part of a group")
	}
	if err := own.flush(); err != nil {
		return nil, err
	}
	own.wrote = true
	return joinedTx{conn: own.raw, ctx: own.ctx}, nil
}

// joinedTx implements pgx.Tx on a transaction that the store begins and ends. It
// uses the context of that transaction, whatever context it is called with.
type joinedTx struct {
	pgx.Tx
	conn *pgx.Conn
	ctx  context.Context
}

var (
	errOwnedByStore = errors.New("the store begins and ends this transaction")
	errCopy         = errors.New("COPY is not supported: if the node stalls, the database waits for its data without a timeout while the transaction holds its locks")
)

// Begin implements pgx.Tx.
func (t joinedTx) Begin(context.Context) (pgx.Tx, error) { return nil, errOwnedByStore }

// Commit implements pgx.Tx.
func (t joinedTx) Commit(context.Context) error { return errOwnedByStore }

// Rollback implements pgx.Tx.
func (t joinedTx) Rollback(context.Context) error { return errOwnedByStore }

// Conn implements pgx.Tx.
func (t joinedTx) Conn() *pgx.Conn { return t.conn }

// Exec implements pgx.Tx.
func (t joinedTx) Exec(_ context.Context, text string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(t.ctx, text, args...)
}

// Query implements pgx.Tx.
func (t joinedTx) Query(_ context.Context, text string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(t.ctx, text, args...)
}

// QueryRow implements pgx.Tx.
func (t joinedTx) QueryRow(_ context.Context, text string, args ...any) pgx.Row {
	return t.conn.QueryRow(t.ctx, text, args...)
}

// SendBatch implements pgx.Tx.
func (t joinedTx) SendBatch(_ context.Context, batch *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(t.ctx, batch)
}

// CopyFrom implements pgx.Tx.
func (t joinedTx) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errCopy
}
