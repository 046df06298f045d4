package sqlite

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/store"
)

const (
	// queueLength bounds how many writes wait; more wait at the door.
	queueLength = 4096
	// maxGroup bounds how many units share a transaction, and with that how
	// long the first of them waits for its answer.
	maxGroup = 512
	// idleAfter is when the write-ahead log is folded back into the file.
	idleAfter = 20 * time.Second
	// maxLog is the size of the write-ahead log at which the writer waits for
	// readers to make way: under constant reading it would grow without end.
	maxLog = 64 << 20
	// lookEvery is how many commits pass between looks at that size.
	lookEvery = 256
	// makeWay is how long the writer waits for readers.
	makeWay = time.Second
	// optimizeEvery is how often SQLite looks at its statistics.
	optimizeEvery = 24 * time.Hour
)

// writer owns the one connection that writes. Units that queue up while a
// commit is being flushed share the next one: many requests, one flush, and
// each is answered only after the flush that holds it.
type writer struct {
	conn      *conn
	log       string // the file of the write-ahead log
	bound     int64  // the size at which it is emptied
	commits   int
	counts    *counts
	optimized time.Time
	queue     chan *request
	done      chan struct{}
}

type request struct {
	unit   func(store.Conn) error
	answer chan error
	result error
}

func newWriter(c *conn, path string, counts *counts) *writer {
	return &writer{conn: c, counts: counts, log: path + "-wal", bound: maxLog, queue: make(chan *request, queueLength), done: make(chan struct{})}
}

// write queues a unit and waits until it is durable or failed. Once queued a
// unit is not given up: the caller's context no longer matters, because its
// outcome does.
func (w *writer) write(ctx context.Context, unit func(store.Conn) error) error {
	r := &request{unit: unit, answer: make(chan error, 1)}
	if ctx.Err() != nil { // select would choose at random
		return givenUp(ctx)
	}
	select {
	case w.queue <- r:
	case <-ctx.Done():
		return givenUp(ctx)
	case <-w.done:
		return closed()
	}
	select {
	case err := <-r.answer:
		return err
	case <-w.done:
		// The last group may have answered just before the end.
		select {
		case err := <-r.answer:
			return err
		default:
			return closed()
		}
	}
}

func givenUp(ctx context.Context) error {
	return fault.New(fault.Unavailable, "the request was given up before it was served").Because(ctx.Err())
}

func closed() error {
	return fault.New(fault.Unavailable, "the service is shutting down").After(time.Second)
}

func (w *writer) run(ctx context.Context) error {
	defer close(w.done)
	group := make([]*request, 0, maxGroup)
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	for {
		select {
		case r := <-w.queue:
			group = w.gather(append(group[:0], r))
		case <-idle.C:
			w.tidy()
			continue
		case <-ctx.Done():
			return w.drain(group)
		}
		if err := w.commit(group); err != nil {
			return err
		}
		clear(group)
		w.boundLog()
		idle.Reset(idleAfter)
	}
}

// gather takes whatever queued meanwhile, without waiting for more.
func (w *writer) gather(group []*request) []*request {
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

func (w *writer) drain(group []*request) error {
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

// commit runs a group in one transaction and answers each of its callers. An
// error means that the disk cannot be trusted any more.
func (w *writer) commit(group []*request) error {
	begun := clock.Mark()
	err := w.conn.run("BEGIN IMMEDIATE")
	if err == nil {
		err = w.runUnits(group)
	}
	if err == nil {
		err = w.conn.run("COMMIT")
	}
	if err != nil && !w.conn.raw.AutocommitEnabled() {
		_ = w.conn.run("ROLLBACK")
	}
	if err != nil {
		for _, r := range group {
			r.result = explain(err)
		}
	}
	w.counts.group(group, time.Since(begun), err)
	for _, r := range group {
		r.answer <- r.result
	}
	if err != nil && fatal(err) {
		return fmt.Errorf("the disk failed while writing %s: %w", FileName, err)
	}
	return nil
}

// runUnits gives each unit a savepoint of its own, so that one that fails takes
// nothing with it. It returns an error when the whole transaction is lost.
func (w *writer) runUnits(group []*request) error {
	for _, r := range group {
		if err := w.conn.run("SAVEPOINT unit"); err != nil {
			return err
		}
		if r.result = w.runUnit(r); r.result != nil {
			if w.conn.raw.AutocommitEnabled() {
				return r.result
			}
			if err := w.conn.run("ROLLBACK TO unit"); err != nil {
				return err
			}
			r.result = explain(r.result)
		}
		if err := w.conn.run("RELEASE unit"); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) runUnit(r *request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return r.unit(w.conn)
}

// tidy does what can wait for a quiet moment: it gives free pages back to the
// system a few at a time, lets SQLite look at its statistics once a day, and
// empties the write-ahead log. None of it has to succeed.
func (w *writer) tidy() {
	_ = w.conn.run("PRAGMA incremental_vacuum(2000)")
	if now := clock.Mark(); now.Sub(w.optimized) > optimizeEvery {
		w.optimized = now
		_ = w.conn.run("PRAGMA optimize")
	}
	w.checkpoint(0)
}

// boundLog empties the write-ahead log when it has grown too large. Where a
// reader did not make way, a backup for instance, it is tried again only after
// the log has grown as much once more.
func (w *writer) boundLog() {
	if w.commits++; w.commits%lookEvery != 0 {
		return
	}
	size := w.logSize()
	if size < w.bound {
		return
	}
	w.checkpoint(makeWay)
	w.bound = w.logSize() + maxLog
}

func (w *writer) logSize() int64 {
	info, err := os.Stat(w.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// checkpoint folds the write-ahead log into the file and empties it. A reader
// that stays in the way only means that it happens later.
func (w *writer) checkpoint(wait time.Duration) {
	w.conn.raw.SetBusyTimeout(wait)
	_ = w.conn.run("PRAGMA wal_checkpoint(TRUNCATE)")
	w.conn.raw.SetBusyTimeout(busyTimeout)
}

func (w *writer) close() error { return w.conn.close() }

// explain turns an error of the database into one for clients; other errors
// come from above and stay what they are.
func explain(err error) error {
	if _, known := fault.As(err); known {
		return err
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return fault.New(fault.StorageFull, "the disk of the server is full; nothing was changed").Because(err)
	case sqlite.ResultReadOnly, sqlite.ResultPerm:
		return fault.New(fault.StorageReadOnly, "the disk of the server is read-only; nothing was changed").Because(err).After(10 * time.Second)
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultInterrupt:
		return fault.New(fault.Unavailable, "the store is busy; try again").Because(err).After(time.Second)
	case sqlite.ResultIOErr:
		return fault.New(fault.Unavailable, "the disk of the server failed; whether this was written is not known").Because(err).After(10 * time.Second)
	}
	return err
}

// fatal tells whether an error means that later writes would not be safe: after
// a failed flush the system may have dropped what it could not write.
func fatal(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultIOErr, sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return true
	}
	return false
}
