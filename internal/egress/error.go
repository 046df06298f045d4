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

// Code is the machine-readable error code of a failed request, shown in runs
// and deliveries.
type Code string

// The error codes.
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

// Codes returns all error codes.
func Codes() []Code {
	return []Code{Denied, ConnectionFailed, TimedOut, Cancelled, TLSFailed, ResponseTooLarge, TooManyRedirects, InvalidResponse, InvalidRequest}
}

// Error explains why a request got no response. Its Message is for users: it
// names the host, but never a header, a query or the address of a name. The cause
// may quote the response, so it is not part of the text.
type Error struct {
	Code    Code
	Message string
	// Retryable means that the same request may succeed later.
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

// errNoResponse is the cause of a context that ends because a streamed response
// did not begin in time.
var errNoResponse = errors.New("the response did not begin in time")

// classifyError turns an error of a request to the host into an *Error.
func classifyError(ctx context.Context, host string, err error) *Error {
	var known *Error
	var network net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(context.Cause(ctx), errNoResponse):
		return fail(TimedOut, err, "%s did not respond in time", host)
	case errors.Is(ctx.Err(), context.Canceled):
		return fail(Cancelled, context.Cause(ctx), "the request to %s was cancelled", host)
	case ctx.Err() != nil:
		return fail(TimedOut, err, "%s did not send a complete response in time", host)
	case errors.As(err, &network) && network.Timeout():
		return fail(TimedOut, err, "%s stopped responding", host)
	case certificateAlert(err) != "": // with TLS 1.3, it arrives after the handshake
		return fail(TLSFailed, err, "could not connect securely to %s: %s", host, certificateAlert(err))
	case isHeaderLimit(err):
		return fail(ResponseTooLarge, err, "the response headers of %s are too large", host)
	case isConnectionError(err):
		return fail(ConnectionFailed, err, "the connection to %s was lost%s", host, errnoSuffix(err))
	default:
		return fail(InvalidResponse, err, "%s did not send a valid HTTP response", host)
	}
}

// isHeaderLimit recognizes errors of net/http, which have no type, by their text.
func isHeaderLimit(err error) bool {
	text := err.Error()
	return strings.Contains(text, "server response headers exceeded") ||
		strings.Contains(text, "response header list larger") ||
		strings.Contains(text, "header list too large")
}

// isConnectionError distinguishes a lost connection from an invalid response. It
// recognizes errors that net/http does not export by their text.
func isConnectionError(err error) bool {
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

// errnoSuffix returns ": " and the system error, such as "connection refused".
func errnoSuffix(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return ": " + errno.Error()
	}
	return ""
}
