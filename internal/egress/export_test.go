package egress

import (
	"context"
	"net"
	"net/netip"
	"net/url"
)

// Connect dials without the look at the name's addresses that comes before, so
// that only the check on the socket is left.
func (c *Client) Connect(ctx context.Context, targets ...netip.AddrPort) (net.Conn, error) {
	return c.dialer.connect(ctx, "host.test", targets)
}

// SameHost tells whether a redirect keeps credentials.
func SameHost(a, b *url.URL) bool { return sameHost(a, b) }
