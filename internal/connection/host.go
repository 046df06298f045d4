package connection

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Host is a host that a credential may be sent to, in canonical form:
// `api.example.com`, `api.example.com:8443` or, for a server without TLS,
// `http://10.0.0.5:3000`.
type Host string

// ParseHost reads a host: a name or an address with an optional port, and with
// `http://` in front if the credential may be sent without encryption.
func ParseHost(text string) (Host, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "https", text
	}
	switch scheme = strings.ToLower(scheme); {
	case scheme != "http" && scheme != "https":
		return "", errors.New("must be a host such as api.example.com; only http:// and https:// may come before it")
	case strings.ContainsAny(rest, "/?#@\\*"):
		return "", errors.New("must be a host such as api.example.com, without a user, a path or *")
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("must be a host such as api.example.com or api.example.com:8443")
	}
	return hostOf(u)
}

// hostOf returns the canonical form of the host that a URL leads to.
func hostOf(u *url.URL) (Host, error) {
	name, err := canonicalName(u.Hostname())
	if err != nil {
		return "", err
	}
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	switch port := u.Port(); {
	case usual == "":
		return "", fmt.Errorf("the scheme %q is not allowed", u.Scheme)
	case port != "" && port != usual:
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return "", fmt.Errorf("the port %q is not valid", port)
		}
		name = net.JoinHostPort(name, port)
	case strings.Contains(name, ":"):
		name = "[" + name + "]"
	}
	if u.Scheme == "http" {
		name = "http://" + name
	}
	return Host(name), nil
}

// canonicalName returns a host name in lower case and ASCII, without the dot of the
// root, or an address in its usual notation.
func canonicalName(name string) (string, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("an address must not have a zone")
		}
		return addr.Unmap().String(), nil
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil || len(ascii) > 253 || slices.Contains(strings.Split(ascii, "."), "") {
		return "", fmt.Errorf("%q is not a valid host name", name)
	}
	return ascii, nil
}

// allowsWithTLS reports whether an http URL would lead to one of the hosts if it were https.
func allowsWithTLS(hosts []Host, u *url.URL) bool {
	secure := *u
	secure.Scheme = "https"
	return u.Scheme == "http" && allows(hosts, &secure)
}

// allows reports whether a URL leads to one of the hosts.
func allows(hosts []Host, u *url.URL) bool {
	if u.User != nil || u.Opaque != "" {
		return false
	}
	host, err := hostOf(u)
	return err == nil && slices.Contains(hosts, host)
}
