package egress

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// TLS is how the connections to the hosts of a credential are secured, beside what
// applies to all of them. The zero value adds nothing. It is comparable: connections are
// only shared by requests with the same settings.
type TLS struct {
	// CAs are certificates in PEM that are trusted in addition to those of the machine.
	CAs string
}

// ParseCertificates reads certificates in PEM. Text around them is ignored, as OpenSSL
// writes it. The error follows the name of the value: "must be …".
func ParseCertificates(text string) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil, errors.New("must not contain a private key: enter only certificates, and replace the key, because it was sent as if it were no secret")
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("must contain only certificates, not %q", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a certificate that cannot be read, number %d: copy the whole file unchanged", len(out)+1)
		}
		out = append(out, certificate)
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("must be certificates in PEM format, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----")
	case strings.Contains(string(rest), "-----BEGIN "):
		return nil, fmt.Errorf("has a certificate that cannot be read, number %d: copy the whole file unchanged", len(out)+1)
	}
	return out, nil
}

// config returns the configuration of connections with these settings.
func (t TLS) config(base *tls.Config) (*tls.Config, error) {
	config := base.Clone()
	if t.CAs != "" {
		certificates, err := ParseCertificates(t.CAs)
		if err != nil {
			return nil, fmt.Errorf("the certificate authorities: %w", err)
		}
		if config.RootCAs, err = copyRoots(base.RootCAs); err != nil {
			return nil, err
		}
		for _, certificate := range certificates {
			config.RootCAs.AddCert(certificate)
		}
	}
	return config, nil
}

// copyRoots returns a copy of root certificates; nil stands for those of the machine.
func copyRoots(roots *x509.CertPool) (*x509.CertPool, error) {
	if roots != nil {
		return roots.Clone(), nil
	}
	return x509.SystemCertPool()
}
