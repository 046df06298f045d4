package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
)

// caller holds what is known about a request beside its endpoint's input.
type caller struct {
	requestID string
	actor     auth.Actor
	rejection error      // why there is no actor, or why the request is over a limit
	endpoint  *endpoint  // nil if no route matches
	code      fault.Code // of the error response
	streamed  bool       // the response was a stream
	dashboard bool       // the dashboard served it
	mount     mount
	signedIn  *account.SignedIn // nil without a session
	visit     account.ClientInfo
	session   string // on a public route: the token that the browser sent, valid or not
	origin    string // of the page that sent the request, as its browser says
	host      string // that the request was sent to
	network   string // the key for what is counted by client; see network
}

// bodyOwner returns whom the body of the request is counted against.
func (c *caller) bodyOwner() bodyOwner {
	if c.actor.Workspace.ID != "" {
		return workspaceBodies(c.actor.Workspace.ID)
	}
	return networkBodies(c.network)
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

func actorOf(ctx context.Context) auth.Actor { return callerOf(ctx).actor }

// serve handles every request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	r, body := trackBody(w, r)
	out, c := &recorder{ResponseWriter: w, body: body}, &caller{requestID: uid.New(uid.Request)}
	if s.StorageStalled != nil {
		out.header = http.Header{}
		defer s.guard.add(&guardedRequest{out: out, http: r, caller: c})()
	}
	s.respond(out, r, c)
	if out.begin() == nil { // also sends the headers of a response without a body
		s.drain(body, r)
	}
}

