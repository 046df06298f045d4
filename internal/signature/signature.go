// Package signature verifies the signatures and credentials that senders of
// webhooks put into request headers. It does not know what the requests are for.
package signature

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // some services sign with it; HMAC does not depend on what is weak in it
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"time"
)

// Scheme is an authentication scheme.
type Scheme string

// The schemes.
const (
	GitHub           Scheme = "github"
	Stripe           Scheme = "stripe"
	Slack            Scheme = "slack"
	StandardWebhooks Scheme = "standard-webhooks"
	HMAC             Scheme = "hmac"
	Basic            Scheme = "basic"
	Bearer           Scheme = "bearer"
	// Equals compares a text that the request contains somewhere with the secret.
	Equals Scheme = "equals"
	// Twilio signs the URL and, of a form, its fields.
	Twilio Scheme = "twilio"
	// Ed25519 signs with a private key; the secret is the public key in hex.
	Ed25519 Scheme = "ed25519"
)

// Algorithms returns the hash algorithms of hmac, and Encodings how its signatures are
// encoded. The first of each is the default.
func Algorithms() []string { return []string{"sha256", "sha512", "sha1"} }

// Encodings returns how signatures of hmac are encoded, the default first.
func Encodings() []string { return []string{"hex", "base64"} }

// Schemes returns the schemes that depend on nothing but headers and the body.
func Schemes() []Scheme {
	return []Scheme{GitHub, Stripe, Slack, StandardWebhooks, HMAC, Basic, Bearer}
}

// Rule configures how requests are verified. Every scheme needs a Secret; the
// other fields apply to some schemes only.
type Rule struct {
	Scheme Scheme
	// Secret is shared with the sender: the key of a signature, the password of
	// basic, the token of bearer.
	Secret string
	// Username is the user name of basic.
	Username string
	// Header is the header with the signature of hmac, or with the token of bearer
	// if that is not in Authorization.
	Header string
	// Algorithm (default sha256), Encoding (default hex) and Prefix, the text
	// before the signature, apply to hmac.
	Algorithm string
	Encoding  string
	Prefix    string
	// Timestamp is the header with the timestamp of hmac.
	Timestamp string
	// Signed is a template of the signed text: {body} is replaced by the body and
	// {name} by the header of that name. The default is the body, preceded by the
	// timestamp and a dot if there is a timestamp. {method} and {url} are those of the
	// request, if they are known.
	Signed string
	// Tolerance is how far the timestamp of a request may be from the current time.
	// The default is DefaultTolerance.
	Tolerance time.Duration
	// Given is what the request proves itself with, for equals.
	Given string
	// Method and URL are those of the request, for what is signed with hmac and twilio.
	Method, URL string
}

// DefaultTolerance is the default of Rule.Tolerance.
const DefaultTolerance = 5 * time.Minute

// Rejection is the reason a request failed verification. It is shown to the
// owner of the secret, never to the sender, and contains no part of the request
// or the secret.
type Rejection struct{ Reason string }

func (e *Rejection) Error() string { return "signature: " + e.Reason }

func reject(format string, args ...any) error {
	return &Rejection{Reason: fmt.Sprintf(format, args...)}
}

// Verify verifies a request. A non-nil error is a *Rejection.
func (r Rule) Verify(now time.Time, header http.Header, body []byte) error {
	check, err := r.Begin(now, header)
	if err != nil {
		return err
	}
	_, _ = check.Write(body)
	return check.Finish()
}

// Begin verifies what does not depend on the body: all of basic and bearer, and for a
// signature that its headers are there and its timestamp is recent. A non-nil error is
// a *Rejection. The body is then written to the Check, as it arrives.
func (r Rule) Begin(now time.Time, header http.Header) (*Check, error) {
	if r.Secret == "" {
		return nil, reject("no secret is set to verify the request with")
	}
	switch r.Scheme {
	case GitHub:
		return r.beginGitHub(header)
	case Stripe:
		return r.beginStripe(now, header)
	case Slack:
		return r.beginSlack(now, header)
	case StandardWebhooks:
		return r.beginStandard(now, header)
	case HMAC:
		return r.beginHMAC(now, header)
	case Basic:
		return &Check{}, r.verifyBasic(header)
	case Bearer:
		return &Check{}, r.verifyBearer(header)
	case Equals:
		return &Check{}, r.verifyGiven()
	case Twilio:
		return r.beginTwilio(header)
	case Ed25519:
		return r.beginEd25519(now, header)
	}
	return nil, reject("the scheme is unknown")
}

// Check is the verification of a request whose body is written to it.
type Check struct {
	mac     hash.Hash // nil if the body is not signed as it arrives
	after   string    // the signed text after the body
	matches func(want []byte) bool
	// accepts checks a body that has to be complete; nil for any other.
	accepts func(body []byte) bool
	body    []byte
}

// newCheck returns a check of a signature, given the signed text before and after the
// body and a function that compares the signature.
func newCheck(algorithm func() hash.Hash, key []byte, before, after string, matches func(want []byte) bool) *Check {
	c := &Check{mac: hmac.New(algorithm, key), after: after, matches: matches}
	c.mac.Write([]byte(before))
	return c
}

// Write adds a part of the body. It never fails.
func (c *Check) Write(p []byte) (int, error) {
	if c.mac != nil {
		c.mac.Write(p)
	}
	if c.accepts != nil {
		c.body = append(c.body, p...)
	}
	return len(p), nil
}

// Finish returns a *Rejection if the signature is not that of the body.
func (c *Check) Finish() error {
	valid := true
	switch {
	case c.accepts != nil:
		valid = c.accepts(c.body)
	case c.mac != nil:
		c.mac.Write([]byte(c.after))
		valid = c.matches(c.mac.Sum(nil))
	}
	if !valid {
		return reject("the signature does not match: check that the sender uses the same secret")
	}
	return nil
}

// SignsBody reports whether Verify depends on the body.
func (r Rule) SignsBody() bool { return r.Scheme != Basic && r.Scheme != Bearer && r.Scheme != Equals }

// Timed reports whether the scheme rejects old requests.
func (r Rule) Timed() bool {
	return r.Scheme == Stripe || r.Scheme == Slack || r.Scheme == StandardWebhooks || r.Timestamp != ""
}

// Headers returns the lower-case names of the headers that carry signatures or
// credentials. They must not be passed on.
func (r Rule) Headers() []string {
	switch r.Scheme {
	case GitHub:
		return []string{"x-hub-signature-256", "x-hub-signature"}
	case Stripe:
		return []string{"stripe-signature"}
	case Slack:
		return []string{"x-slack-signature"}
	case StandardWebhooks:
		return []string{"webhook-signature", "svix-signature"}
	case Twilio:
		return []string{"x-twilio-signature"}
	case HMAC, Bearer, Ed25519:
		if r.Header != "" {
			return []string{strings.ToLower(r.Header)}
		}
	}
	return []string{"authorization"}
}

func (r Rule) hash() func() hash.Hash {
	switch r.Algorithm {
	case "sha512":
		return sha512.New
	case "sha1":
		return sha1.New
	}
	return sha256.New
}
