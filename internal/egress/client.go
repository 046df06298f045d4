package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/tally"
)

// Config is what a client needs to know. Its zero value reaches the public
// internet.
type Config struct {
	Policy Policy
	// Own lists the addresses of the service itself, its listeners and its
	// database. They are never reachable, whatever the policy opens. A listener
	// on the unspecified address stands for every address of this machine.
	Own       func() []netip.AddrPort
	UserAgent string // of requests that bring none; "Stepmill" when empty
	// RootCAs are trusted instead of the machine's.
	RootCAs *x509.CertPool
	// Resolver is asked instead of the machine's name servers.
	Resolver Resolver
	Limits   Limits
}

// Limits bound what one call may take. What is zero has its default.
type Limits struct {
	Lookup    time.Duration // of a name: 5 s
	Connect   time.Duration // to any of its addresses: 10 s
	Handshake time.Duration // of TLS: 10 s
	FirstByte time.Duration // from the end of the request to the answer: 30 s
	Total     time.Duration // of a call that has no other limit: 60 s
	Idle      time.Duration // how long an unused connection is kept: 60 s

	HeaderBytes int64 // of an answer: 64 KiB
	Redirects   int   // followed in one call: 5
	Workspaces  int   // that keep connections: 64
	IdleConns   int   // kept per workspace: 32
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Lookup:      cmp.Or(l.Lookup, 5*time.Second),
		Connect:     cmp.Or(l.Connect, 10*time.Second),
		Handshake:   cmp.Or(l.Handshake, 10*time.Second),
		FirstByte:   cmp.Or(l.FirstByte, 30*time.Second),
		Total:       cmp.Or(l.Total, 60*time.Second),
		Idle:        cmp.Or(l.Idle, 60*time.Second),
		HeaderBytes: cmp.Or(l.HeaderBytes, 64<<10),
		Redirects:   cmp.Or(l.Redirects, 5),
		Workspaces:  cmp.Or(l.Workspaces, 64),
		IdleConns:   cmp.Or(l.IdleConns, 32),
	}
}

// Client calls the outside on behalf of workspaces. It is safe for concurrent
// use.
type Client struct {
	dialer    *dialer
	pools     *pools
	limits    Limits
	userAgent string
	calls     *tally.Set
}

// New makes a client.
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
		c.dialer.resolver = &net.Resolver{PreferGo: true}
	}
	c.pools = newPools(limits.Workspaces, c.transport)
	return c
}

// transport makes the connections of one workspace. It has no proxy: what the
// environment names is the operator's, not the users'.
func (c *Client) transport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            c.dialer.dial,
		DialTLSContext:         c.dialer.dialTLS,
		DisableCompression:     true, // see readDecoded
		ResponseHeaderTimeout:  c.limits.FirstByte,
		MaxResponseHeaderBytes: c.limits.HeaderBytes,
		MaxIdleConns:           c.limits.IdleConns,
		MaxIdleConnsPerHost:    c.limits.IdleConns,
		IdleConnTimeout:        c.limits.Idle,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReceiveBufferPerConnection: 2 << 20,
			SendPingTimeout:               15 * time.Second,
			PingTimeout:                   10 * time.Second,
		},
	}
}

// Do makes the call and reads the whole answer. Every status is an answer; an
// error is always an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	answer, err := c.do(ctx, r)
	outcome := answered
	if failure, ok := errors.AsType[*Error](err); ok {
		outcome = string(failure.Code)
	}
	c.calls.Add(outcome)
	return answer, err
}

// answered is the outcome of a call that is no code.
const answered = "answered"

func newCalls() *tally.Set {
	outcomes := []string{answered}
	for _, code := range Codes() {
		outcomes = append(outcomes, string(code))
	}
	return tally.NewSet(outcomes...)
}

// Calls counts the calls so far by their outcome: answered, or a code.
func (c *Client) Calls() map[string]int64 { return c.calls.Counts() }

func (c *Client) do(ctx context.Context, r Request) (*Response, error) {
	start := clock.Mark()
	ctx, cancel := c.limit(ctx, r.Timeout)
	defer cancel()
	req, err := c.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	pool := c.pools.take(r.Workspace)
	defer c.pools.done(pool)
	resp, err := c.send(pool.transport, req, r)
	if err != nil {
		return nil, err
	}
	out, err := receive(resp, r)
	if err != nil {
		return nil, err
	}
	out.Duration = time.Since(start)
	return out, nil
}

func (c *Client) limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); timeout <= 0 && limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, cmp.Or(max(timeout, 0), c.limits.Total))
}

// send makes the request, and those that follow from redirects.
func (c *Client) send(transport http.RoundTripper, req *http.Request, r Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, explain(req.Context(), req.URL.Hostname(), err)
		}
		if !r.FollowRedirects {
			return resp, nil
		}
		next, err := c.redirected(req, resp, r.Body)
		if next == nil && err == nil {
			return resp, nil
		}
		resp.Body.Close()
		switch {
		case err != nil:
			return nil, err
		case hops == c.limits.Redirects:
			return nil, fail(TooManyRedirects, nil, "%s redirects after %d redirects already", req.URL.Hostname(), hops)
		}
		req = next
	}
}

// Close closes the connections that are not in use, and the others as soon as
// their calls are done.
func (c *Client) Close() { c.pools.retireAll() }
