package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
)

// maxAttempts is how often a transaction is tried that conflicts with another: locks are taken in
// the same order everywhere, so conflicts are rare and do not last.
const maxAttempts = 4

// Write implements store.Driver.
func (db *DB) Write(ctx context.Context, fn func(database.Conn) error) error {
	k, err := db.retry(ctx, func(ctx context.Context) error { return db.writeOnce(ctx, fn) })
	db.counts.transaction(k, err)
	return err
}

// retry retries what conflicted with another transaction or found the database
// briefly unavailable. A transaction that has begun is not canceled with the
// request that started it, because its outcome would then be unknown.
func (db *DB) retry(ctx context.Context, attempt func(context.Context) error) (kind, error) {
	if ctx.Err() != nil {
		return other, canceledError(ctx)
	}
	workCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.limits.transaction)
	defer cancel()
	began := clock.Monotonic()
	for n := 1; ; n++ {
		err := attempt(workCtx)
		k := classify(err)
		db.counts.failed(k, err)
		switch {
		case k == conflict && n < maxAttempts:
		case k == unavailable && time.Since(began) < db.limits.retry && workCtx.Err() == nil:
		default:
			return k, explain(err, k)
		}
		pause := time.Duration(rand.Int64N(int64(10*time.Millisecond) << min(n, 5)))
		if !clock.Sleep(ctx, pause) {
			return k, canceledError(ctx)
		}
	}
}

func canceledError(ctx context.Context) error {
	return fault.New(fault.Unavailable, "the request was canceled before it was processed").Because(ctx.Err())
}

func (db *DB) writeOnce(ctx context.Context, fn func(database.Conn) error) error {
	pooled, err := db.acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	begun := clock.Monotonic()
	t := db.newTransaction(pooled, db.begin)
	c := &conn{raw: t.conn, send: sendNow(ctx, t), tx: t, ctx: ctx}
	err = call(fn, c)
	var final []*statement
	if err == nil {
		final, err = c.finalStatements()
	}
	if err != nil {
		t.rollback(ctx)
		return err
	}
	if !t.begun {
		if len(final) == 0 {
			return nil
		}
		// If the response to the COMMIT is lost, the transaction id is known.
		if err := t.send(ctx, nil); err != nil {
			t.rollback(ctx)
			return err
		}
	}
	defer db.counts.commit(1, begun)
	if err := db.finish(ctx, t, final); err != nil {
		return err
	}
	c.runOnCommit()
	return nil
}

func (db *DB) newTransaction(pooled *pgxpool.Conn, begin []string) *transaction {
	return &transaction{conn: pooled.Conn(), begin: begin, rollbackTimeout: db.limits.rollback}
}

func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, db.limits.acquire)
	defer cancel()
	pooled, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, &unavailableError{err}
	}
	return pooled, nil
}

// call runs fn and turns a panic into an error, so that the connection survives.
func call(fn func(database.Conn) error, c database.Conn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(c)
}

func (db *DB) finish(ctx context.Context, t *transaction, final []*statement) error {
	commitStatement := &statement{text: commit}
	err := t.send(ctx, append(final, commitStatement))
	if err == nil && commitStatement.tag != "COMMIT" {
		// A statement had failed, and fn ignored the error.
		return fmt.Errorf("the database responded with %s to a COMMIT", commitStatement.tag)
	}
	if err == nil {
		return nil
	}
	if rejected(err) {
		t.rollback(ctx)
		return err
	}
	return db.resolveCommit(t, err)
}

// resolveCommit finds out the outcome of a transaction whose COMMIT got no
// response. The database remembers it, unless it has crashed since: then another
// transaction may have the same id.
func (db *DB) resolveCommit(t *transaction, lost error) error {
	_ = t.conn.Close(context.Background())
	if t.id == 0 || t.mark == nil {
		return &unknownOutcomeError{lost}
	}
	ctx, cancel := context.WithTimeout(context.Background(), db.limits.resolve)
	defer cancel()
	for {
		var mark, status *string
		err := db.reserve.QueryRow(ctx, `SELECT mark, CASE WHEN mark = $2 THEN pg_xact_status($1::text::xid8) END
			FROM (SELECT (SELECT mark FROM recovery) AS mark) r`, fmt.Sprint(t.id), *t.mark).Scan(&mark, &status)
		switch {
		case err != nil:
		case mark == nil || *mark != *t.mark:
			return &unknownOutcomeError{lost}
		case status != nil && *status == "committed":
			return nil
		case status != nil && *status == "aborted":
			return &unavailableError{lost}
		}
		if !clock.Sleep(ctx, 50*time.Millisecond) {
			return &unknownOutcomeError{lost}
		}
	}
}

func (t *transaction) rollback(ctx context.Context) {
	if !t.begun || t.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.rollbackTimeout)
	defer cancel()
	if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
		_ = t.conn.Close(ctx)
	}
}
