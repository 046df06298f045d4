package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// A token is the value of an API key: smk_ + an 8-character id + _ + 40
// random characters + a 6-character checksum. The row is looked up by the id. The
// checksum rejects mistyped and made-up values without a lookup.
const (
	tokenPrefix    = "smk_"
	lookupLength   = 8
	secretLength   = 40
	checksumLength = 6
	tokenLength    = len(tokenPrefix) + lookupLength + 1 + secretLength + checksumLength

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func newToken() (token, lookup string) {
	lookup = randomBase62(lookupLength)
	body := tokenPrefix + lookup + "_" + randomBase62(secretLength)
	return body + checksum(body), lookup
}

// parseToken returns the id inside a token, or false if the token is malformed.
func parseToken(token string) (lookup string, ok bool) {
	if len(token) != tokenLength || !strings.HasPrefix(token, tokenPrefix) {
		return "", false
	}
	if token[len(tokenPrefix)+lookupLength] != '_' {
		return "", false
	}
	body := token[:tokenLength-checksumLength]
	if checksum(body) != token[tokenLength-checksumLength:] {
		return "", false
	}
	return token[len(tokenPrefix) : len(tokenPrefix)+lookupLength], true
}

func hashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	out := make([]byte, checksumLength)
	for i := checksumLength - 1; i >= 0; i-- {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return string(out)
}

// randomBase62 returns n random characters. It discards bytes that would introduce
// a bias.
func randomBase62(n int) string {
	const fair = 256 - 256%len(base62)
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		_, _ = rand.Read(buf[:])
		for _, b := range buf {
			if int(b) < fair && len(out) < n {
				out = append(out, base62[int(b)%len(base62)])
			}
		}
	}
	return string(out)
}
