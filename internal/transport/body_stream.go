package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// BodyStream is a body that is not read into memory: the bytes of a file. It may take
// any amount of time, but must arrive at the minimum rate.
type BodyStream struct {
	source io.Reader
	Length int64  // -1: unknown
	Media  string // as the client says
	conn   *http.ResponseController
}

// Read implements io.Reader. Its errors are for the client.
func (b *BodyStream) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	return n, bodyError(err)
}

// ExtendResponse gives the response its full time after slow work.
func (b *BodyStream) ExtendResponse() {
	if b.conn != nil {
		_ = b.conn.SetWriteDeadline(clock.Monotonic().Add(responseTime))
	}
}

// openStream prepares a body that the handler reads itself.
func (r *request) openStream() error {
	if encoding := r.http.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.UnsupportedMediaType, "the body must not be compressed (Content-Encoding: %s)", Clean(encoding))
	}
	if len(r.http.Header.Values("Idempotency-Key")) > 0 {
		return Parameter("Idempotency-Key", "is not supported for uploads: an upload that is sent twice expires, and equal bytes are stored once")
	}
	r.stream = &BodyStream{source: http.NoBody, Media: r.http.Header.Get("Content-Type")}
	if body, ok := r.http.Body.(*bodyReader); ok {
		body.patient = true
		r.stream.source, r.stream.Length, r.stream.conn = body, r.http.ContentLength, body.conn
	}
	return nil
}

// limitRead sets the deadline of the next read of a patient body: each block must
// arrive within blockTime, not counting the time in which nobody reads.
func (b *bodyReader) limitRead() (done func()) {
	if b.block >= blockBytes {
		b.block, b.waited = 0, 0
	}
	began := clock.Monotonic()
	if b.begun.IsZero() {
		b.begun = began
	}
	b.setDeadline(began.Add(max(blockTime-b.waited, time.Millisecond)))
	return func() { b.waited += time.Since(began) }
}
