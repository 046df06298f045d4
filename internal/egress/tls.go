package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
)

// dialTLS implements http.Transport.DialTLSContext: dial and a TLS handshake.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := d.split(address)
	if err != nil {
		return nil, err
	}
	plain, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	config.ServerName = strings.TrimSuffix(host, ".")
	conn := tls.Client(plain, config)
	limited, cancel := context.WithTimeout(ctx, d.limits.Handshake)
	defer cancel()
	if err := conn.HandshakeContext(limited); err != nil {
		plain.Close()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			return nil, fail(TimedOut, err, "the TLS handshake with %s took longer than %s", host, d.limits.Handshake)
		case isConnectionError(err) && !isAlert(err):
			return nil, fail(ConnectionFailed, err, "%s closed the connection during the TLS handshake%s", host, errnoSuffix(err))
		}
		return nil, fail(TLSFailed, err, "could not connect securely to %s: %s", host, tlsFailureReason(err))
	}
	return conn, nil
}

// isAlert reports whether err is a TLS alert of the server, not a network error.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

func tlsFailureReason(err error) string {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case certificateAlert(err) != "":
		return certificateAlert(err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &name):
		return "its certificate is for another name"
	case errors.As(err, &authority):
		return "its certificate is not signed by a trusted authority"
	case errors.As(err, &record):
		return "it does not speak TLS"
	case strings.Contains(err.Error(), "protocol version"):
		return "it does not support TLS 1.2 or later"
	default:
		return "the TLS handshake failed"
	}
}

// certificateAlert explains an alert of the server about the client certificate, or
// returns "". It recognizes alerts, whose type is not exported, by their text.
func certificateAlert(err error) string {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return ""
	}
	switch strings.TrimPrefix(op.Err.Error(), "tls: ") {
	case "certificate required":
		return "it requires a client certificate"
	case "bad certificate", "unsupported certificate", "unknown certificate", "access denied":
		return "it requires a client certificate that it accepts"
	case "unknown certificate authority":
		return "it does not know the authority of the client certificate"
	case "expired certificate":
		return "it considers the client certificate expired"
	case "revoked certificate":
		return "it considers the client certificate revoked"
	case "handshake failure": // for many reasons, of which this is one
		return "the TLS handshake failed; it may require a client certificate"
	default:
		return ""
	}
}
