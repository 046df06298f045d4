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

// identify finds out who calls and counts the request against their limit. The
// three headers tell where they stand, whatever the answer will be. Where no key
// is needed, the lack of one is not counted.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, c *caller, open bool) {
	address := s.clientAddress(r)
	c.network, c.visit = network(address), account.Visit{Address: address.String(), Agent: printable(r.UserAgent()), RequestID: c.requestID}
	actor, signedIn, err := s.authenticate(r, c.mount)
	now := clock.Now()
	if err == nil {
		actor.RequestID = c.requestID
		c.actor, c.signedIn = actor, signedIn
		c.refusal = s.take(w, r, c, now)
		return
	}
	c.refusal = err
	state := s.preauth.Peek(c.network, s.PreauthPerMinute, now)
	// Who comes without a session guesses nothing.
	guess := c.mount == withKey
	if _, has := sessionToken(r); c.mount == withSession {
		guess = has
	}
	if fault.Is(err, fault.Unauthorized) && guess && !open {
		var ok bool
		if state, ok, _ = s.preauth.Take(r.Context(), c.network, s.PreauthPerMinute, now); !ok {
			c.refusal = limited("this address has failed to authenticate %d times in this minute", state)
		}
	}
	setLimitHeaders(w.Header(), state)
}

// take counts the request: programs by their workspace, as its plan says, people
// one by one.
func (s *Server) take(w http.ResponseWriter, r *http.Request, c *caller, now time.Time) error {
	if c.mount == withSession {
		state, ok, _ := s.people.Take(r.Context(), c.actor.ID, s.RequestsPerUser, now)
		setLimitHeaders(w.Header(), state)
		if !ok {
			return limited("you have used up your %d requests of this minute", state)
		}
		return nil
	}
	state, ok, err := s.Limits.Take(r.Context(), c.actor.Workspace.ID, c.actor.Workspace.RequestsPerMinute, now)
	setLimitHeaders(w.Header(), state)
	if err == nil && !ok {
		return limited("the workspace has used up its %d requests of this minute", state)
	}
	return err
}

func limited(format string, state ratelimit.State) error {
	return fault.New(fault.RateLimited, format, state.Limit).After(max(time.Second, state.Wait))
}

// setLimitHeaders writes the names as they are published, which is not how Go
// would write them.
func setLimitHeaders(h http.Header, state ratelimit.State) {
	h["X-RateLimit-Limit"] = []string{strconv.Itoa(state.Limit)}
	h["X-RateLimit-Remaining"] = []string{strconv.Itoa(state.Remaining)}
	h["X-RateLimit-Reset"] = []string{strconv.FormatInt(state.Reset.Unix(), 10)}
}

// clientAddress is where a request comes from: the address connected to us, or,
// behind proxies we trust, the last one they vouch for.
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

// network is what failed attempts are counted by: an IPv6 client owns a whole
// /64.
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

func setSecurityHeaders(h http.Header, r *http.Request) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

func (s *Server) logRequest(r *http.Request, out *recorder, c *caller, took time.Duration) {
	level := slog.LevelInfo
	if (r.URL.Path == healthPath || r.URL.Path == readyPath || c.paged) && out.status < http.StatusBadRequest {
		level = slog.LevelDebug // health checks come every few seconds, and a page is many files
	}
	s.Log.LogAttrs(r.Context(), level, "request",
		slog.String("request_id", c.requestID), slog.String("method", clean(r.Method)), slog.String("path", s.loggedPath(r.URL.Path)),
		slog.Int("status", out.status), slog.Int("bytes", out.bytes), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("workspace_id", c.actor.Workspace.ID), slog.String(c.mount.actorName(), c.actor.ID), slog.String("address", s.clientAddress(r).String()))
}
