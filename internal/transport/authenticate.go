package transport

import (
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// identify authenticates the caller and counts the request against the caller's
// limit. The rate limit headers are set whatever the response is. A public route
// ignores credentials: if its headers depended on them, it would tell valid keys
// from others without counting the attempt.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, c *Caller, public bool) {
	address := s.clientAddress(r)
	c.Network, c.Client = Network(address), account.ClientInfo{Address: address.String(), Agent: printable(r.UserAgent()), RequestID: c.RequestID}
	now := clock.Now()
	if public {
		c.SessionToken, _ = sessionToken(r) // a sign-in replaces it
		SetLimitHeaders(w.Header(), s.preauth.Peek(c.Network, s.PreauthPerMinute, now))
		return
	}
	actor, signedIn, err := s.authenticate(r, c.mount)
	if err != nil {
		c.rejection = s.countFailure(w, r, c, err, now)
		return
	}
	actor.RequestID = c.RequestID
	c.Actor, c.SignedIn = actor, signedIn
	c.rejection = s.countAgainstLimit(w, r, c, now)
}

// authenticate returns the actor of a request: by session on the session mount,
// by API key everywhere else.
func (s *Server) authenticate(r *http.Request, m mount) (auth.Actor, *account.SignedIn, error) {
	if m != mountSession {
		actor, err := s.authenticateKey(r)
		return actor, nil, err
	}
	token, _ := sessionToken(r)
	in, err := s.services.Sessions.Authenticate(r.Context(), token)
	if err != nil {
		return auth.Actor{}, nil, err
	}
	return in.Actor(), &in, nil
}

// authenticateKey returns the actor of an API key. The key is only accepted in
// the Authorization header.
func (s *Server) authenticateKey(r *http.Request) (auth.Actor, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return auth.Actor{}, fault.New(fault.Unauthorized, "an API key is required: send it as Authorization: Bearer <API_KEY>")
	}
	scheme, token, found := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !found || !strings.EqualFold(scheme, "bearer") {
		return auth.Actor{}, fault.New(fault.Unauthorized, "the Authorization header must read: Bearer <API_KEY>")
	}
	return s.services.Keys.Authenticate(r.Context(), strings.TrimSpace(token))
}

// missingScope returns the error for an actor without the scope.
func (m mount) missingScope(scope auth.Scope) error {
	if m == mountSession {
		return fault.New(fault.InsufficientScope, "your role does not allow this: it requires the scope %s", scope)
	}
	return fault.New(fault.InsufficientScope, "this requires an API key with the scope %s", scope)
}
