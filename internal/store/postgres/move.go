package postgres

import (
	"context"

	"github.com/stepmill/stepmill/internal/store"
)

// Frozen implements store.Mover.
func (db *DB) Frozen(ctx context.Context, fn func(store.Conn) error) error {
	lent, err := db.acquire(ctx)
	if err != nil {
		return explain(err, classify(err))
	}
	defer lent.Release()
	t := &transaction{conn: lent.Conn(), begin: append(db.beginReading, unhurried)}
	defer t.abandon(ctx)
	err = call(fn, flowing{&conn{raw: t.conn, exchange: sending(ctx, t), tx: t, ctx: ctx}})
	return explain(err, classify(err))
}

// unhurried lets a transaction wait for whoever reads or writes its file, between
// statements and within one whose rows are looked at as they come.
const unhurried = `SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true),
	set_config('enable_seqscan', 'on', true)`

// flowing is a connection that hands on rows as they come: together they may be
// far more than memory holds.
type flowing struct{ *conn }

// Query implements store.Conn.
func (f flowing) Query(text string, args []any, each func(store.Row) error) error {
	if err := f.flush(); err != nil { // with it the transaction begins
		return err
	}
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	rows, err := f.raw.Query(ctx, text, newStatement(text, args, true).args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(row{f.raw.TypeMap(), rows.FieldDescriptions(), keep(rows.RawValues())}); err != nil {
			stop() // who does not want the rest does not wait for it either
			return err
		}
	}
	return rows.Err()
}

// LastNumber implements store.Mover.
func (db *DB) LastNumber(c store.Conn, table string) (last int64, err error) {
	err = c.Query(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM `+table+`_seq_seq`, nil,
		func(r store.Row) error { return r.Scan(&last) })
	return last, err
}

// Resequence implements store.Mover.
func (db *DB) Resequence(c store.Conn, table string, last int64) error {
	if last == 0 {
		return nil
	}
	return c.Query(`SELECT setval('`+table+`_seq_seq', $1)`, []any{last}, func(store.Row) error { return nil })
}

// Moved implements store.Mover. Nobody is bringing the runs to a node yet.
func (db *DB) Moved(c store.Conn) error {
	return c.Do(`UPDATE run_queue SET adrift = true WHERE turn`)
}
