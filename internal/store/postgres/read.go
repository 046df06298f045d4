package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/database"
)

// Read implements store.Driver. Most reads are a single statement, which sees a
// consistent state without a transaction. A read that turns out to need more is
// run again in a transaction, and from then on it starts with one.
func (db *DB) Read(ctx context.Context, fn func(database.Conn) error) error {
	_, err := db.retry(ctx, func(ctx context.Context) error {
		pooled, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		defer pooled.Release()
		err = db.readSingle(ctx, pooled, fn)
		if errors.Is(err, errMultipleStatements) {
			err = db.readInTransaction(ctx, pooled, fn)
		}
		return err
	})
	return err
}

// ReadAll implements store.Driver. The transaction and all queries travel in one
// round trip.
func (db *DB) ReadAll(ctx context.Context, queries func() []database.Query) error {
	_, err := db.retry(ctx, func(ctx context.Context) error {
		pooled, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		defer pooled.Release()
		wanted := queries()
		statements := make([]*statement, len(wanted), len(wanted)+1)
		for i, q := range wanted {
			statements[i] = newStatement(q.Statement, q.Args, true)
		}
		t := db.newTransaction(pooled, db.beginReading)
		if err := t.send(ctx, append(statements, &statement{text: commit})); err != nil {
			t.rollback(ctx)
			return err
		}
		for i, q := range wanted {
			if err := statements[i].each(t.conn, q.Each); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// errMultipleStatements means that a read needs a transaction.
var errMultipleStatements = errors.New("the read has several statements")

func (db *DB) readSingle(ctx context.Context, pooled *pgxpool.Conn, fn func(database.Conn) error) error {
	t := &transaction{conn: pooled.Conn(), begun: true}
	first := ""
	return call(fn, &conn{raw: t.conn, send: func(statements []*statement) error {
		if first != "" {
			db.multiStatement.Store(first, true)
			return errMultipleStatements
		}
		first = statements[0].text
		if _, known := db.multiStatement.Load(first); known || len(statements) > 1 {
			return errMultipleStatements
		}
		return t.send(ctx, statements)
	}})
}

func (db *DB) readInTransaction(ctx context.Context, pooled *pgxpool.Conn, fn func(database.Conn) error) error {
	t := db.newTransaction(pooled, db.beginReading)
	defer t.rollback(ctx)
	return call(fn, &conn{raw: t.conn, send: sendNow(ctx, t)})
}
