package egress

import (
	"bufio"
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

// decodedBody reads a response body within its limits and decompresses it. The
// client decompresses itself because net/http limits neither the compressed nor
// the decompressed size.
type decodedBody struct {
	wire    *wireReader
	gzipped bool
	decoder io.Reader // nil before the first read
	limit   int64
	left    int64
}

// newDecodedBody returns the body of a response. The headers of the response then
// describe the decoded body.
func newDecodedBody(resp *http.Response, limit int64) *decodedBody {
	encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
	b := &decodedBody{
		wire:    &wireReader{from: resp.Body, left: limit + wireOverhead},
		gzipped: (encoding == "gzip" || encoding == "x-gzip") && resp.StatusCode != http.StatusPartialContent,
		limit:   limit, left: limit,
	}
	if b.gzipped && resp.Body != http.NoBody { // there is none after HEAD
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	}
	return b
}

// Read implements io.Reader. It returns errTooLong for the byte after the limit.
func (b *decodedBody) Read(p []byte) (int, error) {
	if b.decoder == nil {
		var err error
		if b.decoder, err = b.open(); err != nil {
			return 0, err
		}
	}
	n, err := b.decoder.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) > b.left {
		n, err = int(b.left), errTooLong
	}
	b.left -= int64(n)
	return n, err
}

func (b *decodedBody) open() (io.Reader, error) {
	if !b.gzipped {
		return b.wire, nil
	}
	buffered := bufio.NewReader(b.wire)
	if _, err := buffered.Peek(1); err != nil {
		return nil, err // an empty body is valid
	}
	return gzip.NewReader(buffered)
}

var errTooLong = errors.New("the body is too long")

// wireReader reads a body as it was sent. It returns errTooLong after a number of
// bytes, and records EOF.
type wireReader struct {
	from   io.Reader
	left   int64
	sawEOF bool
	stall  *stallTimer // nil: reads may take any time
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, errTooLong
	}
	if w.stall != nil {
		w.stall.start()
		defer w.stall.stop()
	}
	n, err := w.from.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	w.sawEOF = w.sawEOF || errors.Is(err, io.EOF)
	return n, err
}
