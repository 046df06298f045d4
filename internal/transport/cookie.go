package transport

import (
	"net/http"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// sessionCookie holds the token of a session. The __Host- prefix makes browsers
// accept it only from this host, and only over TLS or from localhost.
const sessionCookie = "__Host-stepmill"

// sessionToken returns the session token of a request. Two cookies count as an invalid one.
func sessionToken(r *http.Request) (token string, has bool) {
	found := r.CookiesNamed(sessionCookie)
	if len(found) != 1 {
		return "", len(found) > 0
	}
	return found[0].Value, true
}

// WithSessionCookie sets the session cookie.
func WithSessionCookie(r *Reply, token string) *Reply {
	return r.Cookie(sessionCookie, token, int(account.SessionLifetime.Seconds()))
}

// WithoutSessionCookie removes the session cookie.
func WithoutSessionCookie(r *Reply) *Reply { return r.Cookie(sessionCookie, "", -1) }

// Cookie sets a cookie that scripts cannot read and other sites cannot send, for
// a number of seconds. A negative number deletes it.
func (r *Reply) Cookie(name, value string, life int) *Reply {
	c := http.Cookie{Name: name, Value: value, Path: "/", MaxAge: life, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	r.cookies = append(r.cookies, c.String())
	return r
}

func (s *Server) rejectOrigin(w http.ResponseWriter, r *http.Request, c *Caller) {
	SetLimitHeaders(w.Header(), s.preauth.Peek(Network(s.clientAddress(r)), s.PreauthPerMinute, clock.Now()))
	s.fail(w, c, fault.New(fault.CrossOrigin, "the request was sent by another site: cross-site requests are rejected"))
}
