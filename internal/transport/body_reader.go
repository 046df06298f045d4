package transport

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// A client must send each block of a body within blockTime, which is 1 KiB per
// second. This lets slow mobile connections through, but not a client that stalls.
const (
	blockBytes = 10 << 10
	blockTime  = 10 * time.Second
	// maxBodyTime limits how long a client may take for the whole body.
	maxBodyTime = 5 * time.Minute
	// responseTime is the write timeout, which starts again after a slow body.
	responseTime = time.Minute
)

// bodyReader is the body of a request. Reading it requires a minimum rate.
type bodyReader struct {
	io.ReadCloser
	conn *http.ResponseController
	// length is the declared length, or -1.
	length int64
	begun  time.Time // of the first read
	block  int       // received of the current block
	err    error     // of the last read; io.EOF: all of it was read
	// patient is set if the whole body may take any amount of time. waited is how long
	// reads of the current block have taken.
	patient bool
	waited  time.Duration
}

// trackBody returns the request with a body that is a *bodyReader, which is nil
// if there is no body. It leaves r unchanged: net/http still refers to it.
func trackBody(w http.ResponseWriter, r *http.Request) (*http.Request, *bodyReader) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	body := &bodyReader{ReadCloser: r.Body, conn: http.NewResponseController(w), length: r.ContentLength}
	r = r.WithContext(r.Context())
	r.Body = body
	return r, body
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.patient {
		defer b.limitRead()()
	} else if now := clock.Monotonic(); b.begun.IsZero() || b.block >= blockBytes {
		if b.begun.IsZero() {
			b.begun = now
		}
		b.block = 0
		b.setDeadline(earlier(now.Add(blockTime), b.begun.Add(maxBodyTime)))
	}
	n, err := b.ReadCloser.Read(p)
	b.block += n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = b.tooSlow().Because(err)
	}
	if b.err = err; err != nil {
		b.restartWriteTimeout()
	}
	return n, err
}

func (b *bodyReader) tooSlow() *fault.Error {
	rate := blockBytes / int(blockTime/time.Second)
	if b.patient {
		return fault.New(fault.InvalidRequest, "the body arrived too slowly: send at least %d bytes per second", rate)
	}
	return fault.New(fault.InvalidRequest, "the body arrived too slowly: send at least %d bytes per second, and all of it within %s", rate, maxBodyTime)
}

// restartWriteTimeout gives the response its full time after a body that took long
// to arrive.
func (b *bodyReader) restartWriteTimeout() {
	if now := clock.Monotonic(); now.Sub(b.begun) > blockTime/2 {
		_ = b.conn.SetWriteDeadline(now.Add(responseTime))
	}
}

// setDeadline limits how long reads wait. A connection without deadlines, as in
// tests, has none to set.
func (b *bodyReader) setDeadline(at time.Time) { _ = b.conn.SetReadDeadline(at) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// firstBuffer is the size of the first buffer of a body of unknown length.
const firstBuffer = 4 << 10

// readBody reads the body of a request up to limit. It reserves memory as the body
// arrives: at most twice what has been received.
func readBody(r *http.Request, limit int64, reserved *Reservation, tooLarge error) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	most := limit
	if r.ContentLength >= 0 {
		most = r.ContentLength
	}
	buffer := make([]byte, 0, min(most, firstBuffer))
	for {
		var probe [1]byte // shows whether there is more than the most that is expected
		into := buffer[len(buffer):cap(buffer)]
		switch {
		case len(into) > 0:
		case int64(len(buffer)) >= most:
			into = probe[:]
		default:
			size := min(most, int64(2*cap(buffer)))
			if err := reserved.Grow(size); err != nil {
				return nil, err
			}
			buffer = append(make([]byte, 0, size), buffer...)
			into = buffer[len(buffer):cap(buffer)]
		}
		n, err := r.Body.Read(into)
		if int64(len(buffer)+n) > most {
			return nil, tooLarge
		}
		buffer = buffer[:len(buffer)+n]
		if err != nil {
			return buffer, bodyError(err)
		}
	}
}

// bodyError returns the error for a body that could not be read, or nil at its end.
func bodyError(err error) error {
	if _, ok := fault.As(err); ok {
		return err
	}
	if !errors.Is(err, io.EOF) {
		return fault.New(fault.InvalidRequest, "the body could not be read completely").Because(err)
	}
	return nil
}
