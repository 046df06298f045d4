package connection

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/integration"
)

const (
	// clientAssertionLife is how long an assertion of a client is valid. It is used at
	// once; the rest is for clocks that differ.
	clientAssertionLife = 5 * time.Minute
	clientAssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	minRSABits          = 2048
	maxClientKey        = 8 << 10 // bytes of PEM; reading a key takes longer the larger it is
)

// assertClient adds a signed assertion to a request, which authenticates the client
// without a secret (RFC 7523, section 2.2). The audience is the issuer if it is known: an
// assertion for it is of no use to another server, even if that one claims the token URL
// as its own. Without an issuer it is the token URL, for every endpoint.
func (c *opened) assertClient(params url.Values) error {
	audience := c.auth.Issuer
	if audience == "" {
		endpoint, err := c.auth.TokenURL.URL(c.env())
		if err != nil {
			return err
		}
		audience = endpoint.String()
	}
	key, err := parseClientKey(c.secrets.Fields["private_key"])
	if err != nil {
		return fmt.Errorf("the private key %w", err)
	}
	app := c.client()
	assertion, err := key.assert(app.id, c.Fields["key_id"], audience, clock.Now())
	if err != nil {
		return err
	}
	params.Set("client_id", app.id)
	params.Set("client_assertion_type", clientAssertionType)
	params.Set("client_assertion", assertion)
	return nil
}

// clientCredential names what the client authenticates with.
func (c *opened) clientCredential() string {
	if c.auth.ClientAuth == integration.PrivateKeyJWT {
		return "private key"
	}
	return "secret"
}

// clientKey is the private key of a client, with the algorithm that it signs with.
type clientKey struct {
	crypto.PrivateKey
	algorithm jose.SignatureAlgorithm
}

// assert returns a signed statement of a client about itself.
func (k clientKey) assert(clientID, keyID, audience string, now time.Time) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT")
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.algorithm, Key: k.PrivateKey}, options)
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(map[string]any{
		"iss": clientID, "sub": clientID, "aud": audience, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(clientAssertionLife).Unix(),
	}).Serialize()
}

// parseClientKey reads a private key in PEM. Its errors never quote it.
func parseClientKey(text string) (clientKey, error) {
	if len(text) > maxClientKey {
		return clientKey{}, fmt.Errorf("must be at most %d KiB long", maxClientKey>>10)
	}
	block, rest := pem.Decode([]byte(text))
	for block != nil && block.Type == "EC PARAMETERS" { // OpenSSL writes them in front
		block, rest = pem.Decode(rest)
	}
	switch {
	case block == nil:
		return clientKey{}, errors.New("must be a private key in PEM format, which begins with -----BEGIN PRIVATE KEY-----: paste the whole file")
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		return clientKey{}, errors.New("must not be protected with a passphrase: decrypt it first, for example with openssl pkey")
	case block.Type == "CERTIFICATE" || block.Type == "PUBLIC KEY":
		return clientKey{}, errors.New("must be the private key, not the certificate or the public key")
	}
	pkcs8, pkcs8Err := x509.ParsePKCS8PrivateKey(block.Bytes)
	pkcs1, pkcs1Err := x509.ParsePKCS1PrivateKey(block.Bytes)
	sec1, sec1Err := x509.ParseECPrivateKey(block.Bytes)
	switch {
	case pkcs8Err == nil:
		return newClientKey(pkcs8)
	case pkcs1Err == nil:
		return newClientKey(pkcs1)
	case sec1Err == nil:
		return newClientKey(sec1)
	}
	return clientKey{}, errors.New("is not a private key that can be read: use PKCS #8, PKCS #1 or SEC 1")
}

// newClientKey chooses the algorithm for a key.
func newClientKey(key crypto.PrivateKey) (clientKey, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < minRSABits {
			return clientKey{}, fmt.Errorf("has %d bits: an RSA key needs at least %d", key.N.BitLen(), minRSABits)
		}
		return clientKey{key, jose.RS256}, nil
	case *ecdsa.PrivateKey:
		algorithms := map[elliptic.Curve]jose.SignatureAlgorithm{elliptic.P256(): jose.ES256, elliptic.P384(): jose.ES384, elliptic.P521(): jose.ES512}
		if algorithm := algorithms[key.Curve]; algorithm != "" {
			return clientKey{key, algorithm}, nil
		}
	case ed25519.PrivateKey:
		return clientKey{key, jose.EdDSA}, nil
	}
	return clientKey{}, errors.New("has a type that no token endpoint accepts: use RSA, EC (P-256, P-384 or P-521) or Ed25519")
}
