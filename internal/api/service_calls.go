package api

import (
	"net/http"
	"slices"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/transport"
)

// serviceCalls serves the URLs of subscriptions and of OAuth apps, which services call.
type serviceCalls struct {
	calls  *subscription.Calls
	limits ratelimit.Limits
}

// serviceCallMethods are the methods of services: most calls are a POST, and some services
// check the URL with another one.
func serviceCallMethods() []string {
	return []string{http.MethodPost, http.MethodGet, http.MethodHead}
}

func (h *serviceCalls) serve(call *transport.Call, token string) {
	response, err := h.accept(call, token)
	if err != nil {
		call.Fail(call.Reject(err))
		return
	}
	header := call.W.Header()
	if response.ContentType != "" {
		header.Set("Content-Type", response.ContentType)
	}
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	call.Bytes(http.StatusOK, response.Body)
}

func (h *serviceCalls) accept(call *transport.Call, token string) (subscription.Response, error) {
	r := call.R
	called, err := h.calls.Find(r.Context(), token)
	if err != nil {
		return subscription.Response{}, err
	}
	if !slices.Contains(serviceCallMethods(), r.Method) {
		return subscription.Response{}, call.MethodNotAllowed(serviceCallMethods())
	}
	// Calls count before they are verified: their bodies are what verifies most of them. Who
	// knows the secret URL is the service, or whoever it has told.
	state, ok, err := h.limits.Take(r.Context(), called.Key, called.PerMinute, clock.Now())
	if err != nil {
		return subscription.Response{}, err
	}
	if !ok {
		transport.SetLimitHeaders(call.W.Header(), state)
		return subscription.Response{}, transport.RateLimited("the URL has reached its limit of %d calls per minute", state)
	}
	reserved, err := call.ReserveBody(transport.WorkspaceBodies(called.Workspace.ID), transport.HookBodies(called.Key))
	if err != nil {
		return subscription.Response{}, err
	}
	defer reserved.Release()
	body, err := call.ReadBodyWithin(called.Workspace.Plan.Limits(), reserved)
	if err != nil {
		return subscription.Response{}, err
	}
	return h.calls.Accept(r.Context(), called, subscription.Request{Method: r.Method, Header: r.Header, Query: r.URL.RawQuery, Body: body})
}
