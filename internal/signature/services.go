package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio signs with it; HMAC does not depend on what is weak in it
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func (r Rule) verifyGiven() error {
	if !constantTimeEqual(r.Given, r.Secret) {
		return reject("what the request proves itself with is missing or wrong")
	}
	return nil
}

// beginTwilio checks a signature of the URL followed by the names and values of the form,
// in their order. If the body is no form, the URL has its hash.
func (r Rule) beginTwilio(header http.Header) (*Check, error) {
	signature, err := singleHeader(header, "X-Twilio-Signature")
	if err != nil {
		return nil, err
	}
	isForm := strings.HasPrefix(header.Get("Content-Type"), "application/x-www-form-urlencoded")
	return &Check{accepts: func(body []byte) bool {
		signed, ok := r.URL, true
		if isForm {
			var fields url.Values
			if fields, err = url.ParseQuery(string(body)); err != nil {
				return false
			}
			signed += formText(fields)
		} else {
			ok = hasHashOf(r.URL, body)
		}
		mac := hmac.New(sha1.New, []byte(r.Secret))
		mac.Write([]byte(signed))
		return matchBase64(signature, mac.Sum(nil)) && ok
	}}, nil
}

// formText returns the names and values of a form in the order of the names. A value that
// a name has twice counts once.
func formText(fields url.Values) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values := slices.Sorted(slices.Values(fields[name]))
		for _, value := range slices.Compact(values) {
			out.WriteString(name + value)
		}
	}
	return out.String()
}

// hasHashOf reports whether a URL has the hash of a body. One without a body needs none.
func hasHashOf(address string, body []byte) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	given := parsed.Query().Get("bodySHA256")
	if given == "" {
		return len(body) == 0
	}
	sum := sha256.Sum256(body)
	return matchHex(given, sum[:])
}

// beginEd25519 checks a signature of the timestamp and the body.
func (r Rule) beginEd25519(now time.Time, header http.Header) (*Check, error) {
	key, err := hex.DecodeString(r.Secret)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, reject("the public key is not an Ed25519 key in hex")
	}
	text, err := singleHeader(header, r.Header)
	if err != nil {
		return nil, err
	}
	signature, err := hex.DecodeString(text)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return nil, reject("the header %s has no Ed25519 signature in hex", r.Header)
	}
	timestamp := ""
	if r.Timestamp != "" {
		if timestamp, err = singleHeader(header, r.Timestamp); err != nil {
			return nil, err
		}
		if err := r.checkTimestamp(now, timestamp); err != nil {
			return nil, err
		}
	}
	return &Check{accepts: func(body []byte) bool {
		return ed25519.Verify(key, append([]byte(timestamp), body...), signature)
	}}, nil
}
