package transport

import (
	"net/http"
	"net/netip"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

// Call is a request whose handler writes the response itself.
type Call struct {
	W http.ResponseWriter
	R *http.Request

	server *Server
	caller *Caller
}

// RequestID returns the id of the request, which the response and the log have too.
func (c *Call) RequestID() string { return c.caller.RequestID }

// Address returns the address of the client.
func (c *Call) Address() netip.Addr { return c.server.clientAddress(c.R) }

// Network returns the key under which failures and bodies of the client are counted.
func (c *Call) Network() string { return c.caller.Network }

// ReserveBody reserves memory for the body, which counts against all of its owners. The
// caller must release the reservation.
func (c *Call) ReserveBody(owners ...BodyOwner) (*Reservation, error) {
	return c.server.reserveBody(owners...)
}

// Problem returns the error that the client gets to see, logs what it does not see, and sets
// the header that says when to try again.
func (c *Call) Problem(err error) *fault.Error {
	f := c.server.problem(c.caller, err)
	c.caller.code = f.Code
	setRetryAfter(c.W.Header(), f)
	return f
}

// Fail responds with an error, unless the response has already begun.
func (c *Call) Fail(err error) { c.server.fail(c.W, c.caller, err) }

// Reject counts an unknown token or a failed verification as a failed authentication of the
// client. It returns the error to respond with.
func (c *Call) Reject(err error) error {
	if !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Unauthorized) {
		return err
	}
	state, ok, _ := c.server.preauth.Take(c.R.Context(), Network(c.Address()), c.server.PreauthPerMinute, clock.Now())
	SetLimitHeaders(c.W.Header(), state)
	if !ok {
		return RateLimited("too many failed requests: this IP address may send %d wrong links, keys or signatures per minute", state)
	}
	return err
}

// ResetHeaders sets the headers that every response has, some of which the handler may have
// replaced.
func (c *Call) ResetHeaders() { c.server.setCommonHeaders(c.W.Header(), c.caller) }

// ReadBody reads the body up to the limit, and returns tooLarge if it is longer.
func (c *Call) ReadBody(limit int64, reserved *Reservation, tooLarge error) ([]byte, error) {
	return readBody(c.R, limit, reserved, tooLarge)
}

// ReadBodyWithin reads the body up to the limit of a plan.
func (c *Call) ReadBodyWithin(limits auth.Limits, reserved *Reservation) ([]byte, error) {
	limit := limits.RequestBodyBytes
	return c.ReadBody(limit, reserved, fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes that the plan allows", limit))
}

// JSON responds with a body in JSON.
func (c *Call) JSON(status int, body any) { writeJSON(c.W, status, body) }

// Bytes responds with a body whose content type the handler has set.
func (c *Call) Bytes(status int, body []byte) { writeBytes(c.W, status, body) }
