package connection

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
)

// checkIssuer checks which authorization server has sent the browser back (RFC 9207): the code
// of one server must not be sent to the token endpoint of another. If the issuer of a custom
// connection is unknown, its host must be that of authorize_url.
func checkIssuer(c *opened, callback url.Values) error {
	issuer := callback.Get("iss")
	switch {
	case issuer == "" && !c.auth.IssRequired, issuer != "" && issuer == c.auth.Issuer:
		return nil
	case issuer == "":
		return fault.New(fault.ConsentRefused, "the browser was sent back without the name of the authorization server (iss), which %s always sends: connect again", c.auth.Issuer)
	case c.auth.Issuer != "":
		return fault.New(fault.ConsentRefused, "the browser was sent back by %q instead of %s: connect again", shorten(issuer), c.auth.Issuer)
	case c.Integration != "": // the endpoints of a manifest belong together
		return nil
	}
	from, err := url.Parse(issuer)
	asked, askedErr := c.auth.AuthorizeURL.URL(c.env())
	if err != nil || askedErr != nil || from.Scheme != asked.Scheme || from.Host != asked.Host {
		return fault.New(fault.ConsentRefused, "the browser was sent back by %q, which is not where authorize_url is. If it belongs to the same provider, set issuer in the definition to it, and connect again", shorten(issuer))
	}
	return nil
}

// refused returns the error of a consent that the service has refused with a code of RFC 6749,
// section 4.1.2.1, or with one of its own.
func refused(code, description string) error {
	advice := "check the OAuth app at the service, its redirect URL and its scopes, and connect again"
	switch code {
	case "access_denied", "user_cancelled_login", "user_cancelled_authorize":
		advice = "connect again and allow it; some services require an administrator to allow the app first"
	case "server_error", "temporarily_unavailable":
		advice = "the service has a problem; connect again later"
	case "invalid_scope":
		advice = "the OAuth app at the service may not ask for these scopes; allow them there and connect again"
	case "unauthorized_client", "unsupported_response_type":
		advice = "allow the authorization code grant in the OAuth app at the service, and connect again"
	}
	return fault.New(fault.ConsentRefused, "the access was not allowed at the service: %s. To fix it: %s", describeError(code, description), advice)
}

func consentExpired() error {
	return fault.New(fault.ConsentExpired,
		"this consent can no longer be completed: it took longer than 10 minutes, was completed before, or was started by another person or in another workspace. Connect again")
}

// describeError describes an error that a service reported.
func describeError(code, description string) string {
	if description == "" {
		return shorten(code)
	}
	return shorten(code) + " (" + shorten(description) + ")"
}

// maxReported is how much of a text of a service is shown.
const maxReported = 300

// shorten returns the beginning of a text on one line.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if runes := []rune(text); len(runes) > maxReported {
		text = string(runes[:maxReported]) + "…"
	}
	return text
}

// asksAgain reports whether to poll again after an error, and by how much to increase the
// interval.
func asksAgain(err error) (longer time.Duration, again bool) {
	if failure, ok := errors.AsType[*tokenError](err); ok {
		isTemporary := failure.status >= http.StatusInternalServerError || failure.status == http.StatusTooManyRequests
		switch {
		case failure.code == "authorization_pending":
			return 0, true
		case failure.code == "slow_down" || failure.code == "" || isTemporary:
			return deviceInterval, true
		}
		return 0, false
	}
	failure, ok := errors.AsType[*egress.Error](err)
	return deviceInterval, ok && failure.Retryable
}

func deviceExpired() error {
	return fault.New(fault.ConsentExpired,
		"this code can no longer be used: nobody entered it in time, it was used before, or it was requested by another person or in another workspace. Connect again")
}

// deviceRefused returns the error of a consent on another device that the service has ended.
func deviceRefused(c *opened, err error) error {
	failure, ok := errors.AsType[*tokenError](err)
	switch {
	case ok && failure.code == "expired_token":
		return deviceExpired()
	case ok && failure.code == "access_denied":
		return refused(failure.code, failure.description)
	}
	return fault.New(fault.ConsentRefused, "%v. Check the client ID and %s and the token URL, and connect again", err, c.clientCredential())
}
