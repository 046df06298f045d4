package api

import (
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// authenticate finds the actor behind a request: by its session on the one
// mount, by its key everywhere else.
func (s *Server) authenticate(r *http.Request, m mount) (auth.Actor, *account.SignedIn, error) {
	if m != withSession {
		actor, err := s.keyOf(r)
		return actor, nil, err
	}
	token, _ := sessionToken(r)
	in, err := s.Accounts.Authenticate(r.Context(), token)
	if err != nil {
		return auth.Actor{}, nil, err
	}
	return in.Actor(), &in, nil
}

// keyOf finds the actor behind the bearer key, which only the Authorization
// header carries.
func (s *Server) keyOf(r *http.Request) (auth.Actor, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return auth.Actor{}, fault.New(fault.Unauthorized, "an API key is needed: send it as Authorization: Bearer <API_KEY>")
	}
	scheme, token, found := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !found || !strings.EqualFold(scheme, "bearer") {
		return auth.Actor{}, fault.New(fault.Unauthorized, "the Authorization header must read: Bearer <API_KEY>")
	}
	return s.Auth.Authenticate(r.Context(), strings.TrimSpace(token))
}

// lacks is the answer to an actor without a scope.
func (m mount) lacks(scope auth.Scope) error {
	if m == withSession {
		return fault.New(fault.InsufficientScope, "your role does not allow this: it needs the scope %s", scope)
	}
	return fault.New(fault.InsufficientScope, "this needs a key with scope %s", scope)
}
