package expr_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/stepmill/stepmill/internal/expr"
)

func inPEM(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// An independent library accepts the tokens.
func TestJWTIsVerified(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsa8, rsaErr := x509.MarshalPKCS8PrivateKey(rsaKey)
	ec1, ec1Err := x509.MarshalECPrivateKey(ecKey)
	ec8, ec8Err := x509.MarshalPKCS8PrivateKey(ecKey)
	for name, test := range map[string]struct {
		algorithm jose.SignatureAlgorithm
		key       string
		public    any
	}{
		"text":                   {jose.HS256, "0123456789abcdef0123456789abcdef", []byte("0123456789abcdef0123456789abcdef")},
		"RSA PKCS #1":            {jose.RS256, inPEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil), &rsaKey.PublicKey},
		"RSA PKCS #8":            {jose.RS256, inPEM(t, "PRIVATE KEY", rsa8, rsaErr), &rsaKey.PublicKey},
		"EC SEC 1":               {jose.ES256, inPEM(t, "EC PRIVATE KEY", ec1, ec1Err), &ecKey.PublicKey},
		"EC with its parameters": {jose.ES256, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + inPEM(t, "EC PRIVATE KEY", ec1, ec1Err), &ecKey.PublicKey},
		"EC PKCS #8":             {jose.ES256, inPEM(t, "PRIVATE KEY", ec8, ec8Err), &ecKey.PublicKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := sampleEnv()
			env.Secrets = map[string]string{"key": test.key}
			p, err := expr.Compile(`jwtSign({"iss": "me", "iat": now(), "exp": addDuration(now(), "1h"), "at": now()}, secrets.key, {"algorithm": "` + string(test.algorithm) + `", "header": {"kid": "k1", "alg": "none"}})`)
			if err != nil {
				t.Fatal(err)
			}
			token, err := p.Eval(env, expr.Budget{})
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := p.Eval(env, expr.Budget{}); again != token {
				t.Error("the signature is not deterministic")
			}
			parsed, err := jwt.ParseSigned(token.(string), []jose.SignatureAlgorithm{test.algorithm})
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.Headers[0].KeyID; got != "k1" {
				t.Errorf("kid is %q", got)
			}
			var claims jwt.Claims
			var all map[string]any
			if err := parsed.Claims(test.public, &claims, &all); err != nil {
				t.Fatal(err)
			}
			if claims.Issuer != "me" || !claims.IssuedAt.Time().Equal(env.Now) || claims.Expiry.Time().Sub(env.Now).Hours() != 1 || all["at"] != "2026-11-15T09:30:00.000Z" {
				t.Errorf("%+v", all)
			}
		})
	}
}

func TestJWTKeys(t *testing.T) {
	t.Parallel()
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, p384Err := x509.MarshalECPrivateKey(ecKey)
	const (
		needsRSA = "argument 2 of jwtSign must be an RSA private key in PEM, of at least 1024 and at most 4096 bits"
		needsEC  = "argument 2 of jwtSign must be a private key of the curve P-256 in PEM"
	)
	for _, test := range []struct{ key, algorithm, want string }{
		{"", "HS256", "argument 2 of jwtSign is empty"},
		{inPEM(t, "EC PRIVATE KEY", p384, p384Err), "HS256", "argument 2 of jwtSign is a PEM key: set the option algorithm to RS256 or ES256"},
		{inPEM(t, "EC PRIVATE KEY", p384, p384Err), "ES256", needsEC},
		{inPEM(t, "EC PRIVATE KEY", p384, p384Err), "RS256", needsRSA},
		{"text", "RS256", needsRSA},
		{"text", "ES256", needsEC},
		{strings.Repeat("x", 9000), "RS256", "argument 2 of jwtSign has more than 8192 bytes"},
		{"key", "none", `argument 3 of jwtSign: algorithm must be "HS256", "RS256" or "ES256"`},
	} {
		env := sampleEnv()
		env.Secrets = map[string]string{"key": test.key}
		p, err := expr.Compile(`jwtSign({}, secrets.key, {"algorithm": "` + test.algorithm + `"})`)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Eval(env, expr.Budget{})
		if err == nil || !strings.HasPrefix(err.Error(), test.want+" (") {
			t.Errorf("%s: %v, want %s", test.algorithm, err, test.want)
		}
	}
	// What is stored of a step is evaluated with masked secrets.
	if got := eval(t, `jwtSign({}, "***", {"algorithm": "RS256"})`); got != `"***"` {
		t.Errorf("a masked key gives %s", got)
	}
}
