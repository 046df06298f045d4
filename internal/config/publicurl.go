package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// PublicURL is what links to the service begin with, without a slash at the
// end. The zero value leaves that to the address it serves on.
type PublicURL struct{ base string }

var host = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// UnmarshalText reads an absolute http or https URL, with a path where a proxy
// serves the service below one.
func (p *PublicURL) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !host.MatchString(u.Host) || u.Opaque != "":
		return fmt.Errorf("%q is not an absolute http or https URL such as https://flows.example.com", text)
	case u.User != nil:
		return fmt.Errorf("it must not contain a user name or a password")
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

// Origin is where browsers see the service, without a path; empty if the URL is
// not set.
func (p PublicURL) Origin() string {
	u, err := url.Parse(p.base)
	if err != nil || p.base == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Given tells whether there is one.
func (p PublicURL) Given() bool { return p.base != "" }

// Or is the URL, or the one of an address that is served on. An address that
// stands for all of them is reached on this machine by name.
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
