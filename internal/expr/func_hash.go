package expr

import (
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // for services that require it
	"crypto/sha1" //nolint:gosec // for services that require it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"

	"github.com/stepmill/stepmill/internal/mask"
)

func hashFunctions() []function {
	return []function{
		fn("hash", "hash(text, algorithm[, encoding]) string", `The hash of the text. The algorithm is "md5", "sha1", "sha256" or "sha512", the encoding "hex", "base64" or "base64url"; hex is the default.`, 2, 3, hashText,
			`hash("abc", "md5")`, `"900150983cd24fb0d6963f7d28e17f72"`,
			`hash("abc", "sha256", "base64")`, `"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="`),
		fn("hmac", "hmac(key, text, algorithm[, encoding[, keyEncoding]]) string", `The HMAC signature of the text, with the algorithms and encodings of hash. The key is text, or bytes in the encoding "hex", "base64" or "base64url".`, 3, 5, hmacText,
			`hmac("Jefe", "what do ya want for nothing?", "sha1")`, `"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"`,
			`hmac("4a656665", "what do ya want for nothing?", "md5", "base64url", "hex")`, `"dQx4PmqwtQPqqG4xCl23OA"`),
		fn("sha256", "sha256(text) string", "The SHA-256 hash in hexadecimal.", 1, 1, sha256Text,
			`sha256("abc")`, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`),
		fn("hmacSha256", "hmacSha256(key, text) string", "The HMAC-SHA-256 signature of the text in hexadecimal.", 2, 2, hmacSha256Text,
			`hmacSha256("key", "message")`, `"6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a"`),
	}
}

const hashSteps = 20 // per call, besides those per byte

// digest charges for hashing n bytes, including the copy that hashing needs.
func (m *evaluation) digest(n int) error {
	if err := m.growText(n + 2*sha512.Size); err != nil {
		return err
	}
	return m.spend(hashSteps + n/8)
}

func (a args) algorithm(i int) (func() hash.Hash, error) {
	name, err := a.choice(i, "md5", "sha1", "sha256", "sha512")
	switch name {
	case "md5":
		return md5.New, err
	case "sha1":
		return sha1.New, err
	case "sha512":
		return sha512.New, err
	}
	return sha256.New, err
}

func (a args) encoded(i int, sum []byte) (any, error) {
	name, err := a.choice(i, "hex", "base64", "base64url")
	if err != nil {
		return nil, err
	}
	switch name {
	case "base64":
		return base64.StdEncoding.EncodeToString(sum), nil
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(sum), nil
	}
	return hex.EncodeToString(sum), nil
}

func hashText(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	algorithm, err := a.algorithm(1)
	if err != nil {
		return nil, err
	}
	if err := m.digest(len(s)); err != nil {
		return nil, err
	}
	h := algorithm()
	h.Write([]byte(s))
	return a.encoded(2, h.Sum(nil))
}

func hmacText(m *evaluation, a args) (any, error) {
	s, err := a.texts(2)
	if err != nil {
		return nil, err
	}
	algorithm, err := a.algorithm(2)
	if err != nil {
		return nil, err
	}
	if err := m.digest(len(s[0]) + len(s[1])); err != nil {
		return nil, err
	}
	if s[0] == mask.Replacement {
		return mask.Replacement, nil // a masked key gives a masked signature
	}
	key, err := a.key(s[0])
	if err != nil {
		return nil, err
	}
	mac := hmac.New(algorithm, key)
	mac.Write([]byte(s[1]))
	return a.encoded(3, mac.Sum(nil))
}

func (a args) key(text string) ([]byte, error) {
	encoding, err := a.choice(4, "text", "hex", "base64", "base64url")
	if err != nil {
		return nil, err
	}
	var key []byte
	switch encoding {
	case "hex":
		key, err = hex.DecodeString(text)
	case "base64", "base64url":
		key, err = decodeBase64(text)
	default:
		key = []byte(text)
	}
	if err != nil {
		return nil, failf("argument 1 of hmac is not %s", encoding)
	}
	return key, nil
}

func sha256Text(m *evaluation, a args) (any, error) {
	s, err := a.text(0)
	if err != nil {
		return nil, err
	}
	if err := m.digest(len(s)); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:]), nil
}

func hmacSha256Text(m *evaluation, a args) (any, error) {
	s, err := a.texts(2)
	if err != nil {
		return nil, err
	}
	if err := m.digest(len(s[0]) + len(s[1])); err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(s[0]))
	mac.Write([]byte(s[1]))
	return hex.EncodeToString(mac.Sum(nil)), nil
}
