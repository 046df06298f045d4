package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
)

// errStalled is the cause of a read that was given up.
var errStalled = errors.New("the bucket stopped sending")

// reader reads a part of an object. If the connection breaks, it asks for the rest.
type reader struct {
	store  *Store
	ctx    context.Context
	key    *string
	offset int64 // of the next byte
	rest   int64 // bytes to read at most

	body    io.ReadCloser           // nil if there is no open response
	request context.Context         // of the open response
	cancel  context.CancelCauseFunc // cancels request
	ended   bool
	retries int // since the last byte
}

// open asks for the rest of the range. At the end of the object it sets ended.
func (r *reader) open() error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	// The retries of the request are bounded; its body takes as long as it needs.
	timeout := time.AfterFunc(r.store.timings.Request, func() { cancel(errStalled) })
	out, err := r.store.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &r.store.bucket, Key: r.key, Range: aws.String(rangeHeader(r.offset, r.rest)),
	})
	timeout.Stop()
	switch {
	case err == nil && r.offset > 0 && !strings.HasPrefix(aws.ToString(out.ContentRange), fmt.Sprintf("bytes %d-", r.offset)):
		err = fmt.Errorf("open a blob: %w: the server does not support Range", blob.ErrDenied)
		_ = out.Body.Close()
	case isPastEnd(err):
		r.ended, err = true, nil
	case err == nil:
		r.body, r.request, r.cancel = out.Body, ctx, cancel
		return nil
	default:
		err = r.explain(ctx, err)
	}
	cancel(nil)
	return err
}

// explain is like the function, but tells the end of the caller's context from that
// of ours.
func (r *reader) explain(ctx context.Context, err error) error {
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return explain("read a blob", err)
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(p) > 0 && r.rest > 0 && !r.ended {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if r.body == nil {
			if err := r.open(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := r.readBody(p[:min(int64(len(p)), r.rest)])
		r.offset, r.rest = r.offset+int64(n), r.rest-int64(n)
		if n > 0 {
			r.retries = 0
			return n, nil // an error comes again with the next read
		}
		switch {
		case errors.Is(err, io.EOF):
			r.ended = true
		case err != nil:
			if err := r.retry(err); err != nil {
				return 0, err
			}
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, io.EOF
}

// readBody reads from the open response, unless it stalls.
func (r *reader) readBody(p []byte) (int, error) {
	stall := time.AfterFunc(r.store.timings.Stall, func() { r.cancel(errStalled) })
	n, err := r.body.Read(p)
	stall.Stop()
	if err != nil && errors.Is(context.Cause(r.request), errStalled) {
		err = errStalled
	}
	return n, err
}

// retry gives the open response up after an error, and pauses. It returns an error
// if that happened too often at this position.
func (r *reader) retry(err error) error {
	r.closeBody()
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if r.retries++; r.retries >= attempts {
		return unavailable(err)
	}
	pause := min(r.store.timings.Backoff, 100*time.Millisecond<<r.retries)
	if !clock.Sleep(r.ctx, pause/2+rand.N(pause/2+1)) {
		return r.ctx.Err()
	}
	return nil
}

func (r *reader) closeBody() {
	if r.body != nil {
		r.cancel(nil)
		_ = r.body.Close()
		r.body = nil
	}
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.closeBody()
	r.ended = true
	return nil
}
