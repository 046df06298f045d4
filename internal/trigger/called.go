package trigger

import (
	"time"

	"github.com/stepmill/stepmill/internal/fault"
)

// DedupeWindow is how long a repeated call or event with the same key starts no run, which is as
// long as idempotency keys of the API count.
const DedupeWindow = 24 * time.Hour

// CodeSignatureRejected is the code of the note about a call that could not be verified.
const CodeSignatureRejected = "signature_refused"

// NothingHere returns the error for every call that nothing waits for, whatever the reason.
func NothingHere() error { return fault.New(fault.NotFound, "there is nothing here") }

// NotGenuine returns the error for a call that could not be verified. Only the owner of the
// trigger learns why.
func NotGenuine() *fault.Error {
	return fault.New(fault.Unauthorized, "the request could not be verified: its signature or credentials are missing or wrong")
}
