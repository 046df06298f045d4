package api

import (
	"net/http"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// stallCheck is how often a request checks whether the storage responds.
const stallCheck = time.Second

// StallDelay is how long it takes at most until a request notices that the storage
// has stalled.
const StallDelay = 2 * stallCheck

// respondUnlessStalled responds to a request. If the storage stops responding in
// the meantime, it tells the client so, returns false, and leaves the handler to
// finish on its own: a flush that hangs cannot be canceled, and what has to happen
// after a commit still happens.
func (s *Server) respondUnlessStalled(out *recorder, r *http.Request, c *caller) bool {
	out.header = http.Header{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.respond(out, r, c)
	}()
	check := time.NewTicker(stallCheck)
	defer check.Stop()
	// One check is not enough: after a pause of the whole machine, a commit looks
	// slow although it is about to end.
	before := false
	for {
		select {
		case <-done:
			_ = out.begin() // a response without a body
			return true
		case <-check.C:
		}
		if out.started() {
			<-done
			return true
		}
		stalled := s.StorageStalled()
		if stalled && before && out.abandon(func(w http.ResponseWriter) { s.failStalled(w, r, c) }) {
			s.stalled.Store(true)
			return false
		}
		before = stalled
	}
}

// failStalled responds in place of a handler that waits for the storage.
func (s *Server) failStalled(w http.ResponseWriter, r *http.Request, c *caller) {
	err := fault.New(fault.Unavailable, "the server's disk does not respond; it is not known whether the request took effect")
	if reads(r) {
		err = fault.New(fault.Unavailable, "the server's disk does not respond; try again later")
	}
	s.errors.Add(string(fault.Unavailable))
	s.Log.Warn("request abandoned", "request_id", c.requestID, "error", err)
	s.setCommonHeaders(w.Header(), c)
	w.Header().Set("Connection", "close") // the handler may still use it
	writeError(w, err.After(stallRetry), c.requestID)
}

const stallRetry = 10 * time.Second

// reserveBody reserves memory for the body of a request. It rejects requests while
// the storage is known not to respond: nobody would wait for their effect.
func (s *Server) reserveBody(owners ...bodyOwner) (*reservation, error) {
	if s.stalled.Load() {
		if s.StorageStalled() {
			return nil, fault.New(fault.Unavailable, "the server's disk does not respond; nothing was changed").After(stallRetry)
		}
		s.stalled.Store(false)
	}
	return s.bodies.reserve(owners...), nil
}
