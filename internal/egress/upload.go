package egress

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// upload is the streamed body of a request. It reports when the body cannot be
// read or does not have its length, so that the server is not blamed for it.
type upload struct {
	from   func() (io.ReadCloser, error)
	length int64 // zero or less if it is unknown
	failed atomic.Pointer[Error]

	mu     sync.Mutex
	over   bool
	bodies []*uploadBody // that are open
}

func newUpload(r Request) *upload {
	if r.Upload == nil {
		return nil
	}
	return &upload{from: r.Upload, length: r.UploadLength}
}

func (u *upload) attach(req *http.Request) (err error) {
	if req.Body, err = u.open(); err != nil {
		return err
	}
	req.GetBody, req.ContentLength = u.open, -1
	if u.length > 0 {
		req.ContentLength = u.length
	}
	return nil
}

func (u *upload) open() (io.ReadCloser, error) {
	from, err := u.from()
	if err != nil {
		return nil, u.fail(fail(InvalidRequest, err, "the body of the request could not be read"))
	}
	body := &uploadBody{of: u, from: from}
	u.mu.Lock()
	over := u.over
	u.bodies = append(u.bodies, body)
	u.mu.Unlock()
	if over {
		_ = body.Close() // nobody reads it
	}
	return body, nil
}

func (u *upload) fail(err *Error) error {
	u.failed.CompareAndSwap(nil, err)
	return err
}

func (u *upload) failure() *Error {
	if u == nil {
		return nil
	}
	return u.failed.Load()
}

// close closes the body of a request, if it has one. The transport does the same
// for a body that it has sent, but not for one that it waits for.
func (u *upload) close() {
	if u == nil {
		return
	}
	u.mu.Lock()
	u.over = true
	open := slices.Clone(u.bodies)
	u.mu.Unlock()
	for _, body := range open {
		_ = body.Close() // the request is over
	}
}

type uploadBody struct {
	of     *upload
	from   io.ReadCloser
	read   int64
	closed atomic.Bool
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.read += int64(n)
	eof, length := errors.Is(err, io.EOF), b.of.length
	switch {
	case b.closed.Load(): // the request is over, for another reason
		return n, err
	case err != nil && !eof:
		return n, b.of.fail(fail(InvalidRequest, err, "the body of the request could not be read"))
	case length > 0 && (b.read > length || eof && b.read < length):
		return n, b.of.fail(fail(InvalidRequest, nil, "the body of the request does not have the announced length of %d bytes", length))
	default:
		return n, err
	}
}

// Close implements io.Closer. It ends a read in progress.
func (b *uploadBody) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	b.of.mu.Lock()
	b.of.bodies = slices.DeleteFunc(b.of.bodies, func(other *uploadBody) bool { return other == b })
	b.of.mu.Unlock()
	return b.from.Close()
}
