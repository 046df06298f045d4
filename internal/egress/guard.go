package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
)

// maxHost is the longest name that DNS can hold.
const maxHost = 253

var (
	errClosed = errors.New("its address is private or reserved")
	errPort   = errors.New("of the ports below 1024 only 80 and 443 are open")
	errOwn    = errors.New("it is this service itself")
)

// guard decides on every target: by its URL before anything happens, and by
// its address when it is dialled.
type guard struct {
	policy Policy
	own    func() []netip.AddrPort
}

// url refuses a URL that cannot lead anywhere open.
func (g guard) url(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme == "":
		return fail(InvalidRequest, nil, "the URL does not begin with http:// or https://")
	case u.Scheme != "http" && u.Scheme != "https":
		return fail(Denied, nil, "only http and https are called, not %q", u.Scheme)
	case u.User != nil:
		return fail(Denied, nil, "the URL of %s holds a user name or password: send them in a header", host)
	case u.Opaque != "" || host == "":
		return fail(InvalidRequest, nil, "the URL has no host")
	case len(host) > maxHost:
		return fail(InvalidRequest, nil, "the host of the URL is longer than %d characters", maxHost)
	}
	if port := u.Port(); port != "" {
		switch n, err := strconv.ParseUint(port, 10, 16); {
		case err != nil:
			return fail(InvalidRequest, nil, "%s is not a port of %s: ports end at 65535", port, host)
		case n == 0:
			return fail(Denied, nil, "port 0 of %s cannot be called", host)
		}
	}
	if err := g.policy.CheckURL(u); err != nil {
		return fail(Denied, err, "%s", err.Error())
	}
	return nil
}

// target refuses an address with its port. This is the check that counts: it
// sees what is dialled, whatever a name said before.
func (g guard) target(target netip.AddrPort) error {
	target = netip.AddrPortFrom(target.Addr().Unmap().WithZone(""), target.Port())
	port := target.Port()
	switch {
	case !g.policy.Allows(target.Addr()):
		return errClosed
	case port < 1024 && port != 80 && port != 443 && !g.policy.opens(target.Addr()):
		return errPort
	case slices.ContainsFunc(g.own(), func(own netip.AddrPort) bool { return reaches(target, own) }):
		return errOwn
	default:
		return nil
	}
}

// reaches tells whether a connection to target ends at the listener. A listener
// on the unspecified address answers on every address of this machine, and a
// connection to the unspecified address ends on this machine.
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

// isLocal tells whether the address is one of this machine's.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		return true // unknown is closed
	}
	return slices.ContainsFunc(local, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == addr
	})
}
