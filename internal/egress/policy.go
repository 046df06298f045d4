// Package egress owns the border to the outside: which addresses the service
// may talk to on behalf of its users, and the HTTP client that does so. Nothing
// else in the service decides that. It does not know what is sent or why, and
// whether to try again is for steps and webhooks to decide.
package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Policy says which addresses are open. The zero policy refuses everything that
// is not a public unicast address.
type Policy struct {
	// Allow opens ranges that are otherwise closed.
	Allow []netip.Prefix
}

// Allows tells whether an address may be dialled.
func (p Policy) Allows(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if p.opens(addr) {
		return true
	}
	if contains(closed, addr) {
		return false
	}
	return addr.IsValid() && (addr.Is4() || publicV6.Contains(addr))
}

// opens tells whether the operator named a range that holds the address.
func (p Policy) opens(addr netip.Addr) bool {
	return contains(p.Allow, addr.Unmap().WithZone(""))
}

func contains(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(addr) })
}

// CheckURL refuses a URL whose host is plainly closed: a literal address, a
// name for this machine, or a number that some resolvers read as an address. A
// host name is checked again, by its addresses, whenever it is dialled.
func (p Policy) CheckURL(u *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && !p.Allows(addr):
		return fmt.Errorf("the address %s is not reachable from here: it is private or reserved", host)
	case err == nil:
		return nil
	case endsInNumber(host):
		return fmt.Errorf("the host %q is a number that is not written as an address", host)
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		if !p.Allows(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
			return fmt.Errorf("the host %q is this machine", host)
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

// closed lists what is not the public internet: the special-purpose registries
// of IANA for both families, with those ranges of IPv6 that carry an IPv4
// address inside.
var closed = prefixes(
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
