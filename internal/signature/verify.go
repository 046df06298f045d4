package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// mostSignatures bounds how many signatures of a request are looked at: a
// rotation has two.
const mostSignatures = 10

// bodyMark stands for the body in what is signed.
const bodyMark = "{body}"

// single reads a header that has to be there once.
func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	switch {
	case len(values) == 0 || values[0] == "":
		return "", refuse("the header %s is missing", name)
	case len(values) > 1:
		return "", refuse("the header %s is there more than once", name)
	}
	return values[0], nil
}

func sum(algorithm func() hash.Hash, key []byte, parts ...[]byte) []byte {
	mac := hmac.New(algorithm, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// errDiffers is the refusal of a signature that is not the one we make.
func errDiffers() error {
	return refuse("the signature is not the one that the secret gives")
}

// matchHex compares a signature in hex with ours.
func matchHex(text string, want []byte) bool {
	got, err := hex.DecodeString(text)
	return err == nil && hmac.Equal(got, want)
}

// match64 compares a signature in base64 with ours.
func match64(text string, want []byte) bool {
	got, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && hmac.Equal(got, want)
}

// fresh holds the time of a request, in Unix seconds or milliseconds, against
// ours.
func (r Rule) fresh(now time.Time, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return refuse("the time in the request cannot be read")
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
		return refuse("the time in the request is %s away from ours; %s is tolerated", off.Truncate(time.Second), tolerance)
	}
	return nil
}

func (r Rule) verifyGitHub(header http.Header, body []byte) error {
	text, err := single(header, "X-Hub-Signature-256")
	if err != nil {
		return err
	}
	signature, found := strings.CutPrefix(text, "sha256=")
	if !found || !matchHex(signature, sum(sha256.New, []byte(r.Secret), body)) {
		return errDiffers()
	}
	return nil
}

// verifyStripe reads t=<seconds>,v1=<hex>, where v1 can be there several times
// and other schemes beside it.
func (r Rule) verifyStripe(now time.Time, header http.Header, body []byte) error {
	text, err := single(header, "Stripe-Signature")
	if err != nil {
		return err
	}
	timestamp, signatures := "", []string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "t" && timestamp != "":
			return refuse("the signature has more than one time")
		case name == "t":
			timestamp = value
		case name == "v1" && len(signatures) < mostSignatures:
			signatures = append(signatures, value)
		}
	}
	if err := r.fresh(now, timestamp); err != nil {
		return err
	}
	want := sum(sha256.New, []byte(r.Secret), []byte(timestamp), []byte("."), body)
	return anyOf(signatures, func(s string) bool { return matchHex(s, want) })
}

// anyOf looks at all of them, so that the time does not tell which one it is.
func anyOf(signatures []string, matches func(string) bool) error {
	found := false
	for _, signature := range signatures {
		found = matches(signature) || found
	}
	if !found {
		return errDiffers()
	}
	return nil
}

func (r Rule) verifySlack(now time.Time, header http.Header, body []byte) error {
	timestamp, err := single(header, "X-Slack-Request-Timestamp")
	if err != nil {
		return err
	}
	text, err := single(header, "X-Slack-Signature")
	if err != nil {
		return err
	}
	if err := r.fresh(now, timestamp); err != nil {
		return err
	}
	signature, found := strings.CutPrefix(text, "v0=")
	if !found || !matchHex(signature, sum(sha256.New, []byte(r.Secret), []byte("v0:"+timestamp+":"), body)) {
		return errDiffers()
	}
	return nil
}

// verifyStandard reads the headers of Standard Webhooks, which some senders
// still call by the name of the product that they come from.
func (r Rule) verifyStandard(now time.Time, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return refuse("the secret is not whsec_ and base64")
	}
	family := "Webhook-"
	if len(header.Values("Webhook-Id")) == 0 && len(header.Values("Svix-Id")) > 0 {
		family = "Svix-"
	}
	var parts [3]string
	for i, name := range []string{"Id", "Timestamp", "Signature"} {
		if parts[i], err = single(header, family+name); err != nil {
			return err
		}
	}
	id, timestamp := parts[0], parts[1]
	if strings.Contains(id, ".") {
		return refuse("the id of the message has a dot") // it would blur what is signed
	}
	if err := r.fresh(now, timestamp); err != nil {
		return err
	}
	want := sum(sha256.New, key, []byte(id+"."+timestamp+"."), body)
	signatures := []string{}
	for part := range strings.FieldsSeq(parts[2]) {
		if version, signature, found := strings.Cut(part, ","); found && version == "v1" && len(signatures) < mostSignatures {
			signatures = append(signatures, signature)
		}
	}
	return anyOf(signatures, func(s string) bool { return match64(s, want) })
}

func (r Rule) verifyHMAC(now time.Time, header http.Header, body []byte) error {
	text, err := single(header, r.Header)
	if err != nil {
		return err
	}
	if r.Timestamp != "" {
		timestamp, err := single(header, r.Timestamp)
		if err != nil {
			return err
		}
		if err := r.fresh(now, timestamp); err != nil {
			return err
		}
	}
	before, after, err := r.around(header)
	if err != nil {
		return err
	}
	want := sum(r.hash(), []byte(r.Secret), []byte(before), body, []byte(after))
	signature, found := strings.CutPrefix(text, r.Prefix)
	matches := matchHex
	if r.Encoding == "base64" {
		matches = match64
	}
	if !found || !matches(signature, want) {
		return errDiffers()
	}
	return nil
}

// around is what is signed before and after the body.
func (r Rule) around(header http.Header) (before, after string, err error) {
	template := r.Signed
	switch {
	case template != "":
	case r.Timestamp != "":
		template = "{" + r.Timestamp + "}." + bodyMark
	default:
		template = bodyMark
	}
	before, after, found := strings.Cut(template, bodyMark)
	if !found {
		return "", "", refuse("what is signed has no body in it")
	}
	if before, err = fill(before, header); err == nil {
		after, err = fill(after, header)
	}
	return before, after, err
}

// fill puts headers in the place of their names in braces.
func fill(template string, header http.Header) (string, error) {
	var out strings.Builder
	for {
		text, rest, found := strings.Cut(template, "{")
		out.WriteString(text)
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return out.String(), nil
		}
		value, err := single(header, name)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		template = after
	}
}

func (r Rule) verifyBasic(header http.Header) error {
	text, err := single(header, "Authorization")
	if err != nil {
		return err
	}
	request := http.Request{Header: http.Header{"Authorization": {text}}}
	username, password, ok := request.BasicAuth()
	// Both are always compared, so that the time does not tell which one is wrong.
	rightName, rightPassword := same(username, r.Username), same(password, r.Secret)
	if !ok || !rightName || !rightPassword {
		return refuse("the user name or the password is wrong")
	}
	return nil
}

func (r Rule) verifyBearer(header http.Header) error {
	name := "Authorization"
	if r.Header != "" {
		name = r.Header
	}
	given, err := single(header, name)
	if err != nil {
		return err
	}
	if r.Header == "" {
		scheme, rest, _ := strings.Cut(given, " ")
		if given = strings.TrimSpace(rest); !strings.EqualFold(scheme, "Bearer") {
			return refuse("the header Authorization has another scheme than Bearer")
		}
	}
	if !same(given, r.Secret) {
		return refuse("the token is wrong")
	}
	return nil
}

// same compares texts in a time that tells nothing about them, their length
// included.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
