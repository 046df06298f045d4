package account

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// tokenLength is that of 256 random bits in base64.
const tokenLength = 43

// newToken makes what lets somebody in once, or for as long as a session lasts.
// Only its hash is kept.
func newToken() (token string, hash []byte) {
	var random [32]byte
	_, _ = rand.Read(random[:])
	token = base64.RawURLEncoding.EncodeToString(random[:])
	return token, hashOf(token)
}

// hashOf is what a token is found by, or nil for what cannot be one.
func hashOf(token string) []byte {
	if len(token) != tokenLength {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
