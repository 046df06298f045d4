package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/config"
)

// avoidMinuteEnd waits if the current minute, the rate limit window, is about
// to end.
func avoidMinuteEnd() {
	if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 20*time.Second {
		time.Sleep(left + 50*time.Millisecond)
	}
}

func limitHeaders(t *testing.T, a *response) (limit, remaining, reset int) {
	t.Helper()
	for name, into := range map[string]*int{"X-RateLimit-Limit": &limit, "X-RateLimit-Remaining": &remaining, "X-RateLimit-Reset": &reset} {
		n, err := strconv.Atoi(a.header.Get(name))
		if err != nil {
			t.Fatalf("%s is %q", name, a.header.Get(name))
		}
		*into = n
	}
	return limit, remaining, reset
}

// inOneMinute calls send until a call begins and ends in the same minute.
func inOneMinute(send func()) {
	for {
		avoidMinuteEnd()
		begun := time.Now().Truncate(time.Minute)
		if send(); time.Now().Truncate(time.Minute).Equal(begun) {
			return
		}
	}
}

// A workspace has a number of requests a minute, over all of its keys and whatever the
// responses are.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	const limit = 7
	var (
		w         *testWorkspace
		remaining []int
		rejected  []*response
		public    []int
	)
	inOneMinute(func() {
		w = sharedServer(t).newTestWorkspaceWith(t, fmt.Sprintf(`{"name": "n", "plan": "enterprise", "requests_per_minute": %d}`, limit))
		remaining, rejected, public = nil, nil, nil
		keys := []client{w.client, w.withScopes("read")} // the first request
		for i, call := range []string{
			"GET /v1/workflows", "GET /v1/workflows", "GET /v1/nothing", "PUT /v1/workflows", "GET /v1/workflows/none", "POST /v1/workflows",
			"GET /v1/workflows", "GET /v1/workflows", "GET /v1/nothing", "PUT /v1/workflows", "GET /v1/workflows/none", "POST /v1/workflows",
		} {
			method, path := splitCall(call)
			a := keys[i%2].call(method, path, "")
			if a.status == http.StatusTooManyRequests {
				rejected = append(rejected, a)
				continue
			}
			_, left, _ := limitHeaders(t, a)
			remaining = append(remaining, left)
		}
		// Public routes never block a monitor.
		for _, path := range []string{"/healthz", "/readyz", "/v1/openapi.json"} {
			public = append(public, w.call("GET", path, "").status)
		}
	})
	if !slices.Equal(remaining, []int{5, 4, 3, 2, 1, 0}) || len(rejected) != 6 || !slices.Equal(public, []int{200, 200, 200}) {
		t.Fatalf("after the requests that passed %v were left, %d were rejected, and public routes returned %v", remaining, len(rejected), public)
	}
	for _, a := range rejected {
		got, left, reset := limitHeaders(t, a)
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if got != limit || left != 0 || reset%60 != 0 || err != nil || after < 1 || after > 60 || time.Until(time.Unix(int64(reset), 0)) > time.Minute {
			t.Fatalf("got %v", a.header)
		}
		a.wantStatus(429, "rate_limited")
	}
	w.server.operator(t).call("PATCH", "/v1/workspaces/"+w.id, `{"requests_per_minute": 1000}`).wantStatus(200)
	w.call("GET", "/v1/workflows", "").wantStatus(200)                   // a new limit applies immediately
	newTestWorkspace(t).call("GET", "/v1/workflows", "").wantStatus(200) // another workspace has its own limit
}

