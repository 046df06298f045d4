package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// queueLength bounds how many writes are queued. Callers beyond it block, so that a slow disk
	// slows its clients down instead of filling the memory.
	queueLength = 4096
	// maxGroup bounds how many writes share a transaction, and so how long the
	// first of them waits for its result.
	maxGroup = 512
	// idleAfter is how long the writer is idle before it runs maintenance.
	idleAfter = 20 * time.Second
	// optimizeEvery is how often SQLite updates its statistics.
	optimizeEvery = 24 * time.Hour
)

// writer owns the only connection that writes. Writes that queue up while a
// commit is being flushed share the next one: many requests, one flush, and each
// caller gets its result only after the flush that includes it.
type writer struct {
	conn      *conn
	limit     time.Duration // for the statements of one write
	log       walLimit
	counts    *counts
	optimized time.Time
	queue     chan *writeRequest
	tasks     chan func() // that need the connection outside of any transaction
	done      chan struct{}
	busy      stopwatch // with a commit, or with maintenance
	// full is true after a write has failed for lack of space, until Probe succeeds.
	full atomic.Bool
}

type writeRequest struct {
	fn   func(database.Conn) error
	done chan error
	err  error
}

// write queues fn and waits until it is durable or has failed. Once queued, fn is
// not canceled: the caller needs to know its outcome, so its context no longer
// matters.
func (w *writer) write(ctx context.Context, fn func(database.Conn) error) error {
	r := &writeRequest{fn: fn, done: make(chan error, 1)}
	if ctx.Err() != nil { // select would choose at random
		return canceledError(ctx)
	}
	select {
	case w.queue <- r:
	case <-ctx.Done():
		return canceledError(ctx)
	case <-w.done:
		return closedError()
	}
	select {
	case err := <-r.done:
		return err
	case <-w.done:
		// The last group may have finished just before the shutdown.
		select {
		case err := <-r.done:
			return err
		default:
			return closedError()
		}
	}
}

// onWriter calls fn in the goroutine of the writer, outside of any transaction. If the
// context ends, it does not wait for a call in progress.
func onWriter[T any](ctx context.Context, w *writer, fn func() (T, error)) (result T, err error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	task := func() {
		result, err := fn()
		done <- outcome{result, err}
	}
	select {
	case w.tasks <- task:
	case <-ctx.Done():
		return result, context.Cause(ctx)
	case <-w.done:
		return result, closedError()
	}
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}

func canceledError(ctx context.Context) error {
	return fault.New(fault.Unavailable, "the request was canceled before it was processed").Because(ctx.Err())
}

func closedError() error {
	return fault.New(fault.Unavailable, "the service is shutting down").After(time.Second)
}

func (w *writer) run(ctx context.Context) error {
	defer close(w.done)
	group := make([]*writeRequest, 0, maxGroup)
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	for {
		w.busy.stop()
		select {
		case r := <-w.queue:
			w.busy.start()
			group = w.gather(append(group[:0], r))
		case task := <-w.tasks:
			w.busy.start()
			task()
			continue
		case <-idle.C:
			w.busy.start()
			w.maintain()
			continue
		case <-ctx.Done():
			return w.drain(group)
		}
		if err := w.commit(group); err != nil {
			return err
		}
		clear(group)
		w.limitLog()
		idle.Reset(idleAfter)
	}
}

// gather takes what is queued without waiting for more.
func (w *writer) gather(group []*writeRequest) []*writeRequest {
	for len(group) < maxGroup {
		select {
		case r := <-w.queue:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

func (w *writer) drain(group []*writeRequest) error {
	for {
		group = w.gather(group[:0])
		if len(group) == 0 {
			w.checkpoint(0)
			return nil
		}
		if err := w.commit(group); err != nil {
			return err
		}
	}
}

// commit runs a group in one transaction and returns the result to each caller.
// An error means that the disk can no longer be trusted.
func (w *writer) commit(group []*writeRequest) error {
	begun := clock.Monotonic()
	err := w.conn.run("BEGIN IMMEDIATE")
	if err == nil {
		err = w.runTransactions(group)
	}
	if err == nil {
		failpoint.Hit(failpoint.BeforeFlush, "")
		err = w.flush()
	}
	if err != nil && !w.conn.raw.AutocommitEnabled() {
		_ = w.conn.run("ROLLBACK")
	}
	if err != nil {
		for _, r := range group {
			r.err = explain(err)
		}
	}
	w.counts.group(group, time.Since(begun), err)
	for _, r := range group {
		if fault.Is(r.err, fault.StorageFull) {
			w.full.Store(true)
		}
		r.done <- r.err
	}
	switch {
	case isDamage(err):
		return damaged(FileName, err)
	case err != nil && fatal(err):
		return fmt.Errorf("the disk failed while writing %s: %w", FileName, err)
	}
	return nil
}

func (w *writer) flush() error {
	if failpoint.Fails(failpoint.BeforeFlush) {
		return sqlite.ResultFull.ToError()
	}
	return w.conn.run("COMMIT")
}

// runTransactions runs each function in its own savepoint, so that one failure
// does not affect the others. It returns an error if the whole transaction is
// lost.
func (w *writer) runTransactions(group []*writeRequest) error {
	for _, r := range group {
		if err := w.conn.run("SAVEPOINT write"); err != nil {
			return err
		}
		if r.err = w.runTransaction(r); r.err != nil {
			if w.conn.raw.AutocommitEnabled() {
				return r.err
			}
			if err := w.conn.run("ROLLBACK TO write"); err != nil {
				return err
			}
			r.err = explain(r.err)
		}
		if err := w.conn.run("RELEASE write"); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) runTransaction(r *writeRequest) (err error) {
	// The deadline is checked before each statement. To interrupt one would undo
	// the other transactions of the group too.
	w.conn.deadline = clock.Monotonic().Add(w.limit)
	defer func() {
		w.conn.deadline = time.Time{}
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return r.fn(w.conn)
}

// maintain does what can wait until the writer is idle: it returns some free
// pages to the file system, lets SQLite update its statistics once a day, and
// truncates the write-ahead log. It is best effort.
func (w *writer) maintain() {
	_ = w.conn.run("PRAGMA incremental_vacuum(2000)")
	if now := clock.Monotonic(); now.Sub(w.optimized) > optimizeEvery {
		w.optimized = now
		_ = w.conn.run("PRAGMA optimize")
	}
	w.checkpoint(0)
}

func (w *writer) close() error { return w.conn.close() }

// explain turns an error of the database into one for clients. Other errors come
// from the callers' code and are returned unchanged.
func explain(err error) error {
	if _, known := fault.As(err); known {
		return err
	}
	if errors.Is(err, errTooLong) {
		return fault.New(fault.Unavailable, "the change took too long and was not saved; try again").Because(err).After(time.Second)
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return fault.New(fault.StorageFull, "the server's disk is full; nothing was changed").Because(err)
	case sqlite.ResultReadOnly, sqlite.ResultPerm:
		return fault.New(fault.StorageReadOnly, "the server's disk is read-only; nothing was changed").Because(err).After(10 * time.Second)
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultInterrupt:
		return fault.New(fault.Unavailable, "the store is busy; try again").Because(err).After(time.Second)
	case sqlite.ResultIOErr:
		return fault.New(fault.Unavailable, "the server's disk failed; it is not known whether the change was saved").Because(err).After(10 * time.Second)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return damaged(FileName, err)
	}
	return err
}

// fatal reports whether later writes would not be safe after an error: after a
// failed flush the system may have dropped data that it could not write.
func fatal(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultIOErr, sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return true
	}
	return false
}
