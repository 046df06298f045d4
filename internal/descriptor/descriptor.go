// Package descriptor keeps listeners working when the process has run out of file
// descriptors: it knows how many there are, and holds some in reserve, with which a
// connection can be accepted nevertheless. It does not count what the rest of the process
// uses.
package descriptor

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// retryPause is how long Accept waits if the reserve is used up as well.
const retryPause = 10 * time.Millisecond

// IsShortage reports whether an operation failed because the process or the machine has
// run out of file descriptors.
func IsShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// reportEvery is how often a shortage is reported while it lasts.
const reportEvery = 10 * time.Minute

// Reserve holds descriptors for the connections of a listener.
type Reserve struct {
	size   int
	report func()

	mu     sync.Mutex
	held   []*os.File
	lent   int
	latest time.Time // of the shortages
	shown  time.Time // when one was reported last
}

// NewReserve returns a reserve of the size. It calls report, if that is not nil, when
// there is a shortage, and not again for some minutes.
func NewReserve(size int, report func()) *Reserve {
	r := &Reserve{size: size, report: report}
	r.fill()
	return r
}

// fill opens what is missing, as far as possible. The caller holds the lock, or nobody
// else has the reserve.
func (r *Reserve) fill() {
	for len(r.held)+r.lent < r.size {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		r.held = append(r.held, file)
	}
}

// Note records a shortage.
func (r *Reserve) Note() {
	r.mu.Lock()
	r.latest = clock.Monotonic()
	isNews := r.report != nil && (r.shown.IsZero() || r.latest.Sub(r.shown) > reportEvery)
	if isNews {
		r.shown = r.latest
	}
	r.mu.Unlock()
	if isNews {
		r.report()
	}
}

// lend closes a descriptor of the reserve, so that a connection can have it.
func (r *Reserve) lend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.held) - 1
	if last < 0 {
		return false
	}
	_ = r.held[last].Close() // nothing was written
	r.held = r.held[:last]
	r.lent++
	return true
}

func (r *Reserve) takeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lent--
	r.fill()
}

// Accept accepts a connection. If there are no descriptors left, it calls shed, if that is
// not nil, which closes a connection that is not needed and reports whether there was one.
// Otherwise it uses a descriptor of the reserve: giveBack is not nil then, and must be
// called after the connection was closed, which has to be soon. If the reserve is used up
// too, shed is told so.
func (r *Reserve) Accept(l net.Listener, shed func(exhausted bool) bool) (conn net.Conn, giveBack func(), err error) {
	for {
		r.mu.Lock()
		r.fill()
		r.mu.Unlock()
		if conn, err = l.Accept(); !IsShortage(err) {
			return conn, nil, err
		}
		r.Note()
		if shed != nil && shed(false) {
			continue
		}
		if !r.lend() {
			if shed == nil || !shed(true) {
				time.Sleep(retryPause)
			}
			continue
		}
		if conn, err = l.Accept(); err == nil {
			return conn, sync.OnceFunc(r.takeBack), nil
		}
		r.takeBack()
		if !IsShortage(err) {
			return nil, nil, err
		}
		time.Sleep(retryPause) // something else was faster
	}
}

// IsShort reports whether there was a shortage not long ago.
func (r *Reserve) IsShort() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.latest.IsZero() && time.Since(r.latest) < shortFor
}

// shortFor is how long a shortage counts after it was noticed last.
const shortFor = 10 * time.Second

// Close closes the descriptors that are held.
func (r *Reserve) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, file := range r.held {
		_ = file.Close()
	}
	r.size, r.held = 0, nil
}