func TestRateLimitPerPlan(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"name": "n"}`:                60,
		`{"name": "n", "plan": "pro"}`: 600,
		`{"name": "n", "plan": "enterprise", "requests_per_minute": 7}`: 7,
	} {
		avoidMinuteEnd()
		w := sharedServer(t).newTestWorkspaceWith(t, body)
		limit, left, _ := limitHeaders(t, w.call("GET", "/v1/workflows", "").wantStatus(200))
		if limit != want || left != want-1 {
			t.Errorf("%s: limit %d, left %d", body, limit, left)
		}
	}
}

// Every response has the three headers.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.PreauthRPM = 4321 })
	w := s.newTestWorkspace(t)
	for _, tc := range []struct {
		caller        client
		call          string
		status, limit int
	}{
		{w.client, "GET /v1/workflows", 200, 1_000_000},
		{w.client, "DELETE /v1/webhooks/x", 404, 1_000_000},
		{w.client, "GET /v1/nothing", 404, 1_000_000},
		{w.client, "PATCH /v1/workflows", 405, 1_000_000},
		{s.anonymous(t), "GET /v1/workflows", 401, 4321},
		{s.anonymous(t), "GET /v1/nothing", 401, 4321},
		{s.anonymous(t), "GET /v2", 404, 4321},
		{s.anonymous(t), "PUT /healthz", 405, 4321},
		{s.anonymous(t), "GET /healthz", 200, 4321},
		{s.anonymous(t), "GET /v1/openapi.json", 200, 4321},
	} {
		method, path := splitCall(tc.call)
		a := tc.caller.call(method, path, "").wantStatus(tc.status)
		if limit, left, reset := limitHeaders(t, a); limit != tc.limit || left > limit || time.Until(time.Unix(int64(reset), 0)) > time.Minute {
			t.Errorf("%s: got %v", tc.call, a.header)
		}
	}
	large := w.call("POST", "/v1/workflows", `{"name": "`+strings.Repeat("x", 5<<20)+`"}`).wantStatus(413)
	if limit, _, _ := limitHeaders(t, large); limit != 1_000_000 {
		t.Errorf("the limit is %d", limit)
	}
}

// Public routes ignore credentials: their headers do not reveal whether a key or
// a session is valid, and the request does not count against its limit.
func TestPublicRoutesIgnoreCredentials(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.PreauthRPM = 4321 })
	w := s.newTestWorkspace(t)
	user := w.addUser("viewer")
	wrongKey, wrongSession := client{t: t, server: s, key: "smk_wrong"}, client{t: t, server: s, token: strings.Repeat("x", 43)}
	avoidMinuteEnd()
	_, before, window := limitHeaders(t, w.call("GET", "/v1/workflows", "").wantStatus(200))
	for path, status := range map[string]int{
		"/v1/openapi.json": 200, "/v1/openapi.yaml": 200, "/v1/schemas/workflow.json": 200, "/v1/schemas/integration.json": 200, "/healthz": 200, "/readyz": 200,
		"/v2": 404, "/ui/v1/openapi.json": 200, "/ui/v1/welcome": 200,
	} {
		for name, caller := range map[string]client{
			"nobody": s.anonymous(t), "a key": w.client, "a wrong key": wrongKey, "a session": user.client, "a wrong session": wrongSession,
		} {
			a := caller.call("GET", path, "").wantStatus(status)
			if limit, left, _ := limitHeaders(t, a); limit != 4321 || left != 4321 {
				t.Errorf("GET %s with %s: limit %d, left %d, want 4321 and 4321", path, name, limit, left)
			}
		}
	}
	limit, after, reset := limitHeaders(t, w.call("GET", "/v1/workflows", "").wantStatus(200))
	want := before - 1
	if reset != window { // the next minute has begun
		want = limit - 1
	}
	if after != want {
		t.Errorf("%d requests are left, want %d", after, want)
	}
}

// Browsers that have reached the service through https keep using it, if that is
// how it is reached.
func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{"": "", "http://flows.example.com": "", "https://flows.example.com/base": "max-age=31536000"} {
		s := newServer(t, func(c *config.Serve) {
			if public == "" {
				return
			}
			if err := c.PublicURL.UnmarshalText([]byte(public)); err != nil {
				t.Fatal(err)
			}
		})
		for _, path := range []string{"/healthz", "/v1/workflows", "/", "/approve/none", "/ui/v1/session"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := s.http.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if got := response.Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("GET %s with the public URL %q: got %q, want %q", path, public, got, want)
			}
		}
	}
}

// Failed authentications have a separate budget per address. Valid keys neither
// use it nor are blocked by it.
func TestPreauthLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.PreauthRPM = 5 })
	w, anyone := s.newTestWorkspace(t), s.anonymous(t)
	avoidMinuteEnd()
	for range 10 {
		w.call("GET", "/v1/workflows", "").wantStatus(200)
		anyone.call("GET", "/healthz", "").wantStatus(200)
		anyone.call("GET", "/v2", "").wantStatus(404)
		anyone.call("GET", "/v1/openapi.yaml", "", "Authorization", "Bearer nonsense").wantStatus(200)
	}
	for i := range 5 {
		// A forwarded address changes nothing: no proxy is trusted.
		a := anyone.call("GET", "/v1/workflows", "", "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i), "Authorization", "Bearer nonsense").wantStatus(401, "unauthorized")
		if limit, left, _ := limitHeaders(t, a); limit != 5 || left != 4-i {
			t.Errorf("limit %d, left %d", limit, left)
		}
	}
	for _, path := range []string{"/v1/workflows", "/v1/nothing", "/v1/api-keys"} {
		a := anyone.call("GET", path, "", "X-Forwarded-For", "203.0.113.9", "X-Real-Ip", "203.0.113.9", "Forwarded", "for=203.0.113.9").wantStatus(429, "rate_limited")
		if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
	}
	w.call("GET", "/v1/workflows", "").wantStatus(200)
	anyone.call("GET", "/healthz", "").wantStatus(200)
	anyone.call("GET", "/v1/openapi.json", "").wantStatus(200)
}

// Behind a trusted proxy, the client is the last address it forwards.
func TestPreauthLimitBehindProxy(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) {
		c.PreauthRPM = 1
		c.TrustedProxy = []config.Network{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("10.0.0.0/8")}}
	})
	avoidMinuteEnd()
	for _, tc := range []struct {
		forwarded string
		status    int
	}{
		{"203.0.113.1", 401},
		{"203.0.113.1", 429},
		{"198.51.100.7, 203.0.113.1", 429},           // claims of the client are ignored
		{"203.0.113.2", 401},                         // another client
		{"203.0.113.3, 10.1.2.3", 401},               // through a second proxy
		{"203.0.113.3,10.9.9.9,10.1.2.3", 429},       // through a third
		{"::ffff:203.0.113.3", 429},                  // written as IPv6
		{"2001:db8:1:1::1", 401},                     //
		{"2001:db8:1:1:ffff::2", 429},                // a client owns a /64
		{"2001:db8:1:2::1", 401},                     // another /64
		{"", 401},                                    // the proxy itself
		{"nonsense", 429},                            // the proxy itself: no valid forwarded address
		{"203.0.113.8, nonsense", 429},               //
		{strings.Repeat("203.0.113.1, ", 1000), 429}, // the end of the list is empty
	} {
		if got := s.anonymous(t).call("GET", "/v1/workflows", "", "X-Forwarded-For", tc.forwarded); got.status != tc.status {
			t.Errorf("X-Forwarded-For: %.60s: got %d, want %d", tc.forwarded, got.status, tc.status)
		}
	}
}
