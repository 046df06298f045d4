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
	// maxTargets is how many addresses of one name are tried.
	maxTargets = 8
	// headStart is what an address gets before the next one is tried too.
	headStart = 250 * time.Millisecond
)

// Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialer opens connections, and only to targets that the guard lets through.
type dialer struct {
	guard    guard
	resolver Resolver
	limits   Limits
	tls      *tls.Config
}

// dial connects to host:port as net/http wants it. Errors are of type *Error,
// or the context's.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := d.split(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	targets, err := d.open(host, addrs, port)
	if err != nil {
		return nil, err
	}
	return d.connect(ctx, host, targets)
}

// split checks the host once more: net/http has brought it into the form that
// DNS knows, and that may be an address which was not to be seen in the URL.
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

// open keeps the targets that may be dialled. The answer does not tell which
// addresses the others are: names of the inside are not for the outside.
func (d *dialer) open(host string, addrs []netip.Addr, port uint16) ([]netip.AddrPort, error) {
	var open []netip.AddrPort
	var refusal error
	for _, addr := range addrs {
		target := netip.AddrPortFrom(addr.Unmap(), port)
		if err := d.guard.target(target); err != nil {
			refusal = err
		} else if len(open) < maxTargets {
			open = append(open, target)
		}
	}
	if len(open) == 0 {
		return nil, fail(Denied, refusal, "%s port %d is not reachable from here: %v", host, port, refusal)
	}
	return open, nil
}

// connect tries the targets in turn, each as soon as the one before has failed
// or its head start is over. The first connection wins, the others are closed.
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
			next = time.After(headStart)
		}
		select {
		case a := <-attempts:
			if a.err == nil {
				return a.conn, nil
			}
			failed = errors.Join(failed, a.err)
			ended++
		case <-next:
			go d.attempt(limited, targets[started], attempts)
			started++
		case <-limited.Done():
			return nil, d.notConnected(ctx, host, limited.Err())
		}
	}
	return nil, d.notConnected(ctx, host, failed)
}

type attempt struct {
	conn net.Conn
	err  error
}

// attempt hands its result over while connect still waits for one.
func (d *dialer) attempt(ctx context.Context, target netip.AddrPort, attempts chan<- attempt) {
	conn, err := (&net.Dialer{ControlContext: d.control}).DialContext(ctx, "tcp", target.String())
	select {
	case attempts <- attempt{conn, err}:
	case <-ctx.Done():
		if err == nil {
			conn.Close()
		}
	}
}

// control runs on the socket just before it is connected, with the address
// that it really goes to.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err == nil {
		err = d.guard.target(target)
	}
	if err != nil {
		return fail(Denied, err, "the host is not reachable from here: %v", err)
	}
	return nil
}

func (d *dialer) notConnected(ctx context.Context, host string, err error) error {
	var refused *Error
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &network) && network.Timeout():
		return fail(TimedOut, err, "%s took no connection within %s", host, d.limits.Connect)
	default:
		return fail(ConnectionFailed, err, "no connection to %s%s", host, because(err))
	}
}
