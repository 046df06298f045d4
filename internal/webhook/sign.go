package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const secretPrefix = "whsec_"

// signService returns the value of X-Service-Signature. The key is the secret as
// text.
func signService(secret string, body []byte) string {
	return "sha256=" + hex.EncodeToString(digest([]byte(secret), body))
}

// signStandard returns one entry of webhook-signature, as defined by Standard
// Webhooks: the key is the decoded secret, and the id and the time are signed too.
func signStandard(secret, id string, at time.Time, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		key = []byte(secret)
	}
	content := id + "." + strconv.FormatInt(at.Unix(), 10) + "."
	return "v1," + base64.StdEncoding.EncodeToString(digest(key, append([]byte(content), body...)))
}

func digest(key, content []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	return mac.Sum(nil)
}

// sign adds both kinds of signatures to a request. The first secret is the current
// one; a Standard Webhooks signature also covers the others.
func sign(h http.Header, secrets []string, id string, at time.Time, body []byte) {
	h.Set("X-Service-Signature", signService(secrets[0], body))
	standard := make([]string, len(secrets))
	for i, secret := range secrets {
		standard[i] = signStandard(secret, id, at, body)
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("Webhook-Signature", strings.Join(standard, " "))
}
