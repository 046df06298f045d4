package egress

import (
	"crypto"
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
	// Certificate and Key are the client certificate, with the certificates that lead to
	// its authority, and its private key in PEM.
	Certificate, Key string
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

// ParseKey reads a private key in PEM: PKCS #8, PKCS #1 or SEC 1. The error follows the
// name of the value, "must be …", and never quotes it.
func ParseKey(text string) (crypto.Signer, error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("must be a private key in PEM format, from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----")
		}
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
			return nil, errors.New("must not be encrypted with a passphrase: decrypt it with `openssl pkey -in key.pem -out decrypted.pem`, and enter the content of decrypted.pem. Stepmill encrypts it itself")
		case block.Type == "OPENSSH PRIVATE KEY":
			return nil, errors.New("must not be a key for SSH: enter the private key of the certificate")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return parseKeyBlock(block)
		}
	}
}

func parseKeyBlock(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if signer, ok := key.(crypto.Signer); ok && err == nil {
		return signer, nil
	}
	return nil, errors.New("cannot be read: it must be an RSA, ECDSA or Ed25519 key. Copy the whole file unchanged")
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
	if t.Certificate != "" {
		certificate, err := t.certificate()
		if err != nil {
			return nil, err
		}
		// It is sent whatever authorities the server names: somebody entered it for this
		// server, whose reason for rejecting it is more useful than one for not having it.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	}
	return config, nil
}

func (t TLS) certificate() (tls.Certificate, error) {
	chain, err := ParseCertificates(t.Certificate)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("the client certificate: %w", err)
	}
	key, err := ParseKey(t.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("the key of the client certificate: %w", err)
	}
	out := tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, one := range chain {
		out.Certificate = append(out.Certificate, one.Raw)
	}
	return out, nil
}

// copyRoots returns a copy of root certificates; nil stands for those of the machine.
func copyRoots(roots *x509.CertPool) (*x509.CertPool, error) {
	if roots != nil {
		return roots.Clone(), nil
	}
	return x509.SystemCertPool()
}
