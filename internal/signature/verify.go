package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxSignatures bounds how many signatures of a request are checked. During a
// key rotation there are two.
const maxSignatures = 10

// bodyPlaceholder is replaced by the body in Rule.Signed.
const bodyPlaceholder = "{body}"

func singleHeader(header http.Header, name string) (string, error) {
	values := header.Values(name)
	switch {
	case len(values) == 0 || values[0] == "":
		return "", reject("the header %s is missing", name)
	case len(values) > 1:
		return "", reject("the header %s occurs more than once", name)
	}
	return values[0], nil
}

// matchHex compares a signature in hex with the expected one.
func matchHex(text string, want []byte) bool {
	got, err := hex.DecodeString(text)
	return err == nil && hmac.Equal(got, want)
}

// matchBase64 compares a signature in base64 with the expected one.
func matchBase64(text string, want []byte) bool {
	got, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && hmac.Equal(got, want)
}

// checkTimestamp compares the timestamp of a request, in Unix seconds or
// milliseconds, with the current time.
func (r Rule) checkTimestamp(now time.Time, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return reject("the timestamp of the request is not a Unix time")
	}
	const milliseconds = 100_000_000_000 // as seconds this is the year 5138
	at := time.Unix(n, 0)
	if n >= milliseconds {
		at = time.UnixMilli(n)
	}
	tolerance := r.Tolerance
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	if off := now.Sub(at).Abs(); off > tolerance {
		return reject("the timestamp of the request is off by %s; the tolerance is %s", off.Truncate(time.Second), tolerance)
	}
	return nil
}

func (r Rule) beginGitHub(header http.Header) (*Check, error) {
	text, err := singleHeader(header, "X-Hub-Signature-256")
	if err != nil {
		return nil, err
	}
	signature, found := strings.CutPrefix(text, "sha256=")
	return newCheck(sha256.New, []byte(r.Secret), "", "", func(want []byte) bool { return found && matchHex(signature, want) }), nil
}

// beginStripe checks t=<seconds>,v1=<hex>. There may be several v1, and other
// schemes too.
func (r Rule) beginStripe(now time.Time, header http.Header) (*Check, error) {
	text, err := singleHeader(header, "Stripe-Signature")
	if err != nil {
		return nil, err
	}
	timestamp, signatures := "", []string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "t" && timestamp != "":
			return nil, reject("the signature has more than one timestamp")
		case name == "t":
			timestamp = value
		case name == "v1" && len(signatures) < maxSignatures:
			signatures = append(signatures, value)
		}
	}
	if err := r.checkTimestamp(now, timestamp); err != nil {
		return nil, err
	}
	return newCheck(sha256.New, []byte(r.Secret), timestamp+".", "", func(want []byte) bool { return matchAny(signatures, want, matchHex) }), nil
}

// matchAny checks every signature, so that timing does not reveal which matches.
func matchAny(signatures []string, want []byte, matches func(text string, want []byte) bool) bool {
	found := false
	for _, signature := range signatures {
		found = matches(signature, want) || found
	}
	return found
}

func (r Rule) beginSlack(now time.Time, header http.Header) (*Check, error) {
	timestamp, err := singleHeader(header, "X-Slack-Request-Timestamp")
	if err != nil {
		return nil, err
	}
	text, err := singleHeader(header, "X-Slack-Signature")
	if err != nil {
		return nil, err
	}
	if err := r.checkTimestamp(now, timestamp); err != nil {
		return nil, err
	}
	signature, found := strings.CutPrefix(text, "v0=")
	return newCheck(sha256.New, []byte(r.Secret), "v0:"+timestamp+":", "", func(want []byte) bool { return found && matchHex(signature, want) }), nil
}

