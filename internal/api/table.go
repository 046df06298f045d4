package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
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
	yaml bool // the body may be YAML
	bind func(*request) (prepare, error)
	// prepares marks endpoints whose prepare function does the work that may be
	// slow, such as compiling a definition.
	prepares bool
	// sessionOnly marks endpoints of the session mount alone. Their responses are
	// not saved for an Idempotency-Key, and their bodies are small.
	sessionOnly bool
	requests    *requestStats
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

// table is the route table.
type table struct {
	mux       *http.ServeMux
	serve     func(http.ResponseWriter, *http.Request, *endpoint)
	endpoints map[string]*endpoint // by pattern
	routes    []Route
}

func newTable(serve func(http.ResponseWriter, *http.Request, *endpoint)) table {
	return table{mux: http.NewServeMux(), serve: serve, endpoints: map[string]*endpoint{}}
}

// handle adds a route whose handler is quick. In is a struct whose field tags name
// the part of the request they come from; see binder.
func handle[In any](t *table, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*reply, error)) {
	addRoute(t, pattern, scope, status, func(_ context.Context, in *In) (commit, error) {
		return func(ctx context.Context) (*reply, error) { return fn(ctx, in) }, nil
	})
}

// handlePrepared adds a route whose handler does slow work, such as compiling a
// definition, and returns what is left to write.
func handlePrepared[In any](t *table, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (commit, error)) {
	addRoute(t, pattern, scope, status, fn).prepares = true
}

// handleSlow adds a route whose handler may be slow and stores nothing.
func handleSlow[In any](t *table, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*reply, error)) {
	handlePrepared(t, pattern, scope, status, func(ctx context.Context, in *In) (commit, error) {
		response, err := fn(ctx, in)
		return func(context.Context) (*reply, error) { return response, nil }, err
	})
}

func addRoute[In any](t *table, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (commit, error)) *endpoint {
	method, path, _ := strings.Cut(pattern, " ")
	if scope == "" {
		panic(fmt.Sprintf("route %s has no scope", pattern))
	}
	binder := newBinder[In](pattern)
	e := &endpoint{Route: Route{Method: method, Path: path, Scope: scope, Status: status}, yaml: binder.yaml, requests: newRequestStats()}
	e.sessionOnly = mountOf(path) == mountSession
	e.bind = func(r *request) (prepare, error) {
		in := new(In)
		if err := binder.bind(r, in); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (commit, error) { return fn(ctx, in) }, nil
	}
	t.routes = append(t.routes, e.Route)
	t.mount(pattern, e)
	if mountOf(path) == mountKey {
		t.mount(method+" "+sessionPrefix+path, e)
	}
	return e
}

func (t *table) mount(pattern string, e *endpoint) {
	t.endpoints[pattern] = e
	t.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { t.serve(w, r, e) })
}

// Routes lists the routes, except those that need a session.
func (s *Server) Routes() []Route {
	return slices.DeleteFunc(slices.Clone(s.routes.routes), func(r Route) bool { return mountOf(r.Path) == mountSession })
}

// SessionRoutes lists the routes that exist on the session mount only.
func (s *Server) SessionRoutes() []Route {
	return slices.DeleteFunc(slices.Clone(s.routes.routes), func(r Route) bool { return mountOf(r.Path) != mountSession })
}

// find returns the endpoint of a request, or the methods that its path allows.
func (t *table) find(r *http.Request) (found *endpoint, allowed []string) {
	// The mux would redirect a path like //v1 or /v1/../x.
	if path.Clean(r.URL.Path) != r.URL.Path {
		return nil, nil
	}
	if _, pattern := t.mux.Handler(r); pattern != "" {
		return t.endpoints[pattern], nil
	}
	probe := &http.Request{URL: r.URL, Host: r.Host}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
		probe.Method = method
		if _, pattern := t.mux.Handler(probe); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	return nil, allowed
}
