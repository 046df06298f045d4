package api

import (
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// authenticate returns the actor of a request: by session on the session mount,
// by API key everywhere else.
func (s *Server) authenticate(r *http.Request, m mount) (auth.Actor, *account.SignedIn, error) {
	if m != mountSession {
		actor, err := s.authenticateKey(r)
		return actor, nil, err
	}
	token, _ := sessionToken(r)
	in, err := s.Accounts.Authenticate(r.Context(), token)
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
	return s.Auth.Authenticate(r.Context(), strings.TrimSpace(token))
}

// missingScope returns the error for an actor without the scope.
func (m mount) missingScope(scope auth.Scope) error {
	if m == mountSession {
		return fault.New(fault.InsufficientScope, "your role does not allow this: it requires the scope %s", scope)
	}
	return fault.New(fault.InsufficientScope, "this requires an API key with the scope %s", scope)
}
