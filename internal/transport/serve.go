package transport

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	r, body := trackBody(w, r)
	out, c := &recorder{ResponseWriter: w, body: body}, &Caller{RequestID: uid.New(uid.Request)}
	if s.StorageStalled != nil {
		out.header = http.Header{}
		defer s.guard.add(&guardedRequest{out: out, http: r, caller: c})()
	}
	s.respond(out, r, c)
	if out.begin() == nil { // also sends the headers of a response without a body
		s.drain(body, r)
	}
}

func (s *Server) respond(out *recorder, r *http.Request, c *Caller) {
	start := clock.Monotonic()
	defer func() {
		p := recover()
		if p == http.ErrAbortHandler { //nolint:errorlint // the value itself tells net/http to close the connection
			defer panic(p)
		} else if p != nil {
			s.Log.Error("panic in a handler", "request_id", c.RequestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.fail(out, c, fault.New(fault.Internal, "the service failed to handle the request"))
		}
		took := time.Since(start)
		s.recordRequest(out, c, took)
		s.logRequest(r, out, c, took)
	}()
	s.setCommonHeaders(out.Header(), c)
	if isSpare(r.Context()) {
		out.Header().Set("Connection", "close")
	}
	if isSpare(r.Context()) && r.URL.Path != HealthPath && r.URL.Path != ReadyPath {
		s.fail(out, c, fault.New(fault.Unavailable, "the server has no connections or file descriptors left; try again").After(time.Second))
		return
	}
	if route, token := s.routes.findPublic(r.URL.Path); route != nil {
		s.servePublic(out, r, c, route, token)
		return
	}
	route := s.routes.root.find(r)
	c.endpoint = route.endpoint
	if route.endpoint == nil && len(route.allowed) == 0 {
		if file := s.dashboard.find(r); file != nil {
			c.dashboard = true
			s.dashboard.serve(out, r, file)
			return
		}
	}
	c.mount, c.Origin, c.Host = mountOf(r.URL.Path), r.Header.Get("Origin"), r.Host
	public := c.mount == mountPublic || route.endpoint != nil && route.endpoint.Scope == auth.Public
	if c.mount == mountSession && s.origins.Check(r) != nil {
		s.rejectOrigin(out, r, c)
		return
	}
	s.identify(out, r, c, public)

	switch {
	case route.endpoint != nil:
		s.serveEndpoint(out, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)), route)
	case c.rejection != nil:
		s.fail(out, c, c.rejection)
	case len(route.allowed) > 0:
		allowed := strings.Join(route.allowed, ", ")
		out.Header().Set("Allow", allowed)
		s.fail(out, c, fault.New(fault.MethodNotAllowed, "method %s is not allowed here; use %s", Clean(r.Method), allowed))
	default:
		s.fail(out, c, fault.New(fault.NotFound, "there is nothing at %q", Clean(r.URL.Path)))
	}
}

// reads reports whether a request only reads.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
