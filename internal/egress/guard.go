package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
)

const maxHost = 253

var (
	errReserved = errors.New("its address is private or reserved")
	errPort     = errors.New("of the ports below 1024 only 80 and 443 are allowed")
	errSelf     = errors.New("it is an address of this service")
)

// guard checks every target: its URL before the request, and its address when
// the connection is made.
type guard struct {
	policy Policy
	own    func() []netip.AddrPort
}

// checkURL rejects a URL that is invalid or cannot lead to an allowed address.
func (g guard) checkURL(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme == "":
		return fail(InvalidRequest, nil, "the URL must begin with http:// or https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return fail(Denied, nil, "the URL must use http or https, not %q", u.Scheme)
	case u.User != nil:
		return fail(Denied, nil, "the URL of %s contains a user name or password: send them in a header instead", host)
	case u.Opaque != "" || host == "":
		return fail(InvalidRequest, nil, "the URL has no host")
	case len(host) > maxHost:
		return fail(InvalidRequest, nil, "the host of the URL is longer than %d characters", maxHost)
	}
	if port := u.Port(); port != "" {
		switch n, err := strconv.ParseUint(port, 10, 16); {
		case err != nil:
			return fail(InvalidRequest, nil, "the port %s of %s is not valid: the largest port is 65535", port, host)
		case n == 0:
			return fail(Denied, nil, "the port 0 of %s is not valid", host)
		}
	}
	if err := g.policy.CheckURL(u); err != nil {
		return fail(Denied, err, "%s", err.Error())
	}
	return nil
}

// checkTarget rejects an address and port that are not allowed. This is the check
// that counts: it sees the address of the connection, not a name.
func (g guard) checkTarget(target netip.AddrPort) error {
	target = netip.AddrPortFrom(target.Addr().Unmap().WithZone(""), target.Port())
	port := target.Port()
	switch {
	case !g.policy.Allows(target.Addr()):
		return errReserved
	case port < 1024 && port != 80 && port != 443 && !g.policy.explicitlyAllows(target.Addr()):
		return errPort
	case slices.ContainsFunc(g.own(), func(own netip.AddrPort) bool { return reaches(target, own) }):
		return errSelf
	default:
		return nil
	}
}

// reaches reports whether a connection to target arrives at the listener. A
// listener on the unspecified address accepts connections on every address of
// this machine, and a connection to the unspecified address arrives on this
// machine.
func reaches(target, listener netip.AddrPort) bool {
	to, at := target.Addr(), listener.Addr().Unmap().WithZone("")
	switch {
	case target.Port() != listener.Port():
		return false
	case at.IsUnspecified():
		return isLocal(to)
	case to.IsUnspecified():
		return isLocal(at)
	default:
		return to == at
	}
}

// isLocal reports whether the address belongs to this machine.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		return true // fail closed
	}
	return slices.ContainsFunc(local, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == addr
	})
}
