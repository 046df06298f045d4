package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/txn"
)

// Config configures a Client. The zero value allows the public internet.
type Config struct {
	Policy Policy
	// Own returns the addresses of the service itself: its listeners and its
	// database. They are never allowed, even if the policy allows their range. A
	// listener on the unspecified address means every address of this machine.
	Own       func() []netip.AddrPort
	UserAgent string // of requests without one; "Stepmill" if empty
	// RootCAs replaces the root certificates of the machine.
	RootCAs *x509.CertPool
	// Resolver replaces the resolver of the machine.
	Resolver Resolver
	// Proxy is the URL of an HTTP proxy that all connections go through, http or
	// https and optionally with a user name and password, or nil. The policy applies
	// to the targets, not to the proxy.
	Proxy  *url.URL
	Limits Limits
}

// Limits bounds one request. A zero field means its default.
type Limits struct {
	Lookup    time.Duration // DNS lookup: 5 s
	Connect   time.Duration // TCP connection to any address of a name: 10 s
	Handshake time.Duration // TLS handshake: 10 s
	Total     time.Duration // whole request, if it has no other timeout: 60 s
	Stall     time.Duration // without a byte of a streamed response: 60 s
	Idle      time.Duration // idle time before a connection is closed: 60 s

	HeaderBytes int64 // response headers: 64 KiB
	Redirects   int   // per request: 5
	Workspaces  int   // with idle connections: 64
	TLSSettings int   // of credentials, with idle connections: 64
	IdleConns   int   // per workspace and TLS settings: 32
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Lookup:      cmp.Or(l.Lookup, 5*time.Second),
		Connect:     cmp.Or(l.Connect, 10*time.Second),
		Handshake:   cmp.Or(l.Handshake, 10*time.Second),
		Total:       cmp.Or(l.Total, 60*time.Second),
		Stall:       cmp.Or(l.Stall, 60*time.Second),
		Idle:        cmp.Or(l.Idle, 60*time.Second),
		HeaderBytes: cmp.Or(l.HeaderBytes, 64<<10),
		Redirects:   cmp.Or(l.Redirects, 5),
		Workspaces:  cmp.Or(l.Workspaces, 64),
		TLSSettings: cmp.Or(l.TLSSettings, 64),
		IdleConns:   cmp.Or(l.IdleConns, 32),
	}
}

// Client sends HTTP requests on behalf of workspaces. It is safe for concurrent
// use.
type Client struct {
	dialer    *dialer
	pools     *pools // of workspaces
	tlsPools  *pools // of workspaces and TLS settings, which do not displace the others
	limits    Limits
	userAgent string
	calls     *counter.Set
}

// New returns a Client.
func New(config Config) *Client {
	limits := config.Limits.orDefaults()
	c := &Client{
		limits:    limits,
		userAgent: cmp.Or(config.UserAgent, "Stepmill"),
		calls:     newCalls(),
		dialer: &dialer{
			guard:    guard{policy: config.Policy, own: config.Own},
			resolver: config.Resolver,
			limits:   limits,
			tls: &tls.Config{
				MinVersion: tls.VersionTLS12,
				RootCAs:    config.RootCAs,
				NextProtos: []string{"h2", "http/1.1"},
			},
		},
	}
	if c.dialer.guard.own == nil {
		c.dialer.guard.own = func() []netip.AddrPort { return nil }
	}
	if c.dialer.resolver == nil {
		c.dialer.resolver = machineResolver()
	}
	c.dialer.proxy = newProxy(config.Proxy, c.dialer.tls)
	c.pools = newPools(limits.Workspaces, c.transport)
	c.tlsPools = newPools(limits.TLSSettings, c.transport)
	return c
}

// transport returns a transport for one workspace and TLS settings. It ignores proxies of
// the environment, which are meant for the operator, not for users.
func (c *Client) transport(settings TLS) (*http.Transport, error) {
	dialer := *c.dialer
	if settings != (TLS{}) {
		var err error
		if dialer.tls, err = settings.config(dialer.tls); err != nil {
			return nil, err
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            dialer.dial,
		DialTLSContext:         dialer.dialTLS,
		DisableCompression:     true, // see decodedBody
		MaxResponseHeaderBytes: c.limits.HeaderBytes,
		MaxIdleConns:           c.limits.IdleConns,
		MaxIdleConnsPerHost:    c.limits.IdleConns,
		IdleConnTimeout:        c.limits.Idle,
		ExpectContinueTimeout:  time.Second, // only Client.exchange expects it
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 2 << 20,
			SendPingTimeout:               15 * time.Second,
			PingTimeout:                   10 * time.Second,
		},
	}, nil
}

// Do sends the request and reads the whole response. A response with any status
// is a success; an error is always an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	txn.MustBeOutside(ctx)
	start := clock.Monotonic()
	ctx, cancel := c.withTimeout(ctx, r.Timeout)
	s, err := c.open(ctx, r, cancel)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(s)
	if err != nil {
		return nil, err
	}
	return &Response{
		Status: s.Status, Header: s.Header, Body: body, Truncated: s.truncated, URL: s.URL, Duration: time.Since(start),
	}, nil
}

func (c *Client) count(err error) {
	outcome := outcomeAnswered
	if failure, ok := errors.AsType[*Error](err); ok {
		outcome = string(failure.Code)
	}
	c.calls.Add(outcome)
}

// outcomeAnswered is the outcome of a request that got a response.
const outcomeAnswered = "answered"

func newCalls() *counter.Set {
	outcomes := []string{outcomeAnswered}
	for _, code := range Codes() {
		outcomes = append(outcomes, string(code))
	}
	return counter.NewSet(outcomes...)
}

// Calls returns the number of requests so far by outcome: answered, or a code.
func (c *Client) Calls() map[string]int64 { return c.calls.Counts() }

func (c *Client) withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); timeout <= 0 && limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(max(timeout, 0), c.limits.Total))
}

// send sends the request and follows redirects. The request of the response is the
// one without the credential.
func (c *Client) send(through route, req *http.Request, r Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := c.exchange(through, req, r)
		if err != nil {
			return nil, err
		}
		resp.Request = req
		if !r.FollowRedirects {
			return resp, nil
		}
		next, err := c.redirectRequest(req, resp)
		if next == nil && err == nil {
			return resp, nil
		}
		resp.Body.Close()
		switch {
		case err != nil:
			return nil, err
		case hops == c.limits.Redirects:
			return nil, fail(TooManyRedirects, nil, "%s redirects again after %d redirects", req.URL.Hostname(), hops)
		}
		req = next
	}
}

// Close closes idle connections at once, and the others when their requests
// are done.
func (c *Client) Close() {
	c.pools.retireAll()
	c.tlsPools.retireAll()
}
