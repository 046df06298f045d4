package egress

import (
	"net/http"
	"net/url"
	"strings"
)

// redirected is the request that an answer asks for, nil when it asks for none.
func (c *Client) redirected(req *http.Request, resp *http.Response, body []byte) (*http.Request, error) {
	if !isRedirect(resp.StatusCode) || resp.Header.Get("Location") == "" {
		return nil, nil
	}
	from := req.URL
	to, err := resp.Location()
	if err != nil {
		return nil, fail(InvalidResponse, nil, "%s redirects to a URL that is not valid", from.Hostname())
	}
	if err := c.dialer.guard.url(to); err != nil {
		return nil, err
	}
	if from.Scheme == "https" && to.Scheme == "http" {
		return nil, fail(Denied, nil, "%s redirects from https to http, which is not safe to follow", from.Hostname())
	}
	return readdress(req, to, resp.StatusCode, body)
}

// readdress changes the method and the body as net/http does. There is no
// Referer: it would carry the query along.
func readdress(req *http.Request, to *url.URL, status int, body []byte) (*http.Request, error) {
	header, method := req.Header.Clone(), req.Method
	if !sameHost(req.URL, to) {
		dropForeign(header)
	}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		body = nil
		for _, name := range []string{"Content-Encoding", "Content-Language", "Content-Location", "Content-Type"} {
			header.Del(name)
		}
		if method != http.MethodHead {
			method = http.MethodGet
		}
	}
	if req.ContentLength == 0 { // a body that was dropped does not come back
		body = nil
	}
	return compose(req.Context(), method, to, header, body)
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

// sameHost tells whether what one URL is told may be told to the other. The
// step from http to https on their usual ports stays on the same host.
func sameHost(a, b *url.URL) bool {
	name := func(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }
	return name(a) == name(b) && portOf(a) == portOf(b)
}

// portOf is empty for the port that the scheme stands for.
func portOf(u *url.URL) string {
	if usual := map[string]string{"http": "80", "https": "443"}; u.Port() == usual[u.Scheme] {
		return ""
	}
	return u.Port()
}

// dropForeign removes everything that could be meant for the first host only.
// Any header may hold a credential, so these are the ones that may stay.
func dropForeign(header http.Header) {
	for name := range header {
		switch name {
		case "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control", "Range", "User-Agent",
			"Content-Encoding", "Content-Language", "Content-Type":
		default:
			header.Del(name)
		}
	}
}
