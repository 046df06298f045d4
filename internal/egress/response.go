package egress

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	defaultMaxBody = 1 << 20
	// wireOverhead is how many bytes a compressed body may exceed the limit by.
	wireOverhead = 64 << 10
)

// Response is an HTTP response with any status.
type Response struct {
	Status int
	Header http.Header
	// Body is decompressed if it was sent with gzip.
	Body []byte
	// Truncated means that the body was longer than MaxBody.
	Truncated bool
	// URL is the URL of the response, after redirects.
	URL      string
	Duration time.Duration
}

// RetryAfter returns the delay that the header Retry-After asks for, in seconds
// or as a date. It returns zero if the header is absent, invalid or in the past.
func (r *Response) RetryAfter(now time.Time) time.Duration {
	text := r.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 1<<20)) * time.Second
	}
	if moment, err := http.ParseTime(text); err == nil && moment.After(now) {
		return moment.Sub(now)
	}
	return 0
}

// readResponse reads the response up to its limit.
func readResponse(resp *http.Response, r Request) (*Response, error) {
	defer resp.Body.Close()
	host, ctx := resp.Request.URL.Hostname(), resp.Request.Context()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, fail(InvalidResponse, nil, "%s tried to switch to another protocol", host)
	}
	limit := cmp.Or(max(r.MaxBody, 0), defaultMaxBody)
	wire := &byteLimitReader{from: resp.Body, left: limit + wireOverhead}
	body, err := readDecoded(resp, wire, limit+1)
	tooLong := int64(len(body)) > limit || errors.Is(err, errTooLong)
	switch {
	case tooLong && !r.Truncate:
		return nil, fail(ResponseTooLarge, nil, "the response of %s is longer than %d bytes", host, limit)
	case tooLong:
		body = body[:min(int64(len(body)), limit)]
	case err != nil && wire.sawEOF && ctx.Err() == nil:
		return nil, fail(InvalidResponse, err, "the response of %s cannot be decompressed", host)
	case err != nil:
		return nil, classifyError(ctx, host, err)
	}
	return &Response{
		Status:    resp.StatusCode,
		Header:    resp.Header,
		Body:      body,
		Truncated: tooLong,
		URL:       resp.Request.URL.String(),
	}, nil
}

// readDecoded reads up to limit bytes of the decompressed body. The client
// decompresses itself because net/http limits neither the compressed nor the
// decompressed size.
func readDecoded(resp *http.Response, wire io.Reader, limit int64) ([]byte, error) {
	encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
	if encoding != "gzip" && encoding != "x-gzip" || resp.StatusCode == http.StatusPartialContent {
		return io.ReadAll(io.LimitReader(wire, limit))
	}
	buffered := bufio.NewReader(wire)
	if _, err := buffered.Peek(1); err != nil {
		if errors.Is(err, io.EOF) { // as after HEAD
			return nil, nil
		}
		return nil, err
	}
	decoder, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	return io.ReadAll(io.LimitReader(decoder, limit))
}

var errTooLong = errors.New("the body is too long")

// byteLimitReader returns errTooLong after a number of bytes. It records EOF.
type byteLimitReader struct {
	from   io.Reader
	left   int64
	sawEOF bool
}

func (m *byteLimitReader) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooLong
	}
	n, err := m.from.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	m.sawEOF = m.sawEOF || errors.Is(err, io.EOF)
	return n, err
}
