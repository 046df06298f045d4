// Package signature owns the proof of who sent a request: the signatures and
// credentials that senders of webhooks put into their headers. It knows neither
// where requests come from nor what they are for.
package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"time"
)

// Scheme is how a sender proves itself.
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
)

// Schemes lists the schemes.
func Schemes() []Scheme {
	return []Scheme{GitHub, Stripe, Slack, StandardWebhooks, HMAC, Basic, Bearer}
}

// Rule says how requests are verified. Only the scheme and the secret are
// needed by all schemes.
type Rule struct {
	Scheme Scheme
	// Secret is what the sender and we share: the key of a signature, the password
	// of basic, the token of bearer.
	Secret string
	// Username is that of basic.
	Username string
	// Header carries the signature of hmac, or the token of bearer where that is
	// not in Authorization.
	Header string
	// Algorithm is sha256 unless given, Encoding hex, and Prefix what stands before
	// the signature; all of hmac.
	Algorithm string
	Encoding  string
	Prefix    string
	// Timestamp is the header that carries the time of hmac.
	Timestamp string
	// Signed is what is signed: text in which {body} stands for the body and {name}
	// for the header of that name. Unless given it is the body, after the time and
	// a dot if there is one.
	Signed string
	// Tolerance is how far the time in a request may be from ours; DefaultTolerance
	// unless given.
	Tolerance time.Duration
}

// DefaultTolerance is how far the time in a request may be from ours.
const DefaultTolerance = 5 * time.Minute

// Refusal is why a request is not taken for genuine. Its text is for the owner
// of the secret; whoever sent the request learns nothing of it. It holds nothing
// of the request and nothing of the secret.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return "signature: " + e.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Verify tells whether a request is genuine: nil, or a Refusal.
func (r Rule) Verify(now time.Time, header http.Header, body []byte) error {
	if r.Secret == "" {
		return refuse("there is no secret to verify with")
	}
	switch r.Scheme {
	case GitHub:
		return r.verifyGitHub(header, body)
	case Stripe:
		return r.verifyStripe(now, header, body)
	case Slack:
		return r.verifySlack(now, header, body)
	case StandardWebhooks:
		return r.verifyStandard(now, header, body)
	case HMAC:
		return r.verifyHMAC(now, header, body)
	case Basic:
		return r.verifyBasic(header)
	case Bearer:
		return r.verifyBearer(header)
	}
	return refuse("the scheme is not known")
}

// Timed tells whether the scheme refuses what is old.
func (r Rule) Timed() bool {
	return r.Scheme == Stripe || r.Scheme == Slack || r.Scheme == StandardWebhooks || r.Timestamp != ""
}

// Headers lists the headers that carry the proof, in lower case: they are of no
// use to anybody else.
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
	case HMAC, Bearer:
		if r.Header != "" {
			return []string{strings.ToLower(r.Header)}
		}
	}
	return []string{"authorization"}
}

func (r Rule) hash() func() hash.Hash {
	if r.Algorithm == "sha512" {
		return sha512.New
	}
	return sha256.New
}
