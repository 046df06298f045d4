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

// caller is what is known of a request before it is routed.
type caller struct {
	requestID string
	actor     auth.Actor
	refusal   error      // why there is no actor, or why nothing is answered now
	endpoint  *endpoint  // that answers it, if one does
	code      fault.Code // of the error that was answered
	streamed  bool       // the answer went on for as long as the client wanted
	paged     bool       // the dashboard answered
	mount     mount
	signedIn  *account.SignedIn // nil: not with a session
	visit     account.Visit
	network   string // what attempts are counted by
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

func actorOf(ctx context.Context) auth.Actor { return callerOf(ctx).actor }

// serve is what every request goes through.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := &caller{requestID: uid.New(uid.Request)}
	out := &recorder{ResponseWriter: w}
	begun := clock.Mark()
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic in a handler", "request_id", c.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.fail(out, c, fault.New(fault.Internal, "the service failed to handle the request"))
		}
		took := time.Since(begun)
		s.count(out, c, took)
		s.logRequest(r, out, c, took)
	}()
	setSecurityHeaders(out.Header(), r)
	out.Header().Set("X-Request-Id", c.requestID)
	if d, token := s.doorOf(r.URL.Path); d != nil {
		s.visit(out, r, c, d, token)
		return
	}
	endpoint, allowed := s.routes.find(r)
	c.endpoint = endpoint
	if file := s.dashboard.find(r); endpoint == nil && len(allowed) == 0 && file != nil {
		c.paged = true
		s.dashboard.send(out, r, file)
		return
	}
	c.mount = mountOf(r.URL.Path)
	open := c.mount == withNothing || endpoint != nil && endpoint.Scope == auth.Public
	if c.mount == withSession && s.origins.Check(r) != nil {
		s.refuseOrigin(out, r, c)
		return
	}
	s.identify(out, r, c, open)
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))

	switch {
	case endpoint != nil:
		s.routes.mux.ServeHTTP(out, r)
	case c.refusal != nil && !open:
		s.fail(out, c, c.refusal)
	case len(allowed) > 0:
		out.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(out, c, fault.New(fault.MethodNotAllowed, "%s is not allowed here; the path has %s", clean(r.Method), strings.Join(allowed, ", ")))
	default:
		s.fail(out, c, fault.New(fault.NotFound, "there is nothing at %q", clean(r.URL.Path)))
	}
}

// answer runs an endpoint for a request that was matched to it.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *endpoint) {
	c := callerOf(r.Context())
	reply, err := s.perform(w, r, e, c)
	if err != nil {
		s.fail(w, c, err)
		return
	}
	if reply.stream != nil {
		s.stream(w, r, e, reply.stream)
		return
	}
	s.write(w, e, c.mount.located(reply))
}

func (s *Server) perform(w http.ResponseWriter, r *http.Request, e *endpoint, c *caller) (*reply, error) {
	if e.Scope != auth.Public {
		if c.refusal != nil {
			return nil, c.refusal
		}
		if !auth.Grants(c.actor.Scopes, e.Scope) {
			return nil, c.mount.lacks(e.Scope)
		}
		if c.mount == withKey {
			s.Usage.Count(c.actor.Workspace.ID, func(d *usage.Day) { d.Requests++ })
		}
	}
	req := &request{http: r, actor: c.actor}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		release, err := s.bodies.take(r, e.bodyBytes(c.actor))
		if err != nil {
			return nil, err
		}
		defer release()
		if err := req.read(w, e); err != nil {
			return nil, err
		}
	}
	effect, err := e.bind(req)
	if err != nil {
		return nil, err
	}
	reply, err := s.once(r, e, req, req.located(effect))
	if err != nil || reply.then == nil {
		return reply, err
	}
	return reply.then(r.Context(), http.NewResponseController(w))
}

// errFirst says that no answer was saved yet.
var errFirst = errors.New("the first request with this key")

// once runs the effect; with an Idempotency-Key, only the first time.
func (s *Server) once(r *http.Request, e *endpoint, req *request, effect call) (*reply, error) {
	keys := r.Header.Values("Idempotency-Key")
	if e.Method != http.MethodPost || len(keys) == 0 || e.people {
		return effect(r.Context())
	}
	key := keys[0]
	if len(keys) > 1 || key == "" || len(key) > idempotency.MaxKey || strings.ContainsFunc(key, unprintable) {
		return nil, parameter("Idempotency-Key", "must be one value of 1 to %d printable characters", idempotency.MaxKey)
	}
	var first *reply
	do := func(effect call) (idempotency.Answer, bool, error) {
		return s.Idempotency.Do(r.Context(), req.actor, idempotency.Request{Route: r.Method + " " + r.URL.Path, Key: key, Body: req.body},
			func(ctx context.Context) (idempotency.Answer, error) {
				var err error
				if first, err = effect(ctx); err != nil {
					return idempotency.Answer{}, err
				}
				return idempotency.Answer{Status: first.statusOr(e.Status), Header: first.header, Body: encodeJSON(first.body)}, nil
			})
	}
	if !e.stores {
		// What stores nothing must not hold up those who do: after a look for a
		// saved answer it is worked out beside the unit, which then saves it.
		answer, _, err := do(func(context.Context) (*reply, error) { return nil, errFirst })
		switch {
		case err == nil:
			return replay(answer), nil
		case !errors.Is(err, errFirst):
			return nil, err
		}
		ahead, err := effect(r.Context())
		if err != nil {
			return nil, err
		}
		effect = func(context.Context) (*reply, error) { return ahead, nil }
	}
	answer, replayed, err := do(effect)
	if err != nil || !replayed {
		return first, err
	}
	return replay(answer), nil
}

// replay is a saved answer once more.
func replay(saved idempotency.Answer) *reply {
	again := &reply{status: saved.Status, header: saved.Header, raw: saved.Body}
	return again.with("Content-Type", "application/json").with("Idempotent-Replayed", "true")
}

// fail writes an error.
func (s *Server) fail(w http.ResponseWriter, c *caller, err error) {
	f := s.explain(c, err)
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		return // the answer has begun: nothing can be added to it
	}
	c.code = f.Code
	if f.Code == fault.Unauthorized && c.mount != withSession {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeError(w, f, c.requestID)
}

// explain makes an error for a client of any error, and logs what is ours.
func (s *Server) explain(c *caller, err error) *fault.Error {
	f, ok := fault.As(err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		f = fault.New(fault.Unavailable, "the request was given up").Because(err)
	default:
		f = fault.New(fault.Internal, "the service failed to handle the request").Because(err)
	}
	switch status := f.Code.Status(); {
	case status == http.StatusServiceUnavailable: // it may pass, and is said to the client
		s.Log.Warn("request refused", "request_id", c.requestID, "error", err)
	case f.Code == fault.RunFailed: // what a workflow does is its own business
	case status >= http.StatusInternalServerError:
		s.Log.Error("request failed", "request_id", c.requestID, "error", err)
	}
	return f
}
