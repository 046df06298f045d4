package api

import (
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/fault"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// reply is a response before it is written.
type reply struct {
	status int // zero: the status of the route
	header map[string]string
	// cookies are sent to the browser, but not saved for an Idempotency-Key.
	cookies []string
	body    any
	raw     []byte // written as is, with the content type in header
	// afterCommit replaces the response once the effect is durable. The response
	// that is saved for an Idempotency-Key is the one before.
	afterCommit func(context.Context, *http.ResponseController) (*reply, error)
	// stream is sent event by event in place of a body.
	stream feed
	// download writes a body of unknown length.
	download func(io.Writer) error
	// serve writes the whole response: a file, or parts of it.
	serve func(http.ResponseWriter, *http.Request)
}

func ok(body any) *reply { return &reply{body: body} }

func (r *reply) withHeader(name, value string) *reply {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
	return r
}

func (r *reply) statusOr(status int) int {
	if r.status != 0 {
		return r.status
	}
	return status
}

func (s *Server) write(w http.ResponseWriter, e *endpoint, r *reply) {
	header := w.Header()
	for name, value := range r.header {
		header.Set(name, value)
	}
	for _, cookie := range r.cookies {
		header.Add("Set-Cookie", cookie)
	}
	status := r.statusOr(e.Status)
	switch {
	case r.raw != nil:
		writeBytes(w, status, r.raw)
	case r.body == nil:
		w.WriteHeader(status)
	default:
		writeJSON(w, status, r.body)
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	writeBytes(w, status, encodeJSON(body))
}

func encodeJSON(body any) []byte {
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

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Code      fault.Code     `json:"code"`
	Message   string         `json:"message"`
	Details   []fault.Detail `json:"details,omitempty"`
	RequestID string         `json:"request_id"`
}

func writeError(w http.ResponseWriter, f *fault.Error, requestID string) {
	setRetryAfter(w.Header(), f)
	writeJSON(w, f.Code.Status(), errorBody{errorDetail{f.Code, f.Message, f.Details, requestID}})
}

// setRetryAfter sets the Retry-After header where a retry can help.
func setRetryAfter(h http.Header, f *fault.Error) {
	retry := f.RetryAfter
	if retry == 0 && f.Code.Status() == http.StatusServiceUnavailable {
		retry = time.Second
	}
	if retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(retry.Seconds()))))
	}
}
