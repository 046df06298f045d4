package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
)

const (
	// unitTime bounds a unit, whatever its caller would wait.
	unitTime = 10 * time.Second
	// acquireTime is how long a unit waits for a connection.
	acquireTime = 5 * time.Second
	// attempts is how often a unit is tried that met another one.
	attempts = 4
	// outage is how long a unit is tried again while the database is away.
	outage = 2 * time.Second
)

// Write implements store.Driver.
func (db *DB) Write(ctx context.Context, fn func(store.Conn) error) error {
	k, err := db.persist(ctx, func(ctx context.Context) error { return db.writeOnce(ctx, fn) })
	db.counts.unit(k, err)
	return err
}

// persist tries again what met another unit, or found the database away for a
// moment. A unit that has begun does not end with the request that asked for
// it: its outcome would not be known.
func (db *DB) persist(ctx context.Context, try func(context.Context) error) (kind, error) {
	if ctx.Err() != nil {
		return other, givenUp(ctx)
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), unitTime)
	defer cancel()
	began := clock.Mark()
	for n := 1; ; n++ {
		err := try(work)
		k := classify(err)
		db.counts.failed(k, err)
		switch {
		case k == conflict && n < attempts:
		case k == away && time.Since(began) < outage && work.Err() == nil:
		default:
			return k, explain(err, k)
		}
		pause := time.Duration(rand.Int64N(int64(10*time.Millisecond) << min(n, 5)))
		if !clock.Sleep(ctx, pause) {
			return k, givenUp(ctx)
		}
	}
}

func givenUp(ctx context.Context) error {
	return fault.New(fault.Unavailable, "the request was given up before it was served").Because(ctx.Err())
}

// writeOnce runs a unit in a transaction of its own.
func (db *DB) writeOnce(ctx context.Context, fn func(store.Conn) error) error {
	lent, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer lent.Release()
	begun := clock.Mark()
	t := db.newTransaction(lent)
	c := &conn{raw: t.conn, exchange: sending(ctx, t), tx: t, ctx: ctx}
	err = call(fn, c)
	var last []*statement
	if err == nil {
		last, err = c.last()
	}
	if err != nil {
		t.abandon(ctx)
		return err
	}
	if !t.begun {
		if len(last) == 0 {
			return nil
		}
		// Should the COMMIT not be answered, the number of the transaction is known.
		if err := t.send(ctx, nil); err != nil {
			t.abandon(ctx)
			return err
		}
	}
	defer db.counts.commit(1, begun)
	if err := db.finish(ctx, t, last); err != nil {
		return err
	}
	c.learn()
	return nil
}

func (db *DB) newTransaction(lent *pgxpool.Conn) *transaction {
	return &transaction{conn: lent.Conn(), begin: db.begin}
}

func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTime)
	defer cancel()
	lent, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, &awayError{err}
	}
	return lent, nil
}

// call runs a unit; a mistake in it must not take the connection with it.
func call(fn func(store.Conn) error, c store.Conn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a unit: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(c)
}

// finish runs the last statements of a transaction and commits it.
func (db *DB) finish(ctx context.Context, t *transaction, last []*statement) error {
	end := &statement{text: commit}
	err := t.send(ctx, append(last, end))
	if err == nil && end.tag != "COMMIT" {
		// A statement had failed, and somebody went on all the same.
		return fmt.Errorf("the database answered %s to a COMMIT", end.tag)
	}
	if err == nil {
		return nil
	}
	if refused(err) {
		t.abandon(ctx)
		return err
	}
	return db.settle(t, err)
}

// settle finds out what became of a transaction whose COMMIT was not answered:
// the database remembers, unless it has crashed since. Then the number of the
// transaction may be that of another one by now.
func (db *DB) settle(t *transaction, lost error) error {
	_ = t.conn.Close(context.Background())
	if t.id == 0 || t.mark == nil {
		return &unknownError{lost}
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for {
		var same, status *string
		err := db.reserve.QueryRow(ctx, `SELECT mark, CASE WHEN mark = $2 THEN pg_xact_status($1::text::xid8) END
			FROM (SELECT (SELECT mark FROM recovery) AS mark) r`, fmt.Sprint(t.id), *t.mark).Scan(&same, &status)
		switch {
		case err != nil:
		case same == nil || *same != *t.mark:
			return &unknownError{lost}
		case status != nil && *status == "committed":
			return nil
		case status != nil && *status == "aborted":
			return &awayError{lost}
		}
		if !clock.Sleep(ctx, 50*time.Millisecond) {
			return &unknownError{lost}
		}
	}
}

// settleTime is how long the outcome of a COMMIT is asked for.
const settleTime = 5 * time.Second

// abandon ends a transaction without keeping anything of it.
func (t *transaction) abandon(ctx context.Context) {
	if !t.begun || t.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
		_ = t.conn.Close(ctx)
	}
}