func (s *Server) respond(out *recorder, r *http.Request, c *caller) {
	start := clock.Monotonic()
	defer func() {
		p := recover()
		if p == http.ErrAbortHandler { //nolint:errorlint // the value itself tells net/http to close the connection
			defer panic(p)
		} else if p != nil {
			s.Log.Error("panic in a handler", "request_id", c.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
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
	if isSpare(r.Context()) && r.URL.Path != healthPath && r.URL.Path != readyPath {
		s.fail(out, c, fault.New(fault.Unavailable, "the server has no connections or file descriptors left; try again").After(time.Second))
		return
	}
	if route, token := s.publicRouteFor(r.URL.Path); route != nil {
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
	c.mount, c.origin, c.host = mountOf(r.URL.Path), r.Header.Get("Origin"), r.Host
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
		s.fail(out, c, fault.New(fault.MethodNotAllowed, "method %s is not allowed here; use %s", clean(r.Method), allowed))
	default:
		s.fail(out, c, fault.New(fault.NotFound, "there is nothing at %q", clean(r.URL.Path)))
	}
}

// reads reports whether a request only reads.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// serveEndpoint runs the endpoint that a request matched and writes its response.
func (s *Server) serveEndpoint(w http.ResponseWriter, r *http.Request, route match) {
	c, e := callerOf(r.Context()), route.endpoint
	if e.tus {
		setTusHeaders(w.Header())
	}
	reply, err := s.callEndpoint(w, r, route, c)
	switch {
	case err != nil && e.failed != nil:
		problem := s.clientError(c, err)
		c.code = problem.Code
		reply = e.failed(r, problem)
	case err != nil:
		s.fail(w, c, err)
		return
	}
	switch {
	case reply.stream != nil:
		s.stream(w, r, e, reply.stream)
		return
	case reply.download != nil:
		s.download(w, r, e, reply)
		return
	case reply.serve != nil:
		reply.serve(w, r)
		return
	}
	s.write(w, e, c.mount.prefixLocation(reply))
}

func (s *Server) callEndpoint(w http.ResponseWriter, r *http.Request, route match, c *caller) (*reply, error) {
	e := route.endpoint
	if e.Scope != auth.Public {
		if c.rejection != nil {
			return nil, c.rejection
		}
		if !auth.Grants(c.actor.Scopes, e.Scope) {
			return nil, c.mount.missingScope(e.Scope)
		}
		if c.mount == mountKey {
			s.Usage.Count(c.actor.Workspace.ID, func(day *usage.Day) { day.Requests++ })
		}
	}
	req := &request{http: r, route: route, actor: c.actor}
	if !reads(r) {
		reserved, err := s.reserveBody(c.bodyOwner())
		if err != nil {
			return nil, err
		}
		defer reserved.release()
		if err := req.read(e, reserved); err != nil {
			return nil, err
		}
	}
	prepare, err := e.bind(req)
	if err != nil {
		return nil, err
	}
	reply, err := s.execute(r, e, req, req.withPositions(prepare))
	if err != nil || reply.afterCommit == nil {
		return reply, err
	}
	return reply.afterCommit(r.Context(), http.NewResponseController(w))
}

// execute prepares and commits a request, again if its data changed in between.
// With an Idempotency-Key it takes effect only once.
func (s *Server) execute(r *http.Request, e *endpoint, req *request, prepare prepare) (*reply, error) {
	once, err := idempotentRequest(r, e, req)
	if err != nil {
		return nil, err
	}
	if once != nil && e.prepares {
		saved, err := s.Idempotency.Find(r.Context(), req.actor, *once)
		if err != nil {
			return nil, err
		}
		if saved != nil {
			return replay(*saved), nil
		}
	}
	for {
		commit, err := prepare(r.Context())
		if err != nil {
			return nil, err
		}
		response, err := s.commit(r.Context(), e, req.actor, once, commit)
		if !errors.Is(err, errStale) {
			return response, err
		}
	}
}

// idempotentRequest returns what identifies a request with an Idempotency-Key, or
// nil if it has none.
func idempotentRequest(r *http.Request, e *endpoint, req *request) (*idempotency.Request, error) {
	keys := r.Header.Values("Idempotency-Key")
	if e.Method != http.MethodPost || len(keys) == 0 || e.sessionOnly {
		return nil, nil
	}
	key := keys[0]
	if len(keys) > 1 || key == "" || len(key) > idempotency.MaxKey || strings.ContainsFunc(key, unprintable) {
		return nil, parameter("Idempotency-Key", "must be one value of 1 to %d printable characters", idempotency.MaxKey)
	}
	return &idempotency.Request{Route: r.Method + " " + r.URL.Path, Key: key, Body: req.body}, nil
}

// commit writes the effect of a request, and with an Idempotency-Key its response
// in the same transaction.
func (s *Server) commit(ctx context.Context, e *endpoint, actor auth.Actor, once *idempotency.Request, commit commit) (*reply, error) {
	if once == nil {
		return commit(ctx)
	}
	var response *reply
	saved, replayed, err := s.Idempotency.Do(ctx, actor, *once, func(ctx context.Context) (idempotency.Response, error) {
		var err error
		if response, err = commit(ctx); err != nil {
			return idempotency.Response{}, err
		}
		return idempotency.Response{Status: response.statusOr(e.Status), Header: response.header, Body: encodeJSON(response.body)}, nil
	})
	if err != nil || !replayed {
		return response, err
	}
	return replay(saved), nil
}

// replay turns a saved response into a reply.
func replay(saved idempotency.Response) *reply {
	again := &reply{status: saved.Status, header: saved.Header, raw: saved.Body}
	return again.withHeader("Content-Type", "application/json").withHeader("Idempotent-Replayed", "true")
}

// fail writes an error.
func (s *Server) fail(w http.ResponseWriter, c *caller, err error) {
	f := s.clientError(c, err)
	if rec, ok := w.(*recorder); ok && rec.started() {
		return // the response has been started
	}
	c.code = f.Code
	if f.Code == fault.Unauthorized && c.mount != mountSession {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeError(w, f, c.requestID)
}

// clientError converts any error to one for the client, and logs failures of the service.
func (s *Server) clientError(c *caller, err error) *fault.Error {
	f, ok := fault.As(err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		f = fault.New(fault.Unavailable, "the request was canceled or timed out before the service could respond").Because(err)
	default:
		f = fault.New(fault.Internal, "the service failed to handle the request").Because(err)
	}
	switch status := f.Code.Status(); {
	case status == http.StatusServiceUnavailable || f.Code == fault.StorageFull: // temporary, and the client is told
		s.Log.Warn("request rejected", "request_id", c.requestID, "error", err)
	case f.Code == fault.RunFailed: // a failed workflow is not a failure of the service
	case status >= http.StatusInternalServerError:
		s.Log.Error("request failed", "request_id", c.requestID, "error", err)
	}
	return f
}
