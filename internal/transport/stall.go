package transport

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// stallCheck is how often it is checked whether the storage responds.
const stallCheck = time.Second

// StallDelay is how long it takes at most until requests are abandoned after the
// storage has stalled.
const StallDelay = 2 * stallCheck

// stallGuard knows the requests in flight, so that they can be responded to when
// the storage stops responding.
type stallGuard struct {
	stalled atomic.Bool // a request was abandoned because the storage had stalled

	mu       sync.Mutex
	requests map[*guardedRequest]struct{}
}

type guardedRequest struct {
	out    *recorder
	http   *http.Request
	caller *Caller
	// suspect is true if the storage was found stalled at the last check. One check
	// is not enough: after a pause of the whole machine, a commit looks slow
	// although it is about to end.
	suspect bool
}

// add makes a request known until done is called.
func (g *stallGuard) add(r *guardedRequest) (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests[r] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.requests, r)
	}
}

// check returns the requests that were in flight at two checks in a row which both
// found the storage stalled.
func (g *stallGuard) check(stalled bool) []*guardedRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	var waiting []*guardedRequest
	for r := range g.requests {
		if stalled && r.suspect {
			waiting = append(waiting, r)
		}
		r.suspect = stalled
	}
	return waiting
}

// GuardStorage responds to requests whose handlers wait for storage that has
// stopped responding, until the context ends. The handlers are left to finish on
// their own: a flush that hangs cannot be canceled, and what has to happen after a
// commit still happens.
func (s *Server) GuardStorage(ctx context.Context) error {
	if s.StorageStalled == nil {
		return nil
	}
	check := time.NewTicker(stallCheck)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-check.C:
		}
		for _, r := range s.guard.check(s.StorageStalled()) {
			go s.abandon(r) // a client that does not read must not delay the others
		}
	}
}

func (s *Server) abandon(r *guardedRequest) {
	if r.out.abandon(func(w http.ResponseWriter) { s.failStalled(w, r.http, r.caller) }) {
		s.guard.stalled.Store(true)
	}
}

// failStalled responds in place of a handler that waits for the storage.
func (s *Server) failStalled(w http.ResponseWriter, r *http.Request, c *Caller) {
	err := fault.New(fault.Unavailable, "the server's disk does not respond; it is not known whether the request took effect")
	if reads(r) {
		err = fault.New(fault.Unavailable, "the server's disk does not respond; try again later")
	}
	s.errors.Add(string(fault.Unavailable))
	s.Log.Warn("request abandoned", "request_id", c.RequestID, "error", err)
	s.setCommonHeaders(w.Header(), c)
	w.Header().Set("Connection", "close") // the handler may still use it
	writeError(w, err.After(stallRetry), c.RequestID)
	_ = http.NewResponseController(w).Flush() // a client that has gone needs no response
}

const stallRetry = 10 * time.Second

// reserveBody reserves memory for the body of a request. It rejects requests while
// the storage is known not to respond: nobody would wait for their effect.
func (s *Server) reserveBody(owners ...BodyOwner) (*Reservation, error) {
	if s.guard.stalled.Load() {
		if s.StorageStalled() {
			return nil, fault.New(fault.Unavailable, "the server's disk does not respond; nothing was changed").After(stallRetry)
		}
		s.guard.stalled.Store(false)
	}
	return s.bodies.reserve(owners...), nil
}
