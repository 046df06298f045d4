package egress

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// upload is the streamed body of a request. It reports when the body cannot be
// read or does not have its length, so that the server is not blamed for it.
type upload struct {
	from   io.ReadCloser
	length int64 // zero or less if it is unknown
	read   int64
	closed atomic.Bool
	failed atomic.Pointer[Error]
}

// newUpload returns the streamed body of a request, or nil if it has none.
func newUpload(r Request) *upload {
	if r.Upload == nil {
		return nil
	}
	return &upload{from: r.Upload, length: r.UploadLength}
}

// attach makes the upload the body of a request.
func (u *upload) attach(req *http.Request) {
	req.Body, req.GetBody, req.ContentLength = u, nil, -1
	if u.length > 0 {
		req.ContentLength = u.length
	}
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.read += int64(n)
	eof := errors.Is(err, io.EOF)
	switch {
	case u.closed.Load(): // the request is over, for another reason
		return n, err
	case err != nil && !eof:
		return n, u.fail(fail(InvalidRequest, err, "the body of the request could not be read"))
	case u.length > 0 && (u.read > u.length || eof && u.read < u.length):
		return n, u.fail(fail(InvalidRequest, nil, "the body of the request does not have the announced length of %d bytes", u.length))
	default:
		return n, err
	}
}

// fail records why the body could not be sent.
func (u *upload) fail(err *Error) error {
	u.failed.CompareAndSwap(nil, err)
	return err
}

// failure returns why the body could not be sent, or nil.
func (u *upload) failure() *Error {
	if u == nil {
		return nil
	}
	return u.failed.Load()
}

// Close implements io.Closer. It ends a read in progress.
func (u *upload) Close() error {
	if u.closed.Swap(true) {
		return nil
	}
	return u.from.Close()
}

// close closes the body of a request, if it has one. The transport does the same
// for a body that it has sent, but not for one that it waits for.
func (u *upload) close() {
	if u != nil {
		_ = u.Close() // the request is over
	}
}
