package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
)

// Connect dials without checking the addresses of the name first, so that only
// the check on the socket applies.
func (c *Client) Connect(ctx context.Context, targets ...netip.AddrPort) (net.Conn, error) {
	return c.dialer.connect(ctx, "host.test", targets)
}

// DialWith replaces network connections with those of dial.
func (c *Client) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.pools.newTransport = func(settings TLS) (*http.Transport, error) {
		transport, err := c.transport(settings)
		transport.DialContext = dial
		return transport, err
	}
}

// Users returns how many requests use the connections of a workspace.
func (c *Client) Users(workspace string) int {
	c.pools.mu.Lock()
	defer c.pools.mu.Unlock()
	if element, ok := c.pools.byKey[poolKey{workspace: workspace}]; ok {
		return poolOf(element).users
	}
	return 0
}
