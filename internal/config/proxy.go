package config

import (
	"errors"
	"net/url"
)

// ProxyURL is the URL of an outbound proxy. It may contain a password, so neither it
// nor an error about it is ever printed. The zero value means no proxy.
type ProxyURL struct{ url *url.URL }

// UnmarshalText parses an http or https URL, optionally with a user name and password.
func (p *ProxyURL) UnmarshalText(text []byte) error {
	p.url = nil
	if len(text) == 0 {
		return nil
	}
	u, err := url.Parse(string(text))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !host.MatchString(u.Host):
		return errors.New("must be the http or https URL of a proxy, such as http://user:password@proxy.example:3128; special characters in the password must be percent-encoded")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must not have a path, a query or a fragment")
	}
	p.url = u
	return nil
}

// URL returns the URL, or nil if there is no proxy.
func (p ProxyURL) URL() *url.URL { return p.url }

// String returns the URL without its password.
func (p ProxyURL) String() string {
	if p.url == nil {
		return ""
	}
	return p.url.Redacted()
}
