package egress

import (
	"net/http"
	"net/url"
	"strings"
)

// redirectRequest returns the request for a redirect, or nil if resp is not one.
func (c *Client) redirectRequest(req *http.Request, resp *http.Response) (*http.Request, error) {
	if !isRedirect(resp.StatusCode) || resp.Header.Get("Location") == "" {
		return nil, nil
	}
	from := req.URL
	to, err := resp.Location()
	if err != nil {
		return nil, fail(InvalidResponse, nil, "%s redirects to an invalid URL", from.Hostname())
	}
	if err := c.dialer.guard.checkURL(to); err != nil {
		return nil, err
	}
	if from.Scheme == "https" && to.Scheme == "http" {
		return nil, fail(Denied, nil, "%s redirects from https to http, which is not secure", from.Hostname())
	}
	return newRedirect(req, to, resp.StatusCode)
}

// newRedirect changes the method and the body as net/http does. It sets no
// Referer, which would leak the query.
func newRedirect(req *http.Request, to *url.URL, status int) (*http.Request, error) {
	header, method := req.Header.Clone(), req.Method
	keepsBody := req.ContentLength != 0
	if !SameHost(req.URL, to) {
		dropUnsafeHeaders(header)
	}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		keepsBody = false
		for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Location", "Content-Type"} {
			header.Del(name)
		}
		if method != http.MethodHead {
			method = http.MethodGet
		}
	}
	next, err := newHTTPRequest(req.Context(), method, to, header, nil)
	if err != nil || !keepsBody {
		return next, err
	}
	next.GetBody, next.ContentLength = req.GetBody, req.ContentLength
	if next.Body, err = req.GetBody(); err != nil {
		return nil, fail(InvalidRequest, err, "the body of the request could not be read")
	}
	return next, nil
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	default:
		return false
	}
}

// SameHost reports whether credentials for one URL may be sent to the other. A
// redirect from http to https on the default ports stays on the same host.
func SameHost(a, b *url.URL) bool {
	name := func(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }
	return name(a) == name(b) && portOf(a) == portOf(b)
}

// portOf returns the port, or "" for the default port of the scheme.
func portOf(u *url.URL) string {
	if usual := map[string]string{"http": "80", "https": "443"}; u.Port() == usual[u.Scheme] {
		return ""
	}
	return u.Port()
}

// dropUnsafeHeaders removes headers that may be meant for the first host only.
// Any header may hold a credential, so it keeps only an allowlist.
func dropUnsafeHeaders(header http.Header) {
	for name := range header {
		switch name {
		case "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control", "Range", "User-Agent",
			"Content-Encoding", "Content-Language", "Content-Type":
		default:
			header.Del(name)
		}
	}
}
