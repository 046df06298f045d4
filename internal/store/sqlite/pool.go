package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stepmill/stepmill/internal/store"
)

// readLimit bounds how long a query may take: a reader that never ends would
// keep the write-ahead log from being folded back.
const readLimit = 5 * time.Second

// pool holds connections that only read.
type pool struct {
	free chan *reader
	all  []*reader
	done chan struct{} // closed when nothing is read any more
}

// reader is a connection with a timer that interrupts it. The connection watches
// the channel once for good, which is cheaper than for every query.
type reader struct {
	conn      *conn
	interrupt chan struct{}
	timer     *time.Timer
	fired     chan struct{} // tells that the timer has closed interrupt
}

func newReader(raw *sqlite.Conn) *reader {
	r := &reader{conn: newConn(raw), fired: make(chan struct{}, 1)}
	r.timer = time.AfterFunc(time.Hour, func() {
		close(r.interrupt)
		r.fired <- struct{}{}
	})
	r.timer.Stop()
	r.arm()
	return r
}

// arm makes the connection usable after an interrupt, and at first.
func (r *reader) arm() {
	r.interrupt = make(chan struct{})
	r.conn.raw.SetInterrupt(r.interrupt)
}

func newPool(path string, size int) (*pool, error) {
	p := &pool{free: make(chan *reader, size), done: make(chan struct{})}
	for range size {
		raw, err := openConn(path, true)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		r := newReader(raw)
		p.all = append(p.all, r)
		p.free <- r
	}
	return p, nil
}

func (p *pool) read(ctx context.Context, fn func(store.Conn) error) error {
	var r *reader
	if ctx.Err() != nil { // select would choose at random
		return givenUp(ctx)
	}
	select {
	case r = <-p.free:
	case <-ctx.Done():
		return givenUp(ctx)
	case <-p.done:
		return closed()
	}
	defer func() {
		r.rest()
		p.free <- r
	}()
	r.timer.Reset(readLimit)
	if err := r.snapshot(fn); err != nil {
		return explain(err)
	}
	return nil
}

// rest makes the reader ready for the next one, also after a panic.
func (r *reader) rest() {
	if !r.timer.Stop() {
		<-r.fired
		r.arm()
	}
	if !r.conn.raw.AutocommitEnabled() {
		_ = r.conn.run("ROLLBACK")
	}
}

// snapshot runs fn in a transaction, so that all it reads belongs together.
func (r *reader) snapshot(fn func(store.Conn) error) error {
	if err := r.conn.run("BEGIN"); err != nil {
		return err
	}
	if err := fn(r.conn); err != nil {
		return err
	}
	return r.conn.run("COMMIT")
}

// close waits for every reader to come back, then closes them.
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
