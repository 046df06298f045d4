package transfer

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
)

// KeyHeader is the header with which a receiver recognizes a repeated request.
const KeyHeader = "Idempotency-Key"

// HTTPError is the code of a response whose status counts as a failure.
const HTTPError = "http_error"

// IsURL reports whether a text is an absolute http or https URL.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Complete adds to a request what the requests of all steps have: the headers that the
// step gives, its idempotency key, the depth of the run and the credential of the
// connection.
func Complete(call *egress.Request, req action.Request) error {
	given, _ := req.Input["headers"].(map[string]any)
	for name, value := range given {
		text, err := Scalar(value)
		if err != nil {
			return fmt.Errorf("headers/%s: %w", name, err)
		}
		call.Header.Set(name, text)
	}
	if call.Header.Get(KeyHeader) == "" {
		call.Header.Set(KeyHeader, req.IdempotencyKey)
	}
	if req.Connection != nil {
		call.Credential = req.Connection.Credential
	}
	// A receiver that starts a run passes the depth on, which ends loops.
	call.Header.Set(action.DepthHeader, strconv.Itoa(req.Run.Depth))
	return nil
}

// IsTransient reports whether the same request may succeed later after a response with
// this status.
func IsTransient(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooEarly ||
		status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// StatusFailure returns the failure of a step that got a response whose status counts as
// a failure.
func StatusFailure(call egress.Request, resp *egress.Response, output map[string]any, now time.Time) *action.Failure {
	failure := &action.Failure{
		Code: HTTPError, Output: output,
		Message: strings.TrimSpace(fmt.Sprintf("%s returned %d %s", WithoutQuery(call.URL), resp.Status, http.StatusText(resp.Status))),
	}
	if IsTransient(resp.Status) {
		failure.Retryable = true
		failure.RetryAfter = resp.RetryAfter(now)
	}
	return failure
}

// WithoutQuery returns a URL without its query, which may contain tokens.
func WithoutQuery(text string) string {
	before, _, _ := strings.Cut(text, "?")
	return before
}

// ClientCodes returns the error codes of requests that get no usable response.
func ClientCodes() []action.Code {
	return []action.Code{
		{Name: string(egress.Denied), Meaning: "Requests to this address are not allowed."},
		{Name: string(egress.ConnectionFailed), Meaning: "The server could not be reached, or the connection was closed early. The request is retried."},
		{Name: string(egress.TimedOut), Meaning: "The server did not respond within the timeout of the step, or did not accept a connection within 10 seconds. The request is retried."},
		{Name: string(egress.Cancelled), Meaning: "The request was aborted because the run was cancelled."},
		{Name: string(egress.TLSFailed), Meaning: "The TLS connection failed, for example because the certificate of the server is not valid."},
		{Name: string(egress.ResponseTooLarge), Meaning: "The response is larger than 1 MiB."},
		{Name: string(egress.TooManyRedirects), Meaning: "The server redirected more than five times."},
		{Name: string(egress.InvalidResponse), Meaning: "The response is not valid HTTP or cannot be decompressed."},
		{Name: string(egress.InvalidRequest), Meaning: "The request cannot be sent, for example because a header contains a line break."},
	}
}
