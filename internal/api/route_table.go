package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Route is an entry of the route table.
type Route struct {
	Method string
	Path   string
	Scope  auth.Scope
	Status int
}

// endpoint is a route with its handler: bind decodes a request.
type endpoint struct {
	Route
	yaml    bool // the body may be YAML
	csv     bool // the body is a CSV file
	streams bool // the handler reads the body
	tus     bool // it belongs to the protocol tus
	bind    func(*request) (prepare, error)
	// prepares marks endpoints whose prepare function does the work that may be
	// slow, such as compiling a definition.
	prepares bool
	// sessionOnly marks endpoints of the session mount alone. Their responses are
	// not saved for an Idempotency-Key, and their bodies are small.
	sessionOnly bool
	// failed, if not nil, returns the response to an error. It is for endpoints that
	// browsers open as a page, where people could not read an error in JSON.
	failed     func(*http.Request, *fault.Error) *reply
	parameters []string // of the path, in order
	requests   *requestStats
}

// bodyBytes returns the maximum size of a request body.
func (e *endpoint) bodyBytes(actor auth.Actor) int64 {
	if e.sessionOnly {
		return sessionBodyBytes
	}
	return actor.Limits().RequestBodyBytes
}

// limitText completes the error message for a body over the limit.
func (e *endpoint) limitText() string {
	if e.sessionOnly {
		return "this endpoint accepts"
	}
	return "the plan allows"
}

// sessionBodyBytes is more than a name, an e-mail address and a password need.
const sessionBodyBytes = 16 << 10

// prepare checks a decoded request and prepares its effect, outside of any
// transaction.
type prepare func(ctx context.Context) (commit, error)

// commit writes the effect of a request and returns the response. With an
// Idempotency-Key it runs inside the transaction that saves the response, so it
// must be quick. It returns errStale if it wrote nothing because what was prepared
// is out of date.
type commit func(ctx context.Context) (*reply, error)

// errStale makes the server prepare a request again.
var errStale = errors.New("the data has changed since the request was prepared")

// routeTable is the route table.
type routeTable struct {
	endpoints []*endpoint // in the order they were added
	root      routeNode
}

// handle adds a route whose handler is quick. In is a struct whose field tags name
// the part of the request they come from; see binder.
func handle[In any](t *routeTable, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*reply, error)) *endpoint {
	return addRoute(t, pattern, scope, status, func(_ context.Context, in *In) (commit, error) {
		return func(ctx context.Context) (*reply, error) { return fn(ctx, in) }, nil
	})
}

// handlePrepared adds a route whose handler does slow work, such as compiling a
// definition, and returns what is left to write.
func handlePrepared[In any](t *routeTable, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (commit, error)) *endpoint {
	e := addRoute(t, pattern, scope, status, fn)
	e.prepares = true
	return e
}

// handleSlow adds a route whose handler may be slow and stores nothing.
func handleSlow[In any](t *routeTable, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*reply, error)) *endpoint {
	return handlePrepared(t, pattern, scope, status, func(ctx context.Context, in *In) (commit, error) {
		response, err := fn(ctx, in)
		return func(context.Context) (*reply, error) { return response, nil }, err
	})
}

func addRoute[In any](t *routeTable, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (commit, error)) *endpoint {
	method, path, _ := strings.Cut(pattern, " ")
	if scope == "" {
		panic(fmt.Sprintf("route %s has no scope", pattern))
	}
	binder := newBinder[In](pattern)
	e := &endpoint{
		Route: Route{Method: method, Path: path, Scope: scope, Status: status},
		yaml:  binder.yaml, csv: binder.csv, streams: binder.streams, parameters: parameterNames(path), requests: newRequestStats(),
	}
	e.sessionOnly = mountOf(path) == mountSession
	e.bind = func(r *request) (prepare, error) {
		in := new(In)
		if err := binder.bind(r, in); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (commit, error) { return fn(ctx, in) }, nil
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

func (t *routeTable) list(sessionOnly bool) []Route {
	var out []Route
	for _, e := range t.endpoints {
		if e.sessionOnly == sessionOnly {
			out = append(out, e.Route)
		}
	}
	return out
}
