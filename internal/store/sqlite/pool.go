package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/database"
)

// readLimit is the default limit on the duration of a read: a reader that never
// ends would keep checkpoints from truncating the write-ahead log.
const readLimit = 5 * time.Second

// pool holds read-only connections.
type pool struct {
	free chan *reader
	all  []*reader
	done chan struct{} // closed at shutdown

	limit time.Duration // for one read
}

// reader is a connection with a timer that interrupts it. The connection watches
// one channel for its lifetime, which is cheaper than one per query.
type reader struct {
	conn      *conn
	interrupt chan struct{}
	timer     *time.Timer
	fired     chan struct{} // receives after the timer has closed interrupt
	busy      stopwatch
}

func newReader(raw *sqlite.Conn) *reader {
	r := &reader{conn: newConn(raw), fired: make(chan struct{}, 1)}
	r.timer = time.AfterFunc(time.Hour, func() {
		close(r.interrupt)
		r.fired <- struct{}{}
	})
	r.timer.Stop()
	r.resetInterrupt()
	return r
}

// resetInterrupt makes a new connection usable, or one that was interrupted.
func (r *reader) resetInterrupt() {
	r.interrupt = make(chan struct{})
	r.conn.raw.SetInterrupt(r.interrupt)
}

func newPool(open opener, size int, limit time.Duration) (*pool, error) {
	p := &pool{free: make(chan *reader, size), done: make(chan struct{}), limit: limit}
	for range size {
		raw, err := open()
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		r := newReader(raw)
		p.all = append(p.all, r)
		p.free <- r
	}
	return p, nil
}

func (p *pool) read(ctx context.Context, fn func(database.Conn) error) error {
	var r *reader
	if ctx.Err() != nil { // select would choose at random
		return canceledError(ctx)
	}
	select {
	case r = <-p.free:
	case <-ctx.Done():
		return canceledError(ctx)
	case <-p.done:
		return closedError()
	}
	defer func() {
		r.reset()
		p.free <- r
	}()
	r.busy.start()
	r.timer.Reset(p.limit)
	if err := r.snapshot(fn); err != nil {
		return explain(err)
	}
	return nil
}

// reset prepares the reader for the next read, even after a panic.
func (r *reader) reset() {
	r.busy.stop()
	if !r.timer.Stop() {
		<-r.fired
		r.resetInterrupt()
	}
	if !r.conn.raw.AutocommitEnabled() {
		_ = r.conn.run("ROLLBACK")
	}
}

// snapshot runs fn in a transaction, so that all its reads see the same state.
func (r *reader) snapshot(fn func(database.Conn) error) error {
	if err := r.conn.run("BEGIN"); err != nil {
		return err
	}
	if err := fn(r.conn); err != nil {
		return err
	}
	return r.conn.run("COMMIT")
}

func (p *pool) busy() time.Duration {
	longest := time.Duration(0)
	for _, r := range p.all {
		longest = max(longest, r.busy.elapsed())
	}
	return longest
}

// close waits for all readers to return, then closes them.
func (p *pool) close() error {
	close(p.done)
	var err error
	for range p.all {
		r := <-p.free
		r.conn.raw.SetInterrupt(nil)
		err = errors.Join(err, r.conn.close())
	}
	return err
}
