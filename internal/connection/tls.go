package connection

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/integration"
)

// tls returns the settings of TLS connections to the hosts of a connection and to the
// endpoints that issue its tokens.
func (c *opened) tls() egress.TLS {
	settings := egress.TLS{CAs: c.auth.CA}
	if hasCertificate(c.Connection, c.auth.Kind) {
		settings.Certificate, settings.Key = c.Fields[integration.CertificateField], c.secrets.Fields[integration.KeyField]
	}
	return settings
}

// hasCertificate reports whether the fields of a client certificate are those of a
// connection: an integration may call its own fields so.
func hasCertificate(c Connection, kind string) bool {
	return c.Integration == "" || kind == integration.ClientCertificate
}

// CertificateExpiresAt returns when the client certificate of a connection expires, or one
// of those that lead to its authority. It is nil if there is none.
func (c Connection) CertificateExpiresAt() *time.Time {
	chain, err := egress.ParseCertificates(c.Fields[integration.CertificateField])
	if err != nil {
		return nil
	}
	first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	return &first.NotAfter
}

// checkCertificate reports what is wrong with the client certificate of a connection that
// is saved.
func checkCertificate(c *opened) []fault.Detail {
	problem := func(field, format string, args ...any) []fault.Detail {
		return []fault.Detail{{Pointer: "/fields/" + field, Message: fmt.Sprintf(format, args...)}}
	}
	settings := c.tls()
	switch {
	case settings.Certificate == "" && settings.Key == "":
		return nil
	case settings.Certificate == "":
		return problem(integration.CertificateField, "is required beside %s. To remove the certificate, send both as empty text", integration.KeyField)
	case settings.Key == "":
		return problem(integration.KeyField, "is required beside %s. To remove the certificate, send both as empty text", integration.CertificateField)
	}
	chain, err := egress.ParseCertificates(settings.Certificate)
	if err != nil {
		return problem(integration.CertificateField, "%v", err)
	}
	key, err := egress.ParseKey(settings.Key)
	if err != nil {
		return problem(integration.KeyField, "%v", err)
	}
	switch public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); {
	case !ok:
		return problem(integration.KeyField, "is of a kind that TLS does not support")
	case public.Equal(chain[0].PublicKey):
	case slices.ContainsFunc(chain, func(one *x509.Certificate) bool { return public.Equal(one.PublicKey) }):
		return problem(integration.CertificateField, "must begin with the certificate of the key; those that lead to its authority follow it")
	default:
		return problem(integration.KeyField, "does not belong to the certificate: enter the key that %q was issued for", chain[0].Subject)
	}
	if expires := *c.CertificateExpiresAt(); clock.Now().After(expires) {
		return problem(integration.CertificateField, "expired on %s: enter one that is still valid, and its key", expires.UTC().Format(time.DateOnly))
	}
	return nil
}

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

// checkSecureHosts rejects a host without TLS, which cannot ask for a client certificate,
// if the connection has no other credential.
func checkSecureHosts(c *opened) error {
	if c.auth.Kind != integration.ClientCertificate {
		return nil
	}
	for _, host := range c.Hosts {
		if strings.HasPrefix(string(host), "http:") {
			return fault.Field("/definition/hosts", "%q must use https: the client certificate is part of a TLS connection", host)
		}
	}
	return nil
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
			return fault.Field(pointer, "has a certificate that expired on %s: %s", one.NotAfter.UTC().Format(time.DateOnly), one.Subject)
		}
	}
	return nil
}
