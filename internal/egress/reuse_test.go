package egress_test

import (
	"crypto/tls"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// If a node learns that an address belongs to another node after a step has
// called it, the idle connection is not used again.
func TestChecksIdleConnectionsBeforeReuse(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	secure := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, time.Now().Add(time.Hour), outside)}}
	for name, config := range map[string]*tls.Config{"HTTP/1.1": nil, "HTTP/2": secure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, conns := connCountingServer(t, config)
			var known atomic.Bool
			_, address, _ := strings.Cut(url, "://")
			client := newClient(t, egress.Config{Policy: internet, RootCAs: ca.pool(), Own: func() []netip.AddrPort {
				if known.Load() {
					return []netip.AddrPort{netip.MustParseAddrPort(address)}
				}
				return nil
			}})
			for range 3 {
				mustGet(t, client, url)
			}
			if n := conns.Load(); n != 1 {
				t.Fatalf("%d connections: none is kept", n)
			}
			known.Store(true)
			for range 3 {
				_, err := get(t, client, url)
				wantError(t, err, egress.Denied)
			}
			if n := conns.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}
