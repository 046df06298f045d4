package oidc

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"

	"github.com/stepmill/stepmill/internal/egress"
)

// maxResponse bounds the body of a response, far above what providers send.
const maxResponse = 1 << 20

// NewHTTPClient returns an HTTP client for the provider, with the limits of the
// package egress. The operator chose the provider, so it may have a private
// address, but not one of the service's own addresses.
func NewHTTPClient(userAgent string, own func() []netip.AddrPort) (client *http.Client, closed func()) {
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	outbound := egress.New(egress.Config{Policy: egress.Policy{Allow: everywhere}, UserAgent: userAgent, Own: own})
	return &http.Client{
		Transport: transport{outbound},
		// A provider has no reason to redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, outbound.Close
}

type transport struct{ client *egress.Client }

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
	response, err := t.client.Do(r.Context(), egress.Request{
		Workspace: "oidc", Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: body, MaxBody: maxResponse,
	})
	if err != nil {
		return nil, err
	}
	response.Header.Del("Content-Encoding") // the body is decoded
	return &http.Response{
		Status: http.StatusText(response.Status), StatusCode: response.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: response.Header, Body: io.NopCloser(bytes.NewReader(response.Body)), ContentLength: int64(len(response.Body)), Request: r,
	}, nil
}
