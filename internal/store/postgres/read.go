package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/store"
)

// Read implements store.Driver. Most reads are one statement, which needs no
// transaction to see one state. One that turns out to have more is run again in
// a transaction, and from then on at once.
func (db *DB) Read(ctx context.Context, fn func(store.Conn) error) error {
	_, err := db.persist(ctx, func(ctx context.Context) error {
		lent, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		defer lent.Release()
		err = db.readOne(ctx, lent, fn)
		if errors.Is(err, errSeveral) {
			err = db.readSeveral(ctx, lent, fn)
		}
		return err
	})
	return err
}

// ReadAll implements store.Driver: the transaction and all it reads make the way
// together.
func (db *DB) ReadAll(ctx context.Context, queries func() []store.Query) error {
	_, err := db.persist(ctx, func(ctx context.Context) error {
		lent, err := db.acquire(ctx)
		if err != nil {
			return err
		}
		defer lent.Release()
		wanted := queries()
		statements := make([]*statement, len(wanted), len(wanted)+1)
		for i, q := range wanted {
			statements[i] = newStatement(q.Statement, q.Args, true)
		}
		t := &transaction{conn: lent.Conn(), begin: db.beginReading}
		if err := t.send(ctx, append(statements, &statement{text: commit})); err != nil {
			t.abandon(ctx)
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

// errSeveral says that a read needs a transaction.
var errSeveral = errors.New("the read has several statements")

// readOne runs a read that has one statement.
func (db *DB) readOne(ctx context.Context, lent *pgxpool.Conn, fn func(store.Conn) error) error {
	t := &transaction{conn: lent.Conn(), begun: true}
	first := ""
	return call(fn, &conn{raw: t.conn, exchange: func(statements []*statement) error {
		if first != "" {
			db.several.Store(first, true)
			return errSeveral
		}
		first = statements[0].text
		if _, known := db.several.Load(first); known || len(statements) > 1 {
			return errSeveral
		}
		return t.send(ctx, statements)
	}})
}

// readSeveral runs a read in a transaction.
func (db *DB) readSeveral(ctx context.Context, lent *pgxpool.Conn, fn func(store.Conn) error) error {
	t := &transaction{conn: lent.Conn(), begin: db.beginReading}
	defer t.abandon(ctx)
	return call(fn, &conn{raw: t.conn, exchange: sending(ctx, t)})
}
