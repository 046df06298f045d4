package oidc

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"

	"github.com/stepmill/stepmill/internal/egress"
)

// maxAnswer is far more than a provider has to say.
const maxAnswer = 1 << 20

// Outside is an HTTP client for the provider: through the border that all calls
// of the service go through, with its limits. The operator named the provider,
// so it may be at a private address, but never at one of the service's own.
func Outside(userAgent string, own func() []netip.AddrPort) (client *http.Client, closed func()) {
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	border := egress.New(egress.Config{Policy: egress.Policy{Allow: everywhere}, UserAgent: userAgent, Own: own})
	return &http.Client{
		Transport: transport{border},
		// A provider answers itself; what it sends elsewhere is not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, border.Close
}

// transport makes calls through the border.
type transport struct{ border *egress.Client }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if closing := r.Body.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, err
		}
	}
	answer, err := t.border.Do(r.Context(), egress.Request{
		Workspace: "oidc", Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: body, MaxBody: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	answer.Header.Del("Content-Encoding") // the body is decoded
	return &http.Response{
		Status: http.StatusText(answer.Status), StatusCode: answer.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header, Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)), Request: r,
	}, nil
}
