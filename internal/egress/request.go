package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Request is an outbound HTTP request.
type Request struct {
	// Workspace is the workspace that makes the request. Workspaces never share
	// connections.
	Workspace string
	Method    string // GET if empty
	URL       string
	// Header is sent without headers of the connection, such as Upgrade. Setting
	// Host is an error.
	Header http.Header
	Body   []byte
	// Credential is added to the request, and to its redirects as far as it allows
	// them. A request to a host that it does not allow is an error.
	Credential Credential
	// Upload opens the body of the request, which is streamed in place of Body. It is
	// opened again to sign it, or to send it again after a redirect. Each reader is
	// closed when it was read or the request is over; Close must end a Read in progress.
	Upload func() (io.ReadCloser, error)
	// UploadLength is the length of Upload in bytes. If it is zero, the length is
	// unknown and the body is sent in chunks. Another length than announced is an
	// error, unless the server has responded before it is noticed.
	UploadLength int64
	// FollowRedirects follows up to Limits.Redirects redirects. Otherwise Do
	// returns the redirect as the response.
	FollowRedirects bool
	// MaxBody bounds the decoded response body in bytes, 1 MiB if zero. A longer
	// body is an error, or is cut if Truncate is set.
	MaxBody  int64
	Truncate bool
	// Timeout bounds the whole request, with Stream only the time until the headers
	// of the response arrive. The context applies in addition. If neither has a
	// limit, Limits.Total applies.
	Timeout time.Duration
	// Stall bounds how long a Read of a Stream waits for a byte from the server;
	// Limits.Stall if zero.
	Stall time.Duration
}

// prepare builds the request to send, or returns an error if it is not valid.
func (c *Client) prepare(ctx context.Context, r Request, up *upload) (*http.Request, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fail(InvalidRequest, nil, "the URL is not valid") // the cause would quote the URL
	}
	if err := c.dialer.guard.checkURL(u); err != nil {
		return nil, err
	}
	if err := checkCredential(u, r.Credential); err != nil {
		return nil, err
	}
	method := cmp.Or(r.Method, http.MethodGet)
	if !isToken(method) || method == http.MethodConnect {
		return nil, fail(InvalidRequest, nil, "%q is not an allowed HTTP method", method)
	}
	header, err := allowedHeaders(r.Header)
	if err != nil {
		return nil, err
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", c.userAgent)
	}
	// A part of a compressed response cannot be decompressed.
	if header["Accept-Encoding"] == nil && header["Range"] == nil {
		header.Set("Accept-Encoding", "gzip")
	}
	req, err := newHTTPRequest(ctx, method, u, header, r.Body)
	if err == nil && up != nil {
		err = up.attach(req)
	}
	return req, err
}

func newHTTPRequest(ctx context.Context, method string, u *url.URL, header http.Header, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fail(InvalidRequest, nil, "the URL is not valid")
	}
	req.Header = header
	return req, nil
}

// allowedHeaders copies the headers that a user may set. It leaves out headers of
// the connection, which the client sets itself.
func allowedHeaders(given http.Header) (http.Header, error) {
	out := make(http.Header, len(given)+2)
	for name, values := range given {
		if !isToken(name) {
			// Not quoted: the name may contain a whole header by mistake.
			return nil, fail(InvalidRequest, nil, "the name of a header is empty or contains invalid characters")
		}
		name = http.CanonicalHeaderKey(name)
		if name == "Host" {
			return nil, fail(InvalidRequest, nil, "the header Host cannot be set: it is taken from the URL")
		}
		for _, value := range values {
			if !isFieldValue(value) {
				return nil, fail(InvalidRequest, nil, "the value of the header %s contains a line break or another control character", name)
			}
		}
		if !isConnectionHeader(name) {
			out[name] = append(out[name], values...)
		}
	}
	return out, nil
}

// CheckHeader reports why a request cannot have a header that somebody has chosen, in
// words that follow its name. It returns nil if it can.
func CheckHeader(name string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name):
		return errors.New("is not the name of a header")
	case canonical == "Host":
		return errors.New("cannot be set: it is taken from the URL")
	case isConnectionHeader(canonical):
		return errors.New("cannot be set: it is about the connection to the server, not about the request")
	}
	return nil
}

func isConnectionHeader(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Expect", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	default:
		return strings.HasPrefix(name, "Proxy-")
	}
}

// isToken reports whether text is a token of RFC 9110, as header names and methods are.
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
