package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxTargets bounds how many addresses of one name are tried.
	maxTargets = 8
	// fallbackDelay is the delay before the next address is tried in parallel, as RFC 8305
	// recommends.
	fallbackDelay = 250 * time.Millisecond
)

// Resolver looks up the addresses of a name. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialer opens connections to targets that the guard allows.
type dialer struct {
	guard    guard
	resolver Resolver
	limits   Limits
	tls      *tls.Config
	proxy    *proxy // nil: direct connections
}

// dial implements http.Transport.DialContext. An error is an *Error or the error
// of the context.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := d.split(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	targets, err := d.allowedTargets(host, addrs, port)
	if err != nil {
		return nil, err
	}
	return d.connect(ctx, host, targets)
}

// split splits the address and checks the host again: net/http has converted it
// to its DNS form, which may be an address that was not visible in the URL.
func (d *dialer) split(address string) (host string, port uint16, err error) {
	if err := d.guard.policy.CheckURL(&url.URL{Host: address}); err != nil {
		return "", 0, fail(Denied, err, "%s", err.Error())
	}
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fail(InvalidRequest, err, "the URL has no valid host")
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return "", 0, fail(InvalidRequest, err, "the URL has no valid port")
	}
	return host, uint16(n), nil
}

func (d *dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(host, ".")); err == nil {
		return []netip.Addr{addr}, nil
	}
	limited, cancel := context.WithTimeout(ctx, d.limits.Lookup)
	defer cancel()
	addrs, err := d.resolver.LookupNetIP(limited, "ip", host)
	var dns *net.DNSError
	switch {
	case err == nil && len(addrs) > 0:
		return addrs, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil || errors.As(err, &dns) && dns.IsTimeout:
		return nil, fail(TimedOut, err, "looking up the host %s took longer than %s", host, d.limits.Lookup)
	case err == nil || errors.As(err, &dns) && dns.IsNotFound:
		return nil, fail(ConnectionFailed, err, "the host %s was not found", host)
	default:
		return nil, fail(ConnectionFailed, err, "the host %s could not be looked up", host)
	}
}

// allowedTargets returns the targets that the guard allows. Its error does not
// reveal the other addresses: users must not learn internal DNS records.
func (d *dialer) allowedTargets(host string, addrs []netip.Addr, port uint16) ([]netip.AddrPort, error) {
	var open []netip.AddrPort
	var denied error
	for _, addr := range addrs {
		target := netip.AddrPortFrom(addr.Unmap(), port)
		if err := d.guard.checkTarget(target); err != nil {
			denied = err
		} else if len(open) < maxTargets {
			open = append(open, target)
		}
	}
	if len(open) == 0 {
		return nil, fail(Denied, denied, "connections to %s port %d are not allowed: %v", host, port, denied)
	}
	return open, nil
}

// connect tries the targets in order, each when the previous one has failed or
// fallbackDelay has passed. It returns the first connection and closes the others.
func (d *dialer) connect(ctx context.Context, host string, targets []netip.AddrPort) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, d.limits.Connect)
	defer cancel()
	attempts := make(chan attempt)
	var failed error
	for started, ended := 0, 0; ended < len(targets); {
		var next <-chan time.Time
		if started < len(targets) {
			if started == ended {
				go d.attempt(limited, targets[started], attempts)
				started++
				continue
			}
			next = time.After(fallbackDelay)
		}
		select {
		case a := <-attempts:
			if a.err == nil {
				return &checkedConn{Conn: a.conn, check: func() error { return d.control(ctx, "", a.conn.RemoteAddr().String(), nil) }}, nil
			}
			failed = errors.Join(failed, a.err)
			ended++
		case <-next:
			go d.attempt(limited, targets[started], attempts)
			started++
		case <-limited.Done():
			return nil, d.dialError(ctx, host, limited.Err())
		}
	}
	return nil, d.dialError(ctx, host, failed)
}

type attempt struct {
	conn net.Conn
	err  error
}

// attempt dials a target and sends the result while connect still waits for one.
func (d *dialer) attempt(ctx context.Context, target netip.AddrPort, attempts chan<- attempt) {
	conn, err := d.open(ctx, target)
	select {
	case attempts <- attempt{conn, err}:
	case <-ctx.Done():
		if err == nil {
			conn.Close()
		}
	}
}

// open connects to a target, directly or through the proxy.
func (d *dialer) open(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	if d.proxy == nil {
		return (&net.Dialer{ControlContext: d.control}).DialContext(ctx, "tcp", target.String())
	}
	if err := d.control(ctx, "", target.String(), nil); err != nil {
		return nil, err
	}
	return d.proxy.dial(ctx, target)
}

// control runs just before a socket is connected and checks the actual address.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err == nil {
		err = d.guard.checkTarget(target)
	}
	if err != nil {
		return fail(Denied, err, "connections to the host are not allowed: %v", err)
	}
	return nil
}

// checkedConn checks its target before every write. Connections are reused, and
// the set of allowed targets can change meanwhile, for example when another node
// registers its addresses.
type checkedConn struct {
	net.Conn
	check func() error
}

// Write implements io.Writer.
func (g *checkedConn) Write(data []byte) (int, error) {
	if err := g.check(); err != nil {
		return 0, err // the transport then drops the connection
	}
	return g.Conn.Write(data)
}

func (d *dialer) dialError(ctx context.Context, host string, err error) error {
	var denied *Error
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &denied):
		return denied
	case errors.As(err, &network) && network.Timeout() && d.proxy != nil:
		return fail(TimedOut, err, "the egress proxy did not connect to %s within %s", host, d.limits.Connect)
	case errors.As(err, &network) && network.Timeout():
		return fail(TimedOut, err, "%s did not accept a connection within %s", host, d.limits.Connect)
	default:
		return fail(ConnectionFailed, err, "could not connect to %s%s", host, errnoSuffix(err))
	}
}
