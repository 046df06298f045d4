package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// PublicURL is the base URL of links to the service, without a trailing slash.
// The zero value means that links use the listen address.
type PublicURL struct{ base string }

var host = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// UnmarshalText parses an absolute http or https URL. It may have a path, for a
// proxy that serves Stepmill below one.
func (p *PublicURL) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !host.MatchString(u.Host) || u.Opaque != "":
		return fmt.Errorf("%q is not an absolute http or https URL such as https://flows.example.com", text)
	case u.User != nil:
		return fmt.Errorf("must not contain a user name or a password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(string(text), "#"):
		return fmt.Errorf("%q must not have a query or a fragment", text)
	}
	below := strings.TrimSuffix(u.Path, "/")
	if u.RawPath != "" || below != "" && path.Clean(below) != below {
		return fmt.Errorf("%q must have a plain path, or none", text)
	}
	p.base = u.Scheme + "://" + strings.ToLower(u.Host) + (&url.URL{Path: below}).EscapedPath()
	return nil
}

// Origin returns the URL without its path, or "" if the URL is not set.
func (p PublicURL) Origin() string {
	u, err := url.Parse(p.base)
	if err != nil || p.base == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// IsSet reports whether the URL is set.
func (p PublicURL) IsSet() bool { return p.base != "" }

// Or returns the URL or, if it is not set, that of the listen address. An
// unspecified address is replaced by localhost.
func (p PublicURL) Or(listening net.Addr) string {
	if p.base != "" {
		return p.base
	}
	name, port, err := net.SplitHostPort(listening.String())
	if ip := net.ParseIP(name); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", port)
	}
	return "http://" + listening.String()
}
