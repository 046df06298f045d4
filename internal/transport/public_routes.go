package transport

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// PublicRoute is a route for callers without an API key. The token in the last part of the
// path authorizes them.
type PublicRoute struct {
	Prefix string
	// Methods lists the allowed methods; nil leaves the check to Serve.
	Methods []string
	Status  int
	Serve   func(call *Call, token string)
	// Fail responds with an error; nil: as JSON.
	Fail func(*Call, error)
}

// AddPublic adds a public route.
func (t *RouteTable) AddPublic(r PublicRoute) { t.public = append(t.public, r) }

// PublicRoutes lists the public routes as the OpenAPI document has them.
func (s *Server) PublicRoutes() []Route {
	var out []Route
	for _, route := range s.routes.public {
		for _, method := range route.documentedMethods() {
			out = append(out, Route{Method: method, Path: route.Prefix + "{token}", Scope: auth.Public, Status: route.Status})
		}
	}
	return out
}

// documentedMethods returns the methods that the OpenAPI document lists. A hook
// is usually called with POST; its trigger may allow others.
func (r PublicRoute) documentedMethods() []string {
	if r.Methods == nil {
		return []string{http.MethodPost}
	}
	return r.Methods
}

// findPublic returns the public route of a path, and the token in it.
func (t *RouteTable) findPublic(path string) (*PublicRoute, string) {
	for i := range t.public {
		if token, found := strings.CutPrefix(path, t.public[i].Prefix); found {
			return &t.public[i], token
		}
	}
	return nil, ""
}

func (s *Server) servePublic(w http.ResponseWriter, r *http.Request, c *Caller, route *PublicRoute, token string) {
	w.Header().Set("X-Robots-Tag", "noindex")
	c.Network = Network(s.clientAddress(r))
	SetLimitHeaders(w.Header(), s.preauth.Peek(c.Network, s.PreauthPerMinute, clock.Now()))
	call := &Call{W: w, R: r, server: s, caller: c}
	if route.Methods == nil || slices.Contains(route.Methods, r.Method) || r.Method == http.MethodHead && route.Methods[0] == http.MethodGet {
		route.Serve(call, token)
		return
	}
	err := call.MethodNotAllowed(route.Methods)
	if route.Fail != nil {
		route.Fail(call, err)
		return
	}
	call.Fail(err)
}

// MethodNotAllowed returns the error for a method that is not one of those allowed, and
// sets the header that lists them.
func (c *Call) MethodNotAllowed(methods []string) error {
	allowed := strings.Join(methods, ", ")
	c.W.Header().Set("Allow", allowed)
	return fault.New(fault.MethodNotAllowed, "method %s is not allowed here; use %s", Clean(c.R.Method), allowed)
}

// loggedPath returns a path without its token.
func (s *Server) loggedPath(path string) string {
	if route, _ := s.routes.findPublic(path); route != nil {
		return route.Prefix + "***"
	}
	return Clean(path)
}
