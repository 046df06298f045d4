// Package egress owns outbound HTTP on behalf of users: the policy of which
// addresses the service may connect to, and the only client that does, with
// buffered or streamed bodies. It does not retry; steps and webhooks decide that.
package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Policy decides which addresses are allowed. The zero Policy allows only public
// unicast addresses.
type Policy struct {
	// Allow lists ranges that are allowed although they are private or reserved.
	Allow []netip.Prefix
}

// Allows reports whether the client may connect to an address.
func (p Policy) Allows(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if p.explicitlyAllows(addr) {
		return true
	}
	if contains(reservedRanges, addr) {
		return false
	}
	return addr.IsValid() && (addr.Is4() || publicV6.Contains(addr))
}

func (p Policy) explicitlyAllows(addr netip.Addr) bool {
	return contains(p.Allow, addr.Unmap().WithZone(""))
}

func contains(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(addr) })
}

// CheckURL rejects a URL whose host is not allowed: a literal address, a name of
// this machine, or a number that some resolvers parse as an address. The
// addresses of a host name are checked on every connection.
func (p Policy) CheckURL(u *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && !p.Allows(addr):
		return fmt.Errorf("the address %s is not allowed: it is private or reserved", host)
	case err == nil:
		return nil
	case endsInNumber(host):
		return fmt.Errorf("the host %q is a number, but not a valid IP address", host)
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		if !p.Allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
			return fmt.Errorf("the host %q is not allowed: it is this machine", host)
		}
	}
	return nil
}

func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

var publicV6 = netip.MustParsePrefix("2000::/3")

// reservedRanges lists the IANA special-purpose ranges of both families,
// including IPv6 ranges that embed an IPv4 address, and the public address at
// which Azure offers virtual machines its internal services.
var reservedRanges = prefixes(
	"168.63.129.16/32",
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}
