package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/txn"
)

// Route is an entry of the route table.
type Route struct {
	Method string
	Path   string
	Scope  auth.Scope
	Status int
}

// Endpoint is a route with its handler.
type Endpoint struct {
	Route
	yaml    bool // the body may be YAML
	csv     bool // the body is a CSV file
	streams bool // the handler reads the body
	// Headers sets headers that every response of the endpoint has; nil: none.
	Headers func(http.Header)
	bind    func(*request) (boundRequest, error)
	// prepares marks endpoints whose prepare function does the work that may be
	// slow, such as compiling a definition.
	prepares bool
	// sessionOnly marks endpoints of the session mount alone. Their responses are
	// not saved for an Idempotency-Key, and their bodies are small.
	sessionOnly bool
	// Failed, if not nil, returns the response to an error. It is for endpoints that
	// browsers open as a page, where people could not read an error in JSON.
	Failed     func(*http.Request, *fault.Error) *Reply
	parameters []string // of the path, in order
	requests   *requestStats
}

// bodyBytes returns the maximum size of a request body.
func (e *Endpoint) bodyBytes(actor auth.Actor) int64 {
	if e.sessionOnly {
		return sessionBodyBytes
	}
	return actor.Limits().RequestBodyBytes
}

// limitText completes the error message for a body over the limit.
func (e *Endpoint) limitText() string {
	if e.sessionOnly {
		return "this endpoint accepts"
	}
	return "the plan allows"
}

// sessionBodyBytes is more than a name, an e-mail address and a password need.
const sessionBodyBytes = 16 << 10

// RouteTable is the route table.
type RouteTable struct {
	endpoints []*Endpoint // in the order they were added
	public    []PublicRoute
	root      routeNode
}

// Handle adds a route whose handler is quick. In is a struct whose field tags name
// the part of the request they come from; see binder.
func Handle[In any](t *RouteTable, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*Reply, error)) *Endpoint {
	e := addRoute(t, pattern, scope, status, handler[In, *In]{asDecoded[In], func(ctx context.Context, _ txn.Tx, in *In) (*Reply, error) { return fn(ctx, in) }})
	if e.Method == http.MethodPost && !e.sessionOnly {
		panic(fmt.Sprintf("route %s accepts an Idempotency-Key: its handler needs the transaction", pattern))
	}
	return e
}

// HandleWrite adds a route whose handler is quick and writes everything as part of the
// transaction, if there is one.
func HandleWrite[In any](t *RouteTable, pattern string, scope auth.Scope, status int, fn func(context.Context, txn.Tx, *In) (*Reply, error)) *Endpoint {
	return addRoute(t, pattern, scope, status, handler[In, *In]{asDecoded[In], fn})
}

// HandlePrepared adds a route that does slow work, such as compiling a definition, before
// anything is written. Commit gets what prepare returned, and writes it as part of the
// transaction, if there is one.
func HandlePrepared[In, P any](t *RouteTable, pattern string, scope auth.Scope, status int,
	prepare func(context.Context, *In) (P, error), commit func(context.Context, txn.Tx, P) (*Reply, error),
) *Endpoint {
	e := addRoute(t, pattern, scope, status, handler[In, P]{prepare, commit})
	e.prepares = true
	return e
}

// HandleSlow adds a route whose handler may be slow and stores nothing.
func HandleSlow[In any](t *RouteTable, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*Reply, error)) *Endpoint {
	return HandlePrepared(t, pattern, scope, status, fn, func(_ context.Context, _ txn.Tx, r *Reply) (*Reply, error) { return r, nil })
}

func addRoute[In, P any](t *RouteTable, pattern string, scope auth.Scope, status int, h handler[In, P]) *Endpoint {
	method, path, _ := strings.Cut(pattern, " ")
	if scope == "" {
		panic(fmt.Sprintf("route %s has no scope", pattern))
	}
	binder := newBinder[In](pattern)
	e := &Endpoint{
		Route: Route{Method: method, Path: path, Scope: scope, Status: status},
		yaml:  binder.yaml, csv: binder.csv, streams: binder.streams, parameters: parameterNames(path), requests: newRequestStats(),
	}
	e.sessionOnly = mountOf(path) == mountSession
	e.bind = func(r *request) (boundRequest, error) {
		bound := &handledRequest[In, P]{handler: h}
		return bound, binder.bind(r, &bound.in)
	}
	t.endpoints = append(t.endpoints, e)
	t.root.add(path, e)
	if mountOf(path) == mountKey {
		t.root.add(sessionPrefix+path, e)
	}
	return e
}

// Routes lists the routes, except those that need a session.
func (s *Server) Routes() []Route { return s.routes.list(false) }

// SessionRoutes lists the routes that exist on the session mount only.
func (s *Server) SessionRoutes() []Route { return s.routes.list(true) }

func (t *RouteTable) list(sessionOnly bool) []Route {
	var out []Route
	for _, e := range t.endpoints {
		if e.sessionOnly == sessionOnly {
			out = append(out, e.Route)
		}
	}
	return out
}
