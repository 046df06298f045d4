package connection

import (
	"net/http"
	"net/url"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
)

// tls returns the settings of TLS connections to the hosts of a connection and to the
// endpoints that issue its tokens.
func (c *opened) tls() egress.TLS { return egress.TLS{CAs: c.auth.CA} }

// tlsOnly returns a credential that has TLS settings for a URL and adds nothing to
// requests. It is nil without settings.
func tlsOnly(target string, settings egress.TLS) egress.Credential {
	if settings == (egress.TLS{}) {
		return nil
	}
	var hosts []Host
	if u, err := url.Parse(target); err == nil {
		if host, err := hostOf(u); err == nil {
			hosts = append(hosts, host)
		}
	}
	return credential{hosts: hosts, apply: func(*http.Request) error { return nil }, tls: settings}
}

// maxCA is the maximum size of the certificate authorities of a connection in bytes.
const maxCA = 32 << 10

// checkCA reports certificate authorities that could not be used. Only what is saved is
// checked: one that expires later must not keep a connection from being read.
func checkCA(ca string) error {
	const pointer = "/definition/ca"
	if ca == "" {
		return nil
	}
	if len(ca) > maxCA {
		return fault.Field(pointer, "must be at most %d KiB long: enter only the authorities of this service", maxCA>>10)
	}
	certificates, err := egress.ParseCertificates(ca)
	if err != nil {
		return fault.Field(pointer, "%v", err)
	}
	for _, one := range certificates {
		if now := clock.Now(); now.After(one.NotAfter) {
			return fault.Field(pointer, "has a certificate that expired on %s: %s", one.NotAfter.UTC().Format("2006-01-02"), one.Subject)
		}
	}
	return nil
}
