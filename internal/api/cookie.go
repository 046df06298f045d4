package api

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// sessionCookie carries the token of a session. Its prefix makes browsers hold to
// what it says: it comes from this very host, over TLS or from the same machine.
const sessionCookie = "__Host-stepmill"

// sessionToken is the token that a request brings. Two of them are none.
func sessionToken(r *http.Request) (token string, has bool) {
	found := r.CookiesNamed(sessionCookie)
	if len(found) != 1 {
		return "", len(found) > 0
	}
	return found[0].Value, true
}

// withToken gives a browser its session.
func withToken(r *reply, token string) *reply {
	return r.with("Set-Cookie", cookie(token, int(account.SessionLife.Seconds())))
}

// withoutToken takes it away.
func withoutToken(r *reply) *reply { return r.with("Set-Cookie", cookie("", -1)) }

func cookie(value string, maxAge int) string {
	c := http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	return c.String()
}

// refuseOrigin answers a request that another site makes a browser send.
func (s *Server) refuseOrigin(w http.ResponseWriter, r *http.Request, c *caller) {
	setLimitHeaders(w.Header(), s.preauth.Peek(network(s.clientAddress(r)), s.PreauthPerMinute, clock.Now()))
	s.fail(w, c, fault.New(fault.CrossOrigin, "the request comes from another site"))
}
