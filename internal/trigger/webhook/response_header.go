package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/run"
)

const (
	maxHeaders     = 50
	maxHeaderValue = 4 << 10
)

// allowedHeaders lists the standard headers that a workflow may set. A response
// comes from the same origin as the dashboard and passes through the operator's
// proxy, so any header that browsers or proxies act on must not be here.
var allowedHeaders = []string{
	"cache-control", "content-disposition", "content-language", "content-type", "etag", "expires",
	"last-modified", "link", "location", "retry-after", "vary",
}

// reservedFamilies lists the prefixes of X- headers that proxies and browsers act
// on, or that Stepmill sends itself.
var reservedFamilies = []string{
	"x-accel-", "x-content-type-", "x-dns-", "x-forwarded-", "x-frame-", "x-lighttpd-", "x-permitted-", "x-ratelimit-",
	"x-real-", "x-reproxy-", "x-request-", "x-sendfile", "x-service-", "x-xss-",
}

func (r *Response) setHeaders(given map[string]any) error {
	if len(given) > maxHeaders {
		return fmt.Errorf("response/headers must have at most %d members", maxHeaders)
	}
	for name, value := range given {
		lower := strings.ToLower(name)
		if !headerName.MatchString(name) {
			return fmt.Errorf("response/headers: %q is not a valid header name", run.Clip(name, 100))
		}
		if !mayRespondWith(lower) {
			return fmt.Errorf("response/headers: a workflow cannot set %s; it can set %s, and headers that begin with X-",
				run.Clip(lower, 100), strings.Join(allowedHeaders, ", "))
		}
		text, ok := scalar(value)
		if !ok {
			return fmt.Errorf("response/headers/%s must be a string, a number or a boolean", lower)
		}
		if len(text) > maxHeaderValue || strings.ContainsFunc(text, unprintable) {
			return fmt.Errorf("response/headers/%s must be printable ASCII of at most %d characters", lower, maxHeaderValue)
		}
		if err := r.checkHeader(lower, text); err != nil {
			return err
		}
		r.Header[http.CanonicalHeaderKey(name)] = text
	}
	return nil
}

// mayRespondWith reports whether a workflow may set a header, given in lower case.
func mayRespondWith(name string) bool {
	if slices.Contains(allowedHeaders, name) {
		return true
	}
	return strings.HasPrefix(name, "x-") &&
		!slices.ContainsFunc(reservedFamilies, func(family string) bool { return strings.HasPrefix(name, family) })
}

// checkHeader checks headers that are allowed only in some responses.
func (r *Response) checkHeader(name, value string) error {
	switch {
	case name == "location" && (r.Status < 300 || r.Status > 399):
		return fmt.Errorf("response/headers/location needs a response/status from 300 to 399")
	case name == "link" && strings.Contains(strings.ToLower(value), "preload"):
		return fmt.Errorf("response/headers/link must not preload anything")
	}
	return nil
}
