package api

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
)

// Route is a line of the table.
type Route struct {
	Method string
	Path   string
	Scope  auth.Scope
	Status int
}

// endpoint is a route with what it does: bind turns a request into a call.
type endpoint struct {
	Route
	yaml bool // its body may be YAML
	bind func(*request) (call, error)
	// stores says that the effect is something in the store: it is committed
	// together with its saved answer.
	stores bool
	// people says that it is about a person who signs in: its answer is not saved
	// for an Idempotency-Key, and its body is small.
	people bool
	served *served
}

// bodyBytes is how large the body of a request may be.
func (e *endpoint) bodyBytes(actor auth.Actor) int64 {
	if e.people {
		return peopleBody
	}
	return actor.Limits().RequestBodyBytes
}

// boundBy says what bounds the body.
func (e *endpoint) boundBy() string {
	if e.people {
		return "are taken here"
	}
	return "the plan allows"
}

// peopleBody is more than a name, an address and a password take.
const peopleBody = 16 << 10

// apart marks an endpoint that stores nothing and may take its time.
func (e *endpoint) apart() { e.stores = false }

// call is a request that was found to be in order, ready to have its effect.
type call func(ctx context.Context) (*reply, error)

// table finds the endpoint of a request.
type table struct {
	mux       *http.ServeMux
	serve     func(http.ResponseWriter, *http.Request, *endpoint)
	endpoints map[string]*endpoint // by pattern
	routes    []Route
}

func newTable(serve func(http.ResponseWriter, *http.Request, *endpoint)) table {
	return table{mux: http.NewServeMux(), serve: serve, endpoints: map[string]*endpoint{}}
}

// handle adds a route. In is a struct whose fields say by their tags where in
// the request they come from; see binder.
func handle[In any](t *table, pattern string, scope auth.Scope, status int, fn func(context.Context, *In) (*reply, error)) *endpoint {
	method, path, _ := strings.Cut(pattern, " ")
	if scope == "" {
		panic(fmt.Sprintf("route %s has no scope", pattern))
	}
	binder := newBinder[In](pattern)
	e := &endpoint{Route: Route{Method: method, Path: path, Scope: scope, Status: status}, yaml: binder.yaml, stores: true, served: newServed()}
	e.people = mountOf(path) == withSession
	e.bind = func(r *request) (call, error) {
		in := new(In)
		if err := binder.bind(r, in); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (*reply, error) { return fn(ctx, in) }, nil
	}
	t.routes = append(t.routes, e.Route)
	t.mount(pattern, e)
	if mountOf(path) == withKey {
		t.mount(method+" "+sessionPrefix+path, e)
	}
	return e
}

func (t *table) mount(pattern string, e *endpoint) {
	t.endpoints[pattern] = e
	t.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { t.serve(w, r, e) })
}

// Routes lists the table, without what is for sessions only.
func (s *Server) Routes() []Route {
	return slices.DeleteFunc(slices.Clone(s.routes.routes), func(r Route) bool { return mountOf(r.Path) == withSession })
}

// SessionRoutes lists what is for sessions only.
func (s *Server) SessionRoutes() []Route {
	return slices.DeleteFunc(slices.Clone(s.routes.routes), func(r Route) bool { return mountOf(r.Path) != withSession })
}

// find returns the endpoint that answers the request, or else the methods that
// its path has.
func (t *table) find(r *http.Request) (found *endpoint, allowed []string) {
	// The mux would answer a path like //v1 or /v1/../x with a redirect.
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
