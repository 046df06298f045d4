package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// Code is the machine-readable name of a failed call, shown in runs and
// deliveries.
type Code string

// How a call can fail.
const (
	Denied           Code = "egress_denied"
	ConnectionFailed Code = "connection_failed"
	TimedOut         Code = "timed_out"
	Cancelled        Code = "cancelled"
	TLSFailed        Code = "tls_failed"
	ResponseTooLarge Code = "response_too_large"
	TooManyRedirects Code = "too_many_redirects"
	InvalidResponse  Code = "invalid_response"
	InvalidRequest   Code = "invalid_request"
)

// Codes lists every way a call can fail.
func Codes() []Code {
	return []Code{Denied, ConnectionFailed, TimedOut, Cancelled, TLSFailed, ResponseTooLarge, TooManyRedirects, InvalidResponse, InvalidRequest}
}

// Error is why a call has no answer. Its Message is for people: it names the
// host and never a header, a query or an address behind a name. The cause may
// quote the answer, so it is not part of the text.
type Error struct {
	Code    Code
	Message string
	// Retryable tells that the same call may succeed later.
	Retryable bool
	cause     error
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

func (e *Error) Unwrap() error { return e.cause }

func fail(code Code, cause error, format string, args ...any) *Error {
	return &Error{
		Code:      code,
		Message:   fmt.Sprintf(format, args...),
		Retryable: code == ConnectionFailed || code == TimedOut,
		cause:     cause,
	}
}

// explain turns what went wrong while talking to the host into an Error.
func explain(ctx context.Context, host string, err error) *Error {
	var known *Error
	var network net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.Canceled):
		return fail(Cancelled, context.Cause(ctx), "the call to %s was cancelled", host)
	case ctx.Err() != nil:
		return fail(TimedOut, err, "%s did not complete its answer in time", host)
	case errors.As(err, &network) && network.Timeout():
		return fail(TimedOut, err, "%s did not begin its answer in time", host)
	case isHeaderLimit(err):
		return fail(ResponseTooLarge, err, "the headers that %s sent are too large", host)
	case isBroken(err):
		return fail(ConnectionFailed, err, "the connection to %s broke%s", host, because(err))
	default:
		return fail(InvalidResponse, err, "%s did not answer with valid HTTP", host)
	}
}

// isHeaderLimit knows the refusals of net/http, which have no type, by their text.
func isHeaderLimit(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "response header list larger") ||
		strings.Contains(text, "header list too large")
}

// isBroken tells a connection that ended too early from an answer that makes
// no sense. What net/http does not export is known by its text.
func isBroken(err error) bool {
	var op *net.OpError
	var errno syscall.Errno
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &op) || errors.As(err, &errno) {
		return true
	}
	text := err.Error()
	for _, part := range []string{
		"server closed idle connection", "cannot rewind body", "http2: client conn", "GOAWAY", "received from peer",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// because is what the system says, such as "connection refused".
func because(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return ": " + errno.Error()
	}
	return ""
}
