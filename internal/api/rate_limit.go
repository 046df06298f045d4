package api

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/ratelimit"
)

// identify authenticates the caller and counts the request against the caller's
// limit. The rate limit headers are set whatever the response is. A public route
// ignores credentials: if its headers depended on them, it would tell valid keys
// from others without counting the attempt.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, c *caller, public bool) {
	address := s.clientAddress(r)
	c.network, c.visit = network(address), account.ClientInfo{Address: address.String(), Agent: printable(r.UserAgent()), RequestID: c.requestID}
	now := clock.Now()
	if public {
		c.session, _ = sessionToken(r) // a sign-in replaces it
		setLimitHeaders(w.Header(), s.preauth.Peek(c.network, s.PreauthPerMinute, now))
		return
	}
	actor, signedIn, err := s.authenticate(r, c.mount)
	if err == nil {
		actor.RequestID = c.requestID
		c.actor, c.signedIn = actor, signedIn
		c.rejection = s.countAgainstLimit(w, r, c, now)
		return
	}
	c.rejection = err
	state := s.preauth.Peek(c.network, s.PreauthPerMinute, now)
	// A request without a session cookie is not a guess.
	guess := c.mount == mountKey
	if _, has := sessionToken(r); c.mount == mountSession {
		guess = has
	}
	if fault.Is(err, fault.Unauthorized) && guess {
		var ok bool
		if state, ok, _ = s.preauth.Take(r.Context(), c.network, s.PreauthPerMinute, now); !ok {
			c.rejection = rateLimited("too many failed requests: this IP address may fail to authenticate %d times per minute", state)
		}
	}
	setLimitHeaders(w.Header(), state)
}

// countAgainstLimit counts the request against the rate limit of the workspace,
// or of the user if there is a session.
func (s *Server) countAgainstLimit(w http.ResponseWriter, r *http.Request, c *caller, now time.Time) error {
	if c.mount == mountSession {
		state, ok, _ := s.perUser.Take(r.Context(), c.actor.ID, s.RequestsPerUser, now)
		setLimitHeaders(w.Header(), state)
		if !ok {
			return rateLimited("you have reached your limit of %d requests per minute", state)
		}
		return nil
	}
	state, ok, err := s.Limits.Take(r.Context(), c.actor.Workspace.ID, c.actor.Workspace.RequestsPerMinute, now)
	setLimitHeaders(w.Header(), state)
	if err == nil && !ok {
		return rateLimited("the workspace has reached its limit of %d requests per minute", state)
	}
	return err
}

func rateLimited(format string, state ratelimit.State) error {
	return fault.New(fault.RateLimited, format, state.Limit).After(max(time.Second, state.Wait))
}

// setLimitHeaders writes the header names as documented, which is not their
// canonical form in Go.
func setLimitHeaders(h http.Header, state ratelimit.State) {
	h["X-RateLimit-Limit"] = []string{strconv.Itoa(state.Limit)}
	h["X-RateLimit-Remaining"] = []string{strconv.Itoa(state.Remaining)}
	h["X-RateLimit-Reset"] = []string{strconv.FormatInt(state.Reset.Unix(), 10)}
}

// clientAddress returns the address of the client: the peer of the connection or,
// behind trusted proxies, the last address they forward.
func (s *Server) clientAddress(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop.Unmap()
	}
	return addr
}

// network returns the key under which connections, failed attempts and bodies of a
// client are counted. An IPv6 client owns a whole /64.
func network(addr netip.Addr) string {
	if addr.Is6() {
		if prefix, err := addr.WithZone("").Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}

func (s *Server) trusts(addr netip.Addr) bool {
	for _, prefix := range s.TrustedProxies {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// setCommonHeaders sets the headers that every response has.
func (s *Server) setCommonHeaders(h http.Header, c *caller) {
	h.Set("X-Request-Id", c.requestID)
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// TLS ends at a proxy. Without includeSubDomains: other hosts are not ours.
	if strings.HasPrefix(s.Origin, "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

func (s *Server) logRequest(r *http.Request, out *recorder, c *caller, took time.Duration) {
	level := slog.LevelInfo
	status, bytes := out.written()
	if (r.URL.Path == healthPath || r.URL.Path == readyPath || c.dashboard) && status < http.StatusBadRequest {
		level = slog.LevelDebug // health checks come every few seconds, and a page loads many files
	}
	s.Log.LogAttrs(r.Context(), level, "request",
		slog.String("request_id", c.requestID), slog.String("method", clean(r.Method)), slog.String("path", s.loggedPath(r.URL.Path)),
		slog.Int("status", status), slog.Int("bytes", bytes), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("workspace_id", c.actor.Workspace.ID), slog.String(c.mount.actorLogKey(), c.actor.ID), slog.String("address", s.clientAddress(r).String()))
}
