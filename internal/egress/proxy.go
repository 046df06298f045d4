package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

const maxProxyResponse = 64 << 10

// proxy opens connections through an HTTP proxy with CONNECT, for http and https
// alike. It is given the address that the guard has checked, not a name, so the proxy
// cannot connect to another one. Its errors never contain its URL.
type proxy struct {
	address   string
	tls       *tls.Config // nil: plain HTTP
	authority string      // value of Proxy-Authorization; "" for none
}

func newProxy(u *url.URL, config *tls.Config) *proxy {
	if u == nil {
		return nil
	}
	p := &proxy{address: u.Host}
	if u.Scheme == "https" {
		p.tls = config.Clone()
		p.tls.ServerName, p.tls.NextProtos = u.Hostname(), []string{"http/1.1"}
	}
	if u.Port() == "" {
		p.address = net.JoinHostPort(u.Hostname(), map[bool]string{true: "443", false: "80"}[p.tls != nil])
	}
	if u.User != nil {
		password, _ := u.User.Password()
		p.authority = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return p
}

// dial opens a tunnel to a target. An error is an *Error or the error of the context.
func (p *proxy) dial(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, proxyError(ctx, "could not connect to the egress proxy", err)
	}
	// A context that ends makes the exchange with the proxy fail at once.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := p.open(ctx, conn, target)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return tunnel, nil
}

func (p *proxy) open(ctx context.Context, conn net.Conn, target netip.AddrPort) (net.Conn, error) {
	if p.tls != nil {
		secure := tls.Client(conn, p.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			if isConnectionError(err) && !isAlert(err) || ctx.Err() != nil {
				return nil, proxyError(ctx, "the egress proxy closed the connection during the TLS handshake", err)
			}
			return nil, fail(ConnectionFailed, err, "could not connect securely to the egress proxy: %s", tlsFailureReason(err))
		}
		conn = secure
	}
	request := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target)
	if p.authority != "" {
		request += "Proxy-Authorization: " + p.authority + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return nil, proxyError(ctx, "the connection to the egress proxy was lost", err)
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxProxyResponse))
	resp, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil && (isConnectionError(err) || ctx.Err() != nil):
		return nil, proxyError(ctx, "the egress proxy closed the connection", err)
	case err != nil:
		return nil, fail(ConnectionFailed, err, "the egress proxy did not send a valid HTTP response")
	}
	resp.Body.Close()
	if err := refusal(resp.StatusCode); err != nil {
		return nil, err
	}
	if reader.Buffered() > 0 {
		return nil, fail(ConnectionFailed, nil, "the egress proxy sent data before the request")
	}
	return &tunnel{Conn: conn, target: net.TCPAddrFromAddrPort(target)}, nil
}

// refusal returns the error of a proxy that did not connect. A proxy that fails is not
// the fault of the user, so the request can be retried, unless the proxy forbids the
// target.
func refusal(status int) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusProxyAuthRequired:
		return fail(ConnectionFailed, nil, "the egress proxy rejected its user name or password (407): the operator of Stepmill has to correct --egress-proxy")
	case status == http.StatusForbidden:
		return fail(Denied, nil, "the egress proxy does not allow connections to the address of the host (403)")
	case status == http.StatusGatewayTimeout:
		return fail(TimedOut, nil, "the egress proxy could not connect to the host in time (504)")
	}
	reason := strconv.Itoa(status)
	if text := http.StatusText(status); text != "" {
		reason += " " + text
	}
	return fail(ConnectionFailed, nil, "the egress proxy could not connect to the host (%s)", reason)
}

func proxyError(ctx context.Context, message string, err error) error {
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &network) && network.Timeout():
		return fail(TimedOut, err, "the egress proxy stopped responding")
	}
	return fail(ConnectionFailed, err, "%s%s", message, errnoSuffix(err))
}

type tunnel struct {
	net.Conn
	target net.Addr
}

// RemoteAddr returns the address of the target.
func (t *tunnel) RemoteAddr() net.Addr { return t.target }
