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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/duration"
	"github.com/stepmill/stepmill/internal/suggest"
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
// needed; a field that the scheme has no use for is a mistake.
type Rule struct {
	Scheme Scheme `json:"scheme"`
	// Secret is what the sender and we share: the key of a signature, the password
	// of basic, the token of bearer.
	Secret string `json:"secret"`
	// Username is that of basic.
	Username string `json:"username,omitempty"`
	// Header carries the signature of hmac, or the token of bearer instead of
	// Authorization.
	Header string `json:"header,omitempty"`
	// Algorithm is sha256 unless given, Encoding hex, and Prefix what stands before
	// the signature; of hmac.
	Algorithm string `json:"algorithm,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	// TimestampHeader carries the time of hmac, Signed is what is signed, such as
	// {timestamp}.{body}.
	TimestampHeader string `json:"timestamp_header,omitempty"`
	Signed          string `json:"signed,omitempty"`
	// Tolerance is how far the time in a request may be from ours.
	Tolerance string `json:"tolerance,omitempty"`
}

// Problem is what is wrong with a field of a rule.
type Problem struct{ Field, Message string }

const (
	defaultTolerance = 5 * time.Minute
	longestTolerance = 24 * time.Hour
	longestText      = 200
)

// What a template of hmac is made of.
const (
	bodyMark      = "{body}"
	timestampMark = "{timestamp}"
)

var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")

// Check reports what is wrong with a rule, whatever its secret is.
func (r Rule) Check() []Problem {
	var out []Problem
	report := func(field, format string, args ...any) {
		out = append(out, Problem{field, fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(Schemes(), r.Scheme) {
		names := make([]string, len(Schemes()))
		for i, scheme := range Schemes() {
			names[i] = string(scheme)
		}
		report("scheme", "must be one of %s%s", strings.Join(names, ", "), suggest.Hint(string(r.Scheme), names))
		return out
	}
	if r.Secret == "" {
		report("secret", "is required")
	}
	r.checkUse(report)
	r.checkValues(report)
	return out
}

// checkUse reports fields that the scheme needs or has no use for.
func (r Rule) checkUse(report func(field, format string, args ...any)) {
	uses := map[Scheme][]string{
		Stripe: {"tolerance"}, Slack: {"tolerance"}, StandardWebhooks: {"tolerance"},
		HMAC:  {"header", "algorithm", "encoding", "prefix", "timestamp_header", "signed", "tolerance"},
		Basic: {"username"}, Bearer: {"header"},
	}
	for _, field := range []struct{ name, value string }{
		{"username", r.Username}, {"header", r.Header}, {"algorithm", r.Algorithm}, {"encoding", r.Encoding}, {"prefix", r.Prefix},
		{"timestamp_header", r.TimestampHeader}, {"signed", r.Signed}, {"tolerance", r.Tolerance},
	} {
		used := slices.Contains(uses[r.Scheme], field.name)
		needed := r.Scheme == Basic && field.name == "username" || r.Scheme == HMAC && field.name == "header"
		switch {
		case field.value != "" && !used:
			report(field.name, "the scheme %s has no use for it", r.Scheme)
		case field.value == "" && needed:
			report(field.name, "is required")
		case len(field.value) > longestText:
			report(field.name, "must have at most %d bytes", longestText)
		}
	}
	if r.Scheme == HMAC && r.Tolerance != "" && r.TimestampHeader == "" {
		report("tolerance", "needs a timestamp_header")
	}
}

// checkValues reports values that cannot be.
func (r Rule) checkValues(report func(field, format string, args ...any)) {
	if r.Header != "" && !token.MatchString(r.Header) {
		report("header", "must be the name of a header")
	}
	if r.TimestampHeader != "" && !token.MatchString(r.TimestampHeader) {
		report("timestamp_header", "must be the name of a header")
	}
	if !slices.Contains([]string{"", "sha256", "sha512"}, r.Algorithm) {
		report("algorithm", "must be sha256 or sha512")
	}
	if !slices.Contains([]string{"", "hex", "base64"}, r.Encoding) {
		report("encoding", "must be hex or base64")
	}
	if strings.ContainsFunc(r.Prefix, func(c rune) bool { return c < ' ' || c > '~' }) {
		report("prefix", "must be printable ASCII")
	}
	if strings.Contains(r.Username, ":") {
		report("username", "must not contain a colon")
	}
	if r.Signed != "" {
		r.checkSigned(report)
	}
	if r.Tolerance != "" {
		switch d, err := duration.Parse(r.Tolerance); {
		case err != nil:
			report("tolerance", "%s", err)
		case d < time.Second || d > longestTolerance:
			report("tolerance", "must be between 1s and 24h")
		}
	}
}

func (r Rule) checkSigned(report func(field, format string, args ...any)) {
	if strings.Count(r.Signed, bodyMark) != 1 {
		report("signed", "must contain %s once: what is not signed can be forged", bodyMark)
	}
	switch n := strings.Count(r.Signed, timestampMark); {
	case n > 1:
		report("signed", "must contain %s at most once", timestampMark)
	case n == 1 && r.TimestampHeader == "":
		report("signed", "%s needs a timestamp_header", timestampMark)
	case n == 0 && r.TimestampHeader != "":
		report("signed", "must contain %s: a time that is not signed proves nothing", timestampMark)
	}
}

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
	return r.Scheme == Stripe || r.Scheme == Slack || r.Scheme == StandardWebhooks || r.TimestampHeader != ""
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
