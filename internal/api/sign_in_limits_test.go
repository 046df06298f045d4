package api_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

// behindProxy makes X-Forwarded-For the address of the client.
func behindProxy(c *config.Serve) {
	c.TrustedProxy = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}
}

// signInFrom tries to sign in from an address.
func (s *server) signInFrom(t *testing.T, address, email, password string) *response {
	t.Helper()
	return s.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": %q}`, email, password), "X-Forwarded-For", address)
}

// wantLimit tries wrong passwords until an attempt is rejected, and fails the test
// unless at least limit attempts passed. A new minute may begin meanwhile.
func (s *server) wantLimit(t *testing.T, limit int, attempt func(i int) *response) {
	t.Helper()
	for i := range 4 * limit {
		a := attempt(i)
		if a.status != 429 {
			a.wantStatus(401, "invalid_credentials")
			continue
		}
		a.wantStatus(429, "rate_limited")
		if i < limit {
			t.Errorf("attempt %d was rejected", i+1)
		}
		return
	}
	t.Errorf("no attempt was rejected, want a limit of %d a minute", limit)
}

// Wrong passwords from one network do not keep a user in another one out.
func TestSignInLimitPerNetwork(t *testing.T) {
	t.Parallel()
	s := newServer(t, behindProxy)
	p := s.newTestWorkspace(t).addUser("viewer")
	for _, email := range []string{p.email, "nobody" + p.email} { // whether the user exists or not
		s.wantLimit(t, 10, func(int) *response { return s.signInFrom(t, "203.0.113.1", email, "wrong") })
		s.signInFrom(t, "203.0.113.2", email, "wrong").wantStatus(401, "invalid_credentials")
	}
	s.signInFrom(t, "203.0.113.2", p.email, password).wantStatus(201)

	// An IPv6 client owns a /64.
	s.wantLimit(t, 10, func(i int) *response {
		return s.signInFrom(t, fmt.Sprintf("2001:db8:1:1::%d", i), p.email, "wrong")
	})
	s.signInFrom(t, "2001:db8:1:2::", p.email, password).wantStatus(201)
}

// Guesses from many networks are limited, but not where the user is signed in.
func TestSignInLimitPerAccount(t *testing.T) {
	t.Parallel()
	s := newServer(t, behindProxy)
	w := s.newTestWorkspace(t)
	p, other := w.addUser("viewer"), w.addUser("viewer")
	w.server.query(t, `UPDATE sessions SET address = '2001:db8:9:9::1' WHERE user_id = ?`, p.id)
	for _, email := range []string{"nobody" + p.email, p.email} {
		s.wantLimit(t, 100, func(i int) *response {
			return s.signInFrom(t, fmt.Sprintf("203.0.%d.%d", i/200, i%200), email, "wrong")
		})
	}
	s.signInFrom(t, "2001:db8:9:9::2", p.email, password).wantStatus(201) // another address of the same network
	s.signInFrom(t, "198.51.100.1", other.email, password).wantStatus(201)
}

// A network may make a limited number of attempts over all accounts.
func TestSignInLimitOverAllAccounts(t *testing.T) {
	t.Parallel()
	s := newServer(t, behindProxy, func(c *config.Serve) { c.PreauthRPM = 60 }) // three attempts
	s.wantLimit(t, 3, func(i int) *response {
		return s.signInFrom(t, "203.0.113.1", fmt.Sprintf("user%d@example.com", i), "wrong")
	})
	s.signInFrom(t, "203.0.113.2", "ada@example.com", "wrong").wantStatus(401, "invalid_credentials")
}
