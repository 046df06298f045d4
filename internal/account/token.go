package account

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// tokenLength is the length of 256 bits in base64.
const tokenLength = 43

// newToken returns a random token for a session or a one-time link, and its hash.
// Only the hash is stored.
func newToken() (token string, hash []byte) {
	var random [32]byte
	_, _ = rand.Read(random[:])
	token = base64.RawURLEncoding.EncodeToString(random[:])
	return token, hashToken(token)
}

// hashToken returns the hash that a token is stored under, or nil if the token is
// malformed.
func hashToken(token string) []byte {
	if len(token) != tokenLength {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
