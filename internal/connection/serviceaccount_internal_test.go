package connection

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// newKeyFile returns the key file of a service account and its public key.
func newKeyFile(t *testing.T) (string, *rsa.PublicKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@project.iam.gserviceaccount.com", "private_key_id": "key-1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(file), &key.PublicKey
}

// TestAssertion checks the assertion of a service account against the rules of Google:
// RS256, the key id in the header, scopes separated by spaces, one audience as text, and
// a life of at most an hour.
func TestAssertion(t *testing.T) {
	t.Parallel()
	file, public := newKeyFile(t)
	const audience = "https://oauth2.googleapis.com/token"
	for subject, want := range map[string]any{"": nil, "ada@example.com": "ada@example.com"} {
		text, err := signAssertion(map[string]string{"key": file}, subject, []string{"https://scope/one", "https://scope/two"}, audience)
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
		if err != nil {
			t.Fatal(err)
		}
		if header := token.Headers[0]; len(token.Headers) != 1 || header.KeyID != "key-1" || header.ExtraHeaders["typ"] != "JWT" {
			t.Errorf("header %+v", header)
		}
		var claims map[string]any
		var standard jwt.Claims
		if err := token.Claims(public, &claims, &standard); err != nil {
			t.Fatal(err)
		}
		if claims["iss"] != "robot@project.iam.gserviceaccount.com" || claims["aud"] != audience || claims["scope"] != "https://scope/one https://scope/two" || claims["sub"] != want {
			t.Errorf("claims %v", claims)
		}
		if err := standard.Validate(jwt.Expected{Issuer: "robot@project.iam.gserviceaccount.com", AnyAudience: jwt.Audience{audience}, Time: time.Now()}); err != nil {
			t.Error(err)
		}
		if life := standard.Expiry.Time().Sub(standard.IssuedAt.Time()); life <= 0 || life > time.Hour {
			t.Errorf("it is valid for %s", life)
		}
	}
	_, stranger := newKeyFile(t)
	text, err := signAssertion(map[string]string{"key": file}, "", nil, audience)
	if err != nil {
		t.Fatal(err)
	}
	if token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256}); err != nil || token.Claims(stranger, &jwt.Claims{}) == nil {
		t.Errorf("another key verifies it: %v", err)
	}
}

// TestUnreadableKeyFiles checks that each is rejected with an advice and without a quote.
func TestUnreadableKeyFiles(t *testing.T) {
	t.Parallel()
	file, _ := newKeyFile(t)
	secret := "MIIEv-s3cret"
	for name, tc := range map[string]struct{ text, want string }{
		"a part of the file":    {file[:len(file)/2], "paste its whole content"},
		"another kind of file":  {`{"type": "authorized_user", "refresh_token": "` + secret + `"}`, "service account"},
		"an escaped line break": {`{"client_email": "a", "private_key": "` + secret + `"}`, "PEM"},
		"another kind of key":   {`{"client_email": "a", "private_key": "-----BEGIN PRIVATE KEY-----\nTUlJRXY=\n-----END PRIVATE KEY-----\n"}`, "RSA"},
		"no JSON":               {secret, "paste its whole content"},
	} {
		_, err := parseKeyFile(tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
