package transport

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// A client that sends its whole request before it reads must be able to finish,
// otherwise it sees a reset connection instead of the response. These limits apply
// to what is read for that purpose alone.
const (
	drainBytes = 16 << 20
	drainTime  = 5 * time.Second
	// maxDrains and maxDrainsPerNetwork limit how many bodies are drained at a time.
	maxDrains           = 256
	maxDrainsPerNetwork = 32
)

type drains struct {
	mu        sync.Mutex
	total     int
	byNetwork map[string]int
}

func newDrains() *drains { return &drains{byNetwork: map[string]int{}} }

func (d *drains) acquire(network string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.total >= maxDrains || d.byNetwork[network] >= maxDrainsPerNetwork {
		return false
	}
	d.total++
	d.byNetwork[network]++
	return true
}

func (d *drains) release(network string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total--
	if d.byNetwork[network]--; d.byNetwork[network] == 0 {
		delete(d.byNetwork, network)
	}
}

// drain reads and discards the rest of a body after the response was written.
func (s *Server) drain(body *bodyReader, r *http.Request) {
	if !body.remains() || body.waitsForContinue(r) || body.length > drainBytes {
		return
	}
	client := Network(s.clientAddress(r))
	if !s.drains.acquire(client) {
		return
	}
	defer s.drains.release(client)
	if body.conn.Flush() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, body.ReadCloser, drainBytes) // the response has been sent, whatever happens
}

func (b *bodyReader) remains() bool { return b != nil && b.err == nil }

// waitsForContinue reports whether the client sends its body only when asked to,
// and was not asked.
func (b *bodyReader) waitsForContinue(r *http.Request) bool {
	return b.begun.IsZero() && r.Header.Get("Expect") != ""
}

// limitDrain limits how long the rest of the body is waited for once the response
// begins. It applies to net/http too, which discards the start of an unread body
// before it sends the response.
func (b *bodyReader) limitDrain() {
	if b.remains() {
		b.setDeadline(clock.Monotonic().Add(drainTime))
	}
}
