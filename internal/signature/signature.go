// Package signature verifies the signatures and credentials that senders of
// webhooks put into request headers. It does not know what the requests are for.
package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"errors"
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
)

// Schemes returns all schemes.
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
	// timestamp and a dot if there is a timestamp.
	Signed string
	// Tolerance is how far the timestamp of a request may be from the current time.
	// The default is DefaultTolerance.
	Tolerance time.Duration
}

// DefaultTolerance is the default of Rule.Tolerance.
const DefaultTolerance = 5 * time.Minute

// Rejection is the reason a request failed verification. It is shown to the
// owner of the secret, never to the sender, and contains no part of the request
// or the secret.
type Rejection struct {
	Reason string
	// mismatch means that the signature is not that of the body.
	mismatch bool
}

func (e *Rejection) Error() string { return "signature: " + e.Reason }

func reject(format string, args ...any) error {
	return &Rejection{Reason: fmt.Sprintf(format, args...)}
}

// Verify verifies a request. A non-nil error is a *Rejection.
func (r Rule) Verify(now time.Time, header http.Header, body []byte) error {
	if r.Secret == "" {
		return reject("no secret is set to verify the request with")
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
	return reject("the scheme is unknown")
}

// VerifyHeader verifies what does not depend on the body: all of basic and bearer,
// and for a signature that its headers are there and its timestamp is recent. A
// non-nil error is a *Rejection.
func (r Rule) VerifyHeader(now time.Time, header http.Header) error {
	err := r.Verify(now, header, nil)
	if rejection, ok := errors.AsType[*Rejection](err); ok && rejection.mismatch {
		return nil
	}
	return err
}

// SignsBody reports whether Verify depends on the body.
func (r Rule) SignsBody() bool { return r.Scheme != Basic && r.Scheme != Bearer }

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