// beginStandard checks the headers of Standard Webhooks. Some senders still use
// the header names of Svix, where the standard originated.
func (r Rule) beginStandard(now time.Time, header http.Header) (*Check, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, reject("the secret is not valid base64, with or without the prefix whsec_")
	}
	family := "Webhook-"
	if len(header.Values("Webhook-Id")) == 0 && len(header.Values("Svix-Id")) > 0 {
		family = "Svix-"
	}
	var parts [3]string
	for i, name := range []string{"Id", "Timestamp", "Signature"} {
		if parts[i], err = singleHeader(header, family+name); err != nil {
			return nil, err
		}
	}
	id, timestamp := parts[0], parts[1]
	if strings.Contains(id, ".") {
		return nil, reject("the message id contains a dot") // the signed text would be ambiguous
	}
	if err := r.checkTimestamp(now, timestamp); err != nil {
		return nil, err
	}
	signatures := []string{}
	for part := range strings.FieldsSeq(parts[2]) {
		if version, signature, found := strings.Cut(part, ","); found && version == "v1" && len(signatures) < maxSignatures {
			signatures = append(signatures, signature)
		}
	}
	return newCheck(sha256.New, key, id+"."+timestamp+".", "", func(want []byte) bool { return matchAny(signatures, want, matchBase64) }), nil
}

func (r Rule) beginHMAC(now time.Time, header http.Header) (*Check, error) {
	text, err := singleHeader(header, r.Header)
	if err != nil {
		return nil, err
	}
	if r.Timestamp != "" {
		timestamp, err := singleHeader(header, r.Timestamp)
		if err != nil {
			return nil, err
		}
		if err := r.checkTimestamp(now, timestamp); err != nil {
			return nil, err
		}
	}
	before, after, err := r.signedAround(header)
	if err != nil {
		return nil, err
	}
	signature, found := strings.CutPrefix(text, r.Prefix)
	matches := matchHex
	if r.Encoding == "base64" {
		matches = matchBase64
	}
	return newCheck(r.hash(), []byte(r.Secret), before, after, func(want []byte) bool { return found && matches(signature, want) }), nil
}

// signedAround returns the signed text before and after the body.
func (r Rule) signedAround(header http.Header) (before, after string, err error) {
	template := r.Signed
	switch {
	case template != "":
	case r.Timestamp != "":
		template = "{" + r.Timestamp + "}." + bodyPlaceholder
	default:
		template = bodyPlaceholder
	}
	before, after, found := strings.Cut(template, bodyPlaceholder)
	if !found {
		return "", "", reject("the template of the signed text does not contain {body}")
	}
	if before, err = r.expand(before, header); err == nil {
		after, err = r.expand(after, header)
	}
	return before, after, err
}

// expand replaces header names in braces by their values, and {method} and {url}.
func (r Rule) expand(template string, header http.Header) (string, error) {
	var out strings.Builder
	for {
		text, rest, found := strings.Cut(template, "{")
		out.WriteString(text)
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return out.String(), nil
		}
		value, err := r.signedValue(name, header)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		template = after
	}
}

func (r Rule) signedValue(name string, header http.Header) (string, error) {
	switch {
	case name == "url" && r.URL != "":
		return r.URL, nil
	case name == "method" && r.Method != "":
		return r.Method, nil
	}
	return singleHeader(header, name)
}

func (r Rule) verifyBasic(header http.Header) error {
	text, err := singleHeader(header, "Authorization")
	if err != nil {
		return err
	}
	request := http.Request{Header: http.Header{"Authorization": {text}}}
	username, password, ok := request.BasicAuth()
	// Both are always compared, so that timing does not reveal which one is wrong.
	rightName, rightPassword := constantTimeEqual(username, r.Username), constantTimeEqual(password, r.Secret)
	if !ok || !rightName || !rightPassword {
		return reject("the user name or the password is wrong")
	}
	return nil
}

func (r Rule) verifyBearer(header http.Header) error {
	name := "Authorization"
	if r.Header != "" {
		name = r.Header
	}
	given, err := singleHeader(header, name)
	if err != nil {
		return err
	}
	if r.Header == "" {
		scheme, rest, _ := strings.Cut(given, " ")
		if given = strings.TrimSpace(rest); !strings.EqualFold(scheme, "Bearer") {
			return reject("the scheme of the header Authorization is not Bearer")
		}
	}
	if !constantTimeEqual(given, r.Secret) {
		return reject("the token is wrong")
	}
	return nil
}

// constantTimeEqual compares texts in constant time. Hashing hides their length.
func constantTimeEqual(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
