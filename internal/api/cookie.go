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
	return r.cookie(sessionCookie, token, int(account.SessionLife.Seconds()))
}

// withoutToken takes it away.
func withoutToken(r *reply) *reply { return r.cookie(sessionCookie, "", -1) }

// cookie adds a cookie that no script sees and that no other site sends, for a
// number of seconds; a negative one takes it away.
func (r *reply) cookie(name, value string, life int) *reply {
	c := http.Cookie{Name: name, Value: value, Path: "/", MaxAge: life, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	r.cookies = append(r.cookies, c.String())
	return r
}

// refuseOrigin answers a request that another site makes a browser send.
func (s *Server) refuseOrigin(w http.ResponseWriter, r *http.Request, c *caller) {
	setLimitHeaders(w.Header(), s.preauth.Peek(network(s.clientAddress(r)), s.PreauthPerMinute, clock.Now()))
	s.fail(w, c, fault.New(fault.CrossOrigin, "the request comes from another site"))
}
