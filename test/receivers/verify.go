// Package receivers has samples in several languages that verify webhook deliveries. The
// documentation quotes the parts between the marks, and the tests run each sample on
// real deliveries and on forgeries.
package receivers

// begin: verify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Verify checks a delivery. The body must be as it was received, byte for byte.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	id, sent := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return errors.New("the timestamp is missing or too far from now")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return errors.New("the secret is not a signing secret")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + sent + "."))
	mac.Write(body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for given := range strings.SplitSeq(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), want) { // takes the same time wherever they differ
			return nil
		}
	}
	return errors.New("no signature matches")
}

// end: verify
