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
	// wireOverhead is how much longer than its content a compressed body may be.
	wireOverhead = 64 << 10
)

// Response is an answer from the outside, whatever its status.
type Response struct {
	Status int
	Header http.Header
	// Body is decoded when it came compressed by gzip.
	Body []byte
	// Truncated tells that there was more than MaxBody.
	Truncated bool
	// URL is where the answer came from, after redirects.
	URL      string
	Duration time.Duration
}

// RetryAfter is how long the answer asks to wait: seconds or a date; anything
// else, or the past, is nothing.
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

// receive reads the answer, as far as it may go.
func receive(resp *http.Response, r Request) (*Response, error) {
	defer resp.Body.Close()
	host, ctx := resp.Request.URL.Hostname(), resp.Request.Context()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, fail(InvalidResponse, nil, "%s wants to speak another protocol than HTTP", host)
	}
	limit := cmp.Or(max(r.MaxBody, 0), defaultMaxBody)
	wire := &meter{from: resp.Body, left: limit + wireOverhead}
	body, err := readDecoded(resp, wire, limit+1)
	tooLong := int64(len(body)) > limit || errors.Is(err, errTooLong)
	switch {
	case tooLong && !r.Truncate:
		return nil, fail(ResponseTooLarge, nil, "the answer of %s is longer than %d bytes", host, limit)
	case tooLong:
		body = body[:min(int64(len(body)), limit)]
	case err != nil && wire.ended && ctx.Err() == nil:
		return nil, fail(InvalidResponse, err, "the answer of %s cannot be decompressed", host)
	case err != nil:
		return nil, explain(ctx, host, err)
	}
	return &Response{
		Status:    resp.StatusCode,
		Header:    resp.Header,
		Body:      body,
		Truncated: tooLong,
		URL:       resp.Request.URL.String(),
	}, nil
}

// readDecoded reads up to limit bytes of what the body says. The client
// decompresses by itself because net/http counts neither side.
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

// meter lets so many bytes pass. It remembers whether it has seen the end.
type meter struct {
	from  io.Reader
	left  int64
	ended bool
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errTooLong
	}
	n, err := m.from.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	m.ended = m.ended || errors.Is(err, io.EOF)
	return n, err
}
