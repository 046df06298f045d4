package connection

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/stepmill/stepmill/internal/clock"
)

// keyFile is the key file of a service account.
type keyFile struct {
	Email      string `json:"client_email"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"`

	key *rsa.PrivateKey
}

// parseKeyFile reads the key file of a service account. Its errors never quote it.
func parseKeyFile(text string) (keyFile, error) {
	var file keyFile
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return file, errors.New("must be the JSON key file of a service account: paste its whole content")
	}
	if file.Email == "" || file.PrivateKey == "" {
		return file, errors.New("must be the JSON key file of a service account, with client_email and private_key")
	}
	block, _ := pem.Decode([]byte(file.PrivateKey))
	if block == nil {
		return file, errors.New("has a private_key that is not in PEM format: paste the file unchanged")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		file.key, _ = key.(*rsa.PrivateKey)
	} else if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		file.key = key
	}
	if file.key == nil {
		return file, errors.New("has a private_key that is not an RSA key")
	}
	return file, nil
}

// assertionLife is how long a signed assertion is valid, the most that services accept.
const assertionLife = time.Hour

// signAssertion returns the signed statement that a service account exchanges for a
// token (RFC 7523).
func signAssertion(fields map[string]string, subject string, scopes []string, audience string) (string, error) {
	file, err := parseKeyFile(fields["key"])
	if err != nil {
		return "", fmt.Errorf("the key file %w", err)
	}
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", file.KeyID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: file.key}, options)
	if err != nil {
		return "", err
	}
	now := clock.Now()
	claims := map[string]any{
		"iss": file.Email, "aud": audience, "scope": strings.Join(scopes, " "), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	}
	if subject != "" {
		claims["sub"] = subject
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}
