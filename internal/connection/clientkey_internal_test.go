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
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// must returns the first result of a function of the standard library.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// TestClientAssertion signs assertions with keys of every kind, and checks them by the
// rules of RFC 7523 and OpenID Connect.
func TestClientAssertion(t *testing.T) {
	t.Parallel()
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	p256, p384, p521 := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const audience = "https://id.example/token"
	now := time.Now()
	for name, tc := range map[string]struct {
		text      string
		public    crypto.PublicKey
		algorithm jose.SignatureAlgorithm
	}{
		"RSA in PKCS #8":     {inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(rsaKey))), rsaKey.Public(), jose.RS256},
		"RSA in PKCS #1":     {inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), rsaKey.Public(), jose.RS256},
		"P-256 in PKCS #8":   {inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p256))), p256.Public(), jose.ES256},
		"P-256 in SEC 1":     {inPEM("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p256))), p256.Public(), jose.ES256},
		"P-256 of OpenSSL":   {inPEM("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}) + inPEM("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p256))), p256.Public(), jose.ES256},
		"P-384":              {inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p384))), p384.Public(), jose.ES384},
		"P-521":              {inPEM("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(p521))), p521.Public(), jose.ES512},
		"Ed25519":            {inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(edKey))), edKey.Public(), jose.EdDSA},
		"trimmed, with CRLF": {strings.TrimSpace(strings.ReplaceAll(inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p256))), "\n", "\r\n")), p256.Public(), jose.ES256},
	} {
		key, err := parseClientKey(tc.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		seen := map[string]bool{}
		for _, keyID := range []string{"", "key-1"} {
			token, err := jwt.ParseSigned(must(key.assert("flows", keyID, audience, now)), []jose.SignatureAlgorithm{tc.algorithm})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var claims jwt.Claims
			if err := token.Claims(tc.public, &claims); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := claims.Validate(jwt.Expected{Issuer: "flows", Subject: "flows", AnyAudience: jwt.Audience{audience}, Time: now}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if life := claims.Expiry.Time().Sub(now); life > 5*time.Minute || life < 4*time.Minute || len(claims.Audience) != 1 {
				t.Errorf("%s: valid for %s, for %v", name, life, claims.Audience)
			}
			if header := token.Headers[0]; header.KeyID != keyID || header.ExtraHeaders["typ"] != "JWT" {
				t.Errorf("%s: header %+v", name, header)
			}
			if len(claims.ID) < 20 || seen[claims.ID] {
				t.Errorf("%s: jti %q", name, claims.ID)
			}
			seen[claims.ID] = true
		}
	}
}

func TestUnusableClientKeys(t *testing.T) {
	t.Parallel()
	small := inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(must(rsa.GenerateKey(rand.Reader, 1024))))
	p224 := inPEM("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)))))
	public := inPEM("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Public())))
	for name, tc := range map[string]struct{ text, want string }{
		"no PEM":            {"s3cret-text", "in PEM format"},
		"no content":        {inPEM("PRIVATE KEY", []byte("s3cret-text")), "is not a private key"},
		"a public key":      {public, "must be the private key"},
		"a certificate":     {inPEM("CERTIFICATE", []byte("s3cret-text")), "must be the private key"},
		"encrypted":         {inPEM("ENCRYPTED PRIVATE KEY", []byte("s3cret-text")), "passphrase"},
		"encrypted, old":    {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nczNjcmV0\n-----END RSA PRIVATE KEY-----\n", "passphrase"},
		"a short RSA key":   {small, "at least 2048"},
		"another curve":     {p224, "P-256, P-384 or P-521"},
		"another algorithm": {inPEM("PRIVATE KEY", x25519), "P-256, P-384 or P-521"},
		"too long":          {strings.Repeat("x", 9<<10), "at most 8 KiB"},
	} {
		_, err := parseClientKey(tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// x25519 is a key that agrees on keys and cannot sign, in PKCS #8.
var x25519 = append([]byte{48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 110, 4, 34, 4, 32}, make([]byte, 32)...)
