package transport

import (
	"net/http"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/ratelimit"
)

// defaultRequestsPerUser is the limit per minute: more than a dashboard with
// several tabs needs.
const defaultRequestsPerUser = 3000

// countAgainstLimit counts the request against the rate limit of the workspace,
// or of the user if there is a session.
func (s *Server) countAgainstLimit(w http.ResponseWriter, r *http.Request, c *Caller, now time.Time) error {
	if c.mount == mountSession {
		state, ok, _ := s.perUser.Take(r.Context(), c.Actor.ID, s.RequestsPerUser, now)
		SetLimitHeaders(w.Header(), state)
		if !ok {
			return RateLimited("you have reached your limit of %d requests per minute", state)
		}
		return nil
	}
	state, ok, err := s.Limits.Take(r.Context(), c.Actor.Workspace.ID, c.Actor.Workspace.RequestsPerMinute, now)
	SetLimitHeaders(w.Header(), state)
	if err == nil && !ok {
		return RateLimited("the workspace has reached its limit of %d requests per minute", state)
	}
	return err
}

// countFailure counts a request that failed to authenticate against the limit of its
// client. It returns the error to respond with.
func (s *Server) countFailure(w http.ResponseWriter, r *http.Request, c *Caller, failure error, now time.Time) error {
	state := s.preauth.Peek(c.Network, s.PreauthPerMinute, now)
	// A request without a session cookie is not a guess.
	guess := c.mount == mountKey
	if _, has := sessionToken(r); c.mount == mountSession {
		guess = has
	}
	if fault.Is(failure, fault.Unauthorized) && guess {
		var ok bool
		if state, ok, _ = s.preauth.Take(r.Context(), c.Network, s.PreauthPerMinute, now); !ok {
			failure = RateLimited("too many failed requests: this IP address may fail to authenticate %d times per minute", state)
		}
	}
	SetLimitHeaders(w.Header(), state)
	return failure
}

// RateLimited returns the error for a request over a limit. The format has the limit per
// minute.
func RateLimited(format string, state ratelimit.State) error {
	return fault.New(fault.RateLimited, format, state.Limit).After(max(time.Second, state.Wait))
}

// SetLimitHeaders writes the header names as documented, which is not their
// canonical form in Go.
func SetLimitHeaders(h http.Header, state ratelimit.State) {
	h["X-RateLimit-Limit"] = []string{strconv.Itoa(state.Limit)}
	h["X-RateLimit-Remaining"] = []string{strconv.Itoa(state.Remaining)}
	h["X-RateLimit-Reset"] = []string{strconv.FormatInt(state.Reset.Unix(), 10)}
}
