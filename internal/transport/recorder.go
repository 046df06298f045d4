package transport

import (
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"
)

// recorder records the status and size of a response, for the log. A request
// whose handler does not return can be taken away from it with abandon.
type recorder struct {
	http.ResponseWriter
	body *bodyReader // of the request; nil if there is none
	// header holds the headers until the response starts; nil if the handler cannot
	// be abandoned, and sets them directly.
	header http.Header

	mu        sync.Mutex
	status    int
	bytes     int
	abandoned bool
}

var errAbandoned = errors.New("the request has already been responded to")

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header {
	if r.header != nil {
		return r.header
	}
	return r.ResponseWriter.Header()
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.start(status)
		r.body.limitDrain()
	}
	if !r.abandoned {
		r.ResponseWriter.WriteHeader(status)
	}
}

// start records the status. From then on, the request cannot be abandoned.
func (r *recorder) start(status int) {
	r.status = status
	if r.header != nil {
		maps.Copy(r.ResponseWriter.Header(), r.header)
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) {
	if err := r.begin(); err != nil {
		return 0, err
	}
	n, err := r.ResponseWriter.Write(data)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += n
	return n, err
}

// begin starts the response if it has not been started.
func (r *recorder) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		return errAbandoned
	}
	if r.status == 0 {
		r.start(http.StatusOK)
	}
	return nil
}

// FlushError sends what has been written, for http.ResponseController.
func (r *recorder) FlushError() error {
	if err := r.begin(); err != nil {
		return err
	}
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// SetWriteDeadline changes the write timeout, for http.ResponseController.
func (r *recorder) SetWriteDeadline(at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		return errAbandoned
	}
	return http.NewResponseController(r.ResponseWriter).SetWriteDeadline(at)
}

func (r *recorder) started() bool {
	status, _ := r.written()
	return status != 0
}

// written returns the status of the response and the size of its body. The status
// is zero if the response has not been started.
func (r *recorder) written() (status, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.bytes
}

// abandon responds with write in place of the handler, which cannot write any
// more. It returns false if the response has already been started.
func (r *recorder) abandon(write func(http.ResponseWriter)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 0 {
		return false
	}
	r.status, r.abandoned = http.StatusServiceUnavailable, true
	write(r.ResponseWriter)
	return true
}
