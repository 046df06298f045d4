package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/subscription"
)

// serviceHookMethods are the methods of services: most calls are a POST, and some services
// check the URL with another one.
func serviceHookMethods() []string {
	return []string{http.MethodPost, http.MethodGet, http.MethodHead}
}

// serveServiceHook handles a call of a service at the URL of a subscription or of an OAuth
// app.
func (s *Server) serveServiceHook(w http.ResponseWriter, r *http.Request, c *caller, token string) {
	response, err := s.acceptServiceCall(w, r, token)
	if err != nil {
		s.fail(w, c, s.reject(w, r, err))
		return
	}
	if response.ContentType != "" {
		w.Header().Set("Content-Type", response.ContentType)
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	writeBytes(w, http.StatusOK, response.Body)
}

func (s *Server) acceptServiceCall(w http.ResponseWriter, r *http.Request, token string) (subscription.Response, error) {
	called, err := s.ServiceCalls.Find(r.Context(), token)
	if err != nil {
		return subscription.Response{}, err
	}
	if !slices.Contains(serviceHookMethods(), r.Method) {
		allowed := strings.Join(serviceHookMethods(), ", ")
		w.Header().Set("Allow", allowed)
		return subscription.Response{}, fault.New(fault.MethodNotAllowed, "method %s is not allowed here; use %s", clean(r.Method), allowed)
	}
	// Calls count before they are verified: their bodies are what verifies most of them. Who
	// knows the secret URL is the service, or whoever it has told.
	state, ok, err := s.Limits.Take(r.Context(), called.Key, called.PerMinute, clock.Now())
	if err != nil {
		return subscription.Response{}, err
	}
	if !ok {
		setLimitHeaders(w.Header(), state)
		return subscription.Response{}, rateLimited("the URL has reached its limit of %d calls per minute", state)
	}
	reserved, err := s.reserveBody(workspaceBodies(called.Workspace.ID), subscriptionBodies(called.Key))
	if err != nil {
		return subscription.Response{}, err
	}
	defer reserved.release()
	body, err := readPublicBody(r, called.Workspace.Plan.Limits(), reserved)
	if err != nil {
		return subscription.Response{}, err
	}
	return s.ServiceCalls.Accept(r.Context(), called, subscription.Request{Method: r.Method, Header: r.Header, Query: r.URL.RawQuery, Body: body})
}
