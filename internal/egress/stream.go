package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/txn"
)

// ErrStalled is the cause of the error of a stream whose server stopped sending.
var ErrStalled = errors.New("the response stalled")

// Stream is an HTTP response with any status, whose body is read as it arrives.
// Only one goroutine may read; Close may be called by another.
type Stream struct {
	Status int
	Header http.Header
	// URL is the URL of the response, after redirects.
	URL string
	// Decoded reports whether the body was sent compressed.
	Decoded bool

	host      string
	upload    *upload
	ctx       context.Context // of the request
	body      *decodedBody
	truncate  bool
	truncated bool
	err       error // of the last Read
	closed    atomic.Bool
	end       func(error) // releases everything, once
}

// Stream sends the request and returns its response as soon as the headers have
// arrived. Request.Timeout bounds the time until then. After that, the context and
// Request.Stall apply. The caller must read the stream to its end or close it. An
// error is always an *Error, also those of Read.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	txn.MustBeOutside(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	timeout, stop := c.headerTimeout(ctx, r.Timeout), func() bool { return true }
	if timeout > 0 {
		stop = time.AfterFunc(timeout, func() { cancel(errNoResponse) }).Stop
	}
	s, err := c.open(ctx, r, func() { cancel(nil) })
	if err == nil && !stop() { // the headers came too late: the context is cancelled
		err = s.classify(errNoResponse)
		s.end(err)
	}
	stop()
	if err != nil {
		return nil, err
	}
	s.body.wire.stall = newStallTimer(cmp.Or(max(r.Stall, 0), c.limits.Stall), cancel)
	return s, nil
}

// headerTimeout returns how long the headers of a streamed response may take; zero
// leaves that to the context.
func (c *Client) headerTimeout(ctx context.Context, timeout time.Duration) time.Duration {
	if _, limited := ctx.Deadline(); timeout <= 0 && limited {
		return 0
	}
	return cmp.Or(max(timeout, 0), c.limits.Total)
}

// open sends the request and returns its response. Everything that it acquires is
// released once: when it fails, or when the stream ends or the context does. Then
// it also calls cancel, which cancels the context.
func (c *Client) open(ctx context.Context, r Request, cancel context.CancelFunc) (_ *Stream, err error) {
	up := newUpload(r)
	req, err := c.prepare(ctx, r, up)
	var through route
	if err == nil {
		through, err = c.acquireRoute(r)
	}
	if err != nil {
		up.close()
		cancel()
		c.count(err)
		return nil, err
	}
	release := sync.OnceFunc(func() {
		c.releaseRoute(through)
		cancel()
		up.close()
	})
	// A cancelled request is released at once, even if nobody reads or closes the
	// stream. The transport would also wait for an upload that has stopped. It closes
	// the connection itself.
	unregister := context.AfterFunc(ctx, release)
	resp, err := c.send(through, req, r) //nolint:bodyclose // Stream.end closes it
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		err = fail(InvalidResponse, nil, "%s tried to switch to another protocol", req.URL.Hostname())
		resp.Body.Close()
	}
	if err != nil {
		if failed := up.failure(); failed != nil {
			err = failed
		}
		unregister()
		release()
		c.count(err)
		return nil, err
	}
	var once sync.Once
	body := newDecodedBody(resp, cmp.Or(max(r.MaxBody, 0), defaultMaxBody))
	return &Stream{
		Status: resp.StatusCode, Header: resp.Header, URL: resp.Request.URL.String(), Decoded: body.gzipped,
		host: resp.Request.URL.Hostname(), upload: up, ctx: ctx, truncate: r.Truncate, body: body,
		end: func(err error) {
			once.Do(func() {
				unregister()
				resp.Body.Close()
				release()
				c.count(err)
			})
		},
	}, nil
}

// NewStream returns a response that comes from no server, for what stands in for a
// [Client].
func NewStream(status int, header http.Header, target string, body []byte) *Stream {
	response := &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body))}
	return &Stream{
		Status: status, Header: header, URL: target, ctx: context.Background(), //nolint:contextcheck // nothing can end it
		body: newDecodedBody(response, int64(len(body))), end: func(error) {},
	}
}

// Read implements io.Reader. It decompresses a body that was sent with gzip.
func (s *Stream) Read(p []byte) (int, error) {
	if s.err != nil || len(p) == 0 {
		return 0, s.err
	}
	if s.closed.Load() {
		return 0, s.classify(nil)
	}
	n, err := s.body.Read(p)
	switch {
	case err == nil:
	case err == io.EOF: //nolint:errorlint // a wrapped EOF is not the end of the body
		s.err = io.EOF
		s.end(nil)
	case errors.Is(err, errTooLong) && s.truncate:
		s.truncated, s.err = true, io.EOF
		s.end(nil)
	default:
		s.err = s.classify(err)
		s.end(s.err)
	}
	return n, s.err
}

// classify turns an error of the body into an *Error.
func (s *Stream) classify(err error) error {
	failed := s.upload.failure()
	switch {
	case s.closed.Load():
		return fail(Cancelled, nil, "the response of %s was closed", s.host)
	case failed != nil:
		return failed
	case s.body.wire.stall != nil && errors.Is(context.Cause(s.ctx), ErrStalled):
		return fail(TimedOut, ErrStalled, "%s stopped sending: nothing arrived for %s", s.host, s.body.wire.stall.limit)
	case errors.Is(err, errTooLong):
		return fail(ResponseTooLarge, nil, "the response of %s is longer than %d bytes", s.host, s.body.limit)
	case s.body.wire.sawEOF && s.ctx.Err() == nil:
		return fail(InvalidResponse, err, "the response of %s cannot be decompressed", s.host)
	default:
		return classifyError(s.ctx, s.host, err)
	}
}

// Truncated reports whether Truncate has cut the body. It is known at the end of
// the stream.
func (s *Stream) Truncated() bool { return s.truncated }

// Close ends the stream. A Read in progress fails. It always returns nil.
func (s *Stream) Close() error {
	s.closed.Store(true)
	s.end(nil)
	return nil
}

// stallTimer cancels a request when one read takes too long. The time that a
// caller spends between reads does not count.
type stallTimer struct {
	limit time.Duration
	timer *time.Timer
}

func newStallTimer(limit time.Duration, cancel context.CancelCauseFunc) *stallTimer {
	timer := time.AfterFunc(limit, func() { cancel(ErrStalled) })
	timer.Stop()
	return &stallTimer{limit, timer}
}

func (s *stallTimer) start() { s.timer.Reset(s.limit) }

func (s *stallTimer) stop() { s.timer.Stop() }
