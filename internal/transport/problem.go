package transport

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

func (s *Server) fail(w http.ResponseWriter, c *Caller, err error) {
	f := s.problem(c, err)
	if rec, ok := w.(*recorder); ok && rec.started() {
		return // the response has been started
	}
	c.code = f.Code
	if f.Code == fault.Unauthorized && c.mount != mountSession {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeError(w, f, c.RequestID)
}

// problem converts any error to one for the client, and logs failures of the service.
func (s *Server) problem(c *Caller, err error) *fault.Error {
	f, ok := fault.As(err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		f = fault.New(fault.Unavailable, "the request was canceled or timed out before the service could respond").Because(err)
	default:
		f = fault.New(fault.Internal, "the service failed to handle the request").Because(err)
	}
	switch status := f.Code.Status(); {
	case status == http.StatusServiceUnavailable || f.Code == fault.StorageFull: // temporary, and the client is told
		s.Log.Warn("request rejected", "request_id", c.RequestID, "error", err)
	case f.Code == fault.RunFailed: // a failed workflow is not a failure of the service
	case status >= http.StatusInternalServerError:
		s.Log.Error("request failed", "request_id", c.RequestID, "error", err)
	}
	return f
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
