package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/usage"
)

// serveEndpoint runs the endpoint that a request matched and writes its response.
func (s *Server) serveEndpoint(w http.ResponseWriter, r *http.Request, route match) {
	c, e := CallerOf(r.Context()), route.endpoint
	if e.Headers != nil {
		e.Headers(w.Header())
	}
	reply, err := s.callEndpoint(w, r, route, c)
	switch {
	case err != nil && e.Failed != nil:
		problem := s.problem(c, err)
		c.code = problem.Code
		reply = e.Failed(r, problem)
	case err != nil:
		s.fail(w, c, err)
		return
	}
	switch {
	case reply.Stream != nil:
		s.stream(w, r, e, reply.Stream)
		return
	case reply.Download != nil:
		s.download(w, r, e, reply)
		return
	case reply.Serve != nil:
		reply.Serve(&Call{W: w, R: r, server: s, caller: c})
		return
	}
	s.write(w, e, c.mount.prefixLocation(reply))
}

func (s *Server) callEndpoint(w http.ResponseWriter, r *http.Request, route match, c *Caller) (*Reply, error) {
	e := route.endpoint
	if e.Scope != auth.Public {
		if c.rejection != nil {
			return nil, c.rejection
		}
		if !auth.Grants(c.Actor.Scopes, e.Scope) {
			return nil, c.mount.missingScope(e.Scope)
		}
		if c.mount == mountKey {
			s.services.Usage.Count(c.Actor.Workspace.ID, func(day *usage.Day) { day.Requests++ })
		}
	}
	req := &request{http: r, route: route, actor: c.Actor}
	if !reads(r) {
		reserved, err := s.reserveBody(c.bodyOwner())
		if err != nil {
			return nil, err
		}
		defer reserved.Release()
		if err := req.read(e, reserved); err != nil {
			return nil, err
		}
	}
	bound, err := e.bind(req)
	if err != nil {
		return nil, err
	}
	reply, err := s.execute(r.Context(), e, req, bound)
	if err != nil || reply.AfterCommit == nil {
		return reply, err
	}
	return reply.AfterCommit(r.Context(), http.NewResponseController(w))
}

// execute prepares and commits a request, again if its data changed in between.
// With an Idempotency-Key it takes effect only once.
func (s *Server) execute(ctx context.Context, e *Endpoint, req *request, bound boundRequest) (*Reply, error) {
	once, err := idempotentRequest(e, req)
	if err != nil {
		return nil, err
	}
	if once != nil && e.prepares {
		saved, err := s.services.Idempotency.Find(ctx, req.actor, *once)
		if err != nil {
			return nil, err
		}
		if saved != nil {
			return replay(*saved), nil
		}
	}
	for {
		if err := bound.prepare(ctx); err != nil {
			return nil, req.addPositions(err)
		}
		response, err := s.commit(ctx, e, req, once, bound)
		if !errors.Is(err, ErrStale) {
			return response, req.addPositions(err)
		}
	}
}

// idempotentRequest returns what identifies a request with an Idempotency-Key, or
// nil if it has none.
func idempotentRequest(e *Endpoint, req *request) (*idempotency.Request, error) {
	r := req.http
	keys := r.Header.Values("Idempotency-Key")
	if e.Method != http.MethodPost || len(keys) == 0 || e.sessionOnly {
		return nil, nil
	}
	key := keys[0]
	if len(keys) > 1 || key == "" || len(key) > idempotency.MaxKey || strings.ContainsFunc(key, Unprintable) {
		return nil, Parameter("Idempotency-Key", "must be one value of 1 to %d printable characters", idempotency.MaxKey)
	}
	return &idempotency.Request{Route: r.Method + " " + r.URL.Path, Key: key, Body: req.body}, nil
}

// commit writes the effect of a request, and with an Idempotency-Key its response
// in the same transaction.
func (s *Server) commit(ctx context.Context, e *Endpoint, req *request, once *idempotency.Request, bound boundRequest) (*Reply, error) {
	if once == nil {
		response, err := bound.commit(ctx, nil)
		req.locate(response)
		return response, err
	}
	var response *Reply
	saved, replayed, err := s.services.Idempotency.Do(ctx, req.actor, *once, func(ctx context.Context, tx txn.Tx) (idempotency.Response, error) {
		var err error
		if response, err = bound.commit(ctx, tx); err != nil {
			return idempotency.Response{}, err
		}
		req.locate(response)
		return idempotency.Response{Status: response.statusOr(e.Status), Header: response.header, Body: EncodeJSON(response.Body)}, nil
	})
	if err != nil || !replayed {
		return response, err
	}
	return replay(saved), nil
}

func replay(saved idempotency.Response) *Reply {
	again := &Reply{Status: saved.Status, header: saved.Header, Raw: saved.Body}
	return again.WithHeader("Content-Type", "application/json").WithHeader("Idempotent-Replayed", "true")
}
