package postgres

import (
	"context"

	"github.com/stepmill/stepmill/internal/database"
)

// ReadSnapshot implements store.Mover.
func (db *DB) ReadSnapshot(ctx context.Context, fn func(database.Conn) error) error {
	pooled, err := db.acquire(ctx)
	if err != nil {
		return explain(err, classify(err))
	}
	defer pooled.Release()
	t := db.newTransaction(pooled, append(db.beginReading, noTimeouts))
	defer t.rollback(ctx)
	err = call(fn, streamingConn{&conn{raw: t.conn, send: sendNow(ctx, t), tx: t, ctx: ctx}})
	return explain(err, classify(err))
}

// noTimeouts lets a transaction wait for the reader or writer of the archive,
// between statements and while rows are streamed.
const noTimeouts = `SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true),
	set_config('enable_seqscan', 'on', true)`

// streamingConn passes rows on as they arrive, because together they may not fit
// into memory.
type streamingConn struct{ *conn }

// Query implements store.Conn.
func (c streamingConn) Query(text string, args []any, each func(database.Row) error) error {
	if err := c.flush(); err != nil { // begins the transaction
		return err
	}
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	rows, err := c.raw.Query(ctx, text, newStatement(text, args, true).args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(row{c.raw.TypeMap(), rows.FieldDescriptions(), cloneRow(rows.RawValues())}); err != nil {
			stop() // do not wait for the remaining rows
			return err
		}
	}
	return rows.Err()
}

// LastNumber implements store.Mover.
func (db *DB) LastNumber(c database.Conn, table string) (last int64, err error) {
	err = c.Query(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+table+`_seq_seq`, nil,
		func(r database.Row) error { return r.Scan(&last) })
	return last, err
}

// Resequence implements store.Mover.
func (db *DB) Resequence(c database.Conn, table string, last int64) error {
	if last == 0 {
		return nil
	}
	return c.Query(`SELECT setval('`+table+`_seq_seq', $1)`, []any{last}, func(database.Row) error { return nil })
}

// AfterImport implements store.Mover. It marks the runs as having no job yet.
func (db *DB) AfterImport(c database.Conn) error {
	return c.Do(`UPDATE run_queue SET orphaned = true WHERE admitted`)
}
