package transport

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Reply is a response before it is written.
type Reply struct {
	Status int // zero: the status of the route
	header map[string]string
	// cookies are sent to the browser, but not saved for an Idempotency-Key.
	cookies []string
	Body    any
	Raw     []byte // written as is, with the content type in header
	// AfterCommit replaces the response once the effect is durable. The response
	// that is saved for an Idempotency-Key is the one before.
	AfterCommit func(context.Context, *http.ResponseController) (*Reply, error)
	// Stream is sent event by event in place of a body.
	Stream Feed
	// Download writes a body of unknown length.
	Download func(io.Writer) error
	// Serve writes the whole response: a file, or parts of it.
	Serve func(*Call)
}

// OK responds with a body and the status of the route.
func OK(body any) *Reply { return &Reply{Body: body} }

// Respond responds with a value as clients see it, unless reading it has failed.
func Respond[T, W any](show func(T) W, value T, err error) (*Reply, error) {
	if err != nil {
		return nil, err
	}
	return OK(show(value)), nil
}

// WithHeader sets a header of the response.
func (r *Reply) WithHeader(name, value string) *Reply {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
	return r
}

func (r *Reply) statusOr(status int) int {
	if r.Status != 0 {
		return r.Status
	}
	return status
}

func (s *Server) write(w http.ResponseWriter, e *Endpoint, r *Reply) {
	header := w.Header()
	for name, value := range r.header {
		header.Set(name, value)
	}
	for _, cookie := range r.cookies {
		header.Add("Set-Cookie", cookie)
	}
	status := r.statusOr(e.Status)
	switch {
	case r.Raw != nil:
		writeBytes(w, status, r.Raw)
	case r.Body == nil:
		w.WriteHeader(status)
	default:
		writeJSON(w, status, r.Body)
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	writeBytes(w, status, EncodeJSON(body))
}

// EncodeJSON encodes a body as responses do.
func EncodeJSON(body any) []byte {
	encoded, err := strictjson.Encode(body)
	if err != nil {
		// Wire types always encode: this is a bug.
		panic(err)
	}
	return append(encoded, '\n')
}

func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
