package api

import (
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// authenticate finds the actor behind the bearer key, which only the
// Authorization header carries.
func (s *Server) authenticate(r *http.Request) (auth.Actor, error) {
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
