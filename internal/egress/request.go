package egress

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Request is one call to the outside.
type Request struct {
	// Workspace is on whose behalf the call is made. Connections are never
	// shared between workspaces.
	Workspace string
	Method    string // GET when empty
	URL       string
	// Header is sent along, but for what belongs to the connection. Host is
	// refused.
	Header http.Header
	Body   []byte
	// FollowRedirects follows up to five. Without it a redirect is an answer
	// like any other.
	FollowRedirects bool
	// MaxBody is how many bytes of the decoded answer are taken, 1 MiB when
	// zero. A longer answer is a failure, unless Truncate cuts it.
	MaxBody  int64
	Truncate bool
	// Timeout limits the whole call, beside the context. A call without any
	// limit gets one of 60 s.
	Timeout time.Duration
}

// prepare makes the request that is sent, or says what is wrong with it.
func (c *Client) prepare(ctx context.Context, r Request) (*http.Request, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fail(InvalidRequest, nil, "the URL is not valid") // the cause would quote it
	}
	if err := c.dialer.guard.url(u); err != nil {
		return nil, err
	}
	method := cmp.Or(r.Method, http.MethodGet)
	if !isToken(method) || method == http.MethodConnect {
		return nil, fail(InvalidRequest, nil, "%q is not a method that can be called", method)
	}
	header, err := headers(r.Header)
	if err != nil {
		return nil, err
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", c.userAgent)
	}
	// A part of a compressed answer cannot be decoded.
	if header["Accept-Encoding"] == nil && header["Range"] == nil {
		header.Set("Accept-Encoding", "gzip")
	}
	return compose(ctx, method, u, header, r.Body)
}

func compose(ctx context.Context, method string, u *url.URL, header http.Header, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fail(InvalidRequest, nil, "the URL is not valid")
	}
	req.Header = header
	return req, nil
}

// headers copies what a user may set. What belongs to the connection is left
// out: the client says that itself.
func headers(given http.Header) (http.Header, error) {
	out := make(http.Header, len(given)+2)
	for name, values := range given {
		if !isToken(name) {
			// Not quoted: a whole header may have got into the name.
			return nil, fail(InvalidRequest, nil, "the name of a header is empty or has characters that names cannot have")
		}
		name = http.CanonicalHeaderKey(name)
		if name == "Host" {
			return nil, fail(InvalidRequest, nil, "the header Host cannot be set: it follows from the URL")
		}
		for _, value := range values {
			if !isFieldValue(value) {
				return nil, fail(InvalidRequest, nil, "the value of the header %s has a line break or another control character", name)
			}
		}
		if !isConnectionHeader(name) {
			out[name] = append(out[name], values...)
		}
	}
	return out, nil
}

func isConnectionHeader(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Expect", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	default:
		return strings.HasPrefix(name, "Proxy-")
	}
}

// isToken tells what RFC 9110 calls a token: names of headers and methods.
func isToken(text string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		isAlphanumeric := '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !isAlphanumeric && !strings.ContainsRune(others, r)
	})
}

func isFieldValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
