package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/trigger"
)

// publicRoute is a route for callers without an API key. The token in the last
// part of the path authorizes them.
type publicRoute struct {
	prefix string
	// methods lists the allowed methods; nil leaves the check to serve.
	methods []string
	status  int
	serve   func(w http.ResponseWriter, r *http.Request, c *caller, token string)
	fail    func(w http.ResponseWriter, c *caller, err error)
}

func (s *Server) registerPublicRoutes() []publicRoute {
	return []publicRoute{
		{run.PagePath, []string{http.MethodGet, http.MethodPost}, http.StatusOK, s.servePage, s.failPage},
		{run.CallbackPath, []string{http.MethodPost}, http.StatusOK, s.serveCallback, s.fail},
		{trigger.HookPath, nil, http.StatusAccepted, s.serveHook, s.fail},
		{subscription.Path, nil, http.StatusOK, s.serveServiceHook, s.fail},
	}
}

// PublicRoutes lists the public routes as the OpenAPI document has them.
func (s *Server) PublicRoutes() []Route {
	var out []Route
	for _, route := range s.publicRoutes {
		for _, method := range documentedMethods(route) {
			out = append(out, Route{Method: method, Path: route.prefix + "{token}", Scope: auth.Public, Status: route.status})
		}
	}
	return out
}

// documentedMethods returns the methods that the OpenAPI document lists. A hook
// is usually called with POST; its trigger may allow others.
func documentedMethods(route publicRoute) []string {
	if route.methods == nil {
		return []string{http.MethodPost}
	}
	return route.methods
}

// publicRouteFor returns the public route of a path, and the token in it.
func (s *Server) publicRouteFor(path string) (*publicRoute, string) {
	for i := range s.publicRoutes {
		if token, found := strings.CutPrefix(path, s.publicRoutes[i].prefix); found {
			return &s.publicRoutes[i], token
		}
	}
	return nil, ""
}

// servePublic serves a request to a public route.
func (s *Server) servePublic(w http.ResponseWriter, r *http.Request, c *caller, route *publicRoute, token string) {
	w.Header().Set("X-Robots-Tag", "noindex")
	c.network = network(s.clientAddress(r))
	setLimitHeaders(w.Header(), s.preauth.Peek(c.network, s.PreauthPerMinute, clock.Now()))
	if route.methods != nil && !slices.Contains(route.methods, r.Method) && (r.Method != http.MethodHead || route.methods[0] != http.MethodGet) {
		allowed := strings.Join(route.methods, ", ")
		w.Header().Set("Allow", allowed)
		route.fail(w, c, fault.New(fault.MethodNotAllowed, "method %s is not allowed here; use %s", clean(r.Method), allowed))
		return
	}
	route.serve(w, r, c, token)
}

// reject counts an unknown token or a failed verification as a failed
// authentication of the client's address. It returns the error to respond with.
func (s *Server) reject(w http.ResponseWriter, r *http.Request, err error) error {
	if !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Unauthorized) {
		return err
	}
	state, ok, _ := s.preauth.Take(r.Context(), network(s.clientAddress(r)), s.PreauthPerMinute, clock.Now())
	setLimitHeaders(w.Header(), state)
	if !ok {
		return rateLimited("too many failed requests: this IP address may send %d wrong links, keys or signatures per minute", state)
	}
	return err
}

// loggedPath returns a path without its token.
func (s *Server) loggedPath(path string) string {
	if route, _ := s.publicRouteFor(path); route != nil {
		return route.prefix + "***"
	}
	return clean(path)
}
