package integration

import (
	"time"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpath"
)

// Operation is something that a step can do at a service.
type Operation struct {
	Name    string // such as post_message
	Title   string
	Summary string
	// Hidden operations are not offered to people: they fill dropdowns and forms.
	Hidden bool
	// Timeout is how long one request may take, zero for the default.
	Timeout time.Duration
	// Input has what the step gives, in the order of the file.
	Input []Input
	// Calls are made in order. The result of each is recorded before the next one.
	Calls []Call
	// Output is what the step returns. Nil means the result of the last call.
	Output *Value
	Rates  []Rate
	// Option and Member say what an item of the list means for dropdowns and forms.
	Option *Option
	Member *Member
	// Deprecated is set if another operation replaces it.
	Deprecated *Deprecation
}

// Lists reports whether the operation reads a list in pages, so that it has the inputs
// limit and all.
func (o *Operation) Lists() bool { return o.Calls[len(o.Calls)-1].Page != nil }

// Deprecation says what replaces an operation.
type Deprecation struct {
	Since string `json:"since"`
	Use   string `json:"use"`
	Ends  string `json:"ends"`
}

// Option turns an item into an entry of a dropdown.
type Option struct{ Value, Label *expr.Program }

// Member turns an item into a member of an object that people fill in, such as a column.
type Member struct{ Name, Title, Type, Required, Options *expr.Program }

// Rate is how often the service may be called: Requests every Every, or as its answers
// say with Remaining and Reset.
type Rate struct {
	// Of is the integration whose requests count; empty for those of one operation.
	Of       string
	Requests int
	Every    time.Duration
	// Per is what the rate applies to beside the connection, such as a channel; nil if
	// it applies to the connection.
	Per *expr.Program
	// Remaining is how many requests the answer leaves, and Reset the time at which
	// there are more again.
	Remaining, Reset *expr.Program
}

// Call is a request to the service. It has either a Path below the base URL or a URL.
type Call struct {
	// ID names the result for later calls, and If decides whether the call is made.
	ID string
	If Condition

	Method string
	Path   Path
	URL    Template
	// NoAuth sends the request without the credential, to a URL that an earlier answer
	// has given.
	NoAuth  bool
	Query   *Value
	Headers *Value
	// At most one of the following is the body. GraphQL is a query that is sent as JSON
	// with its Variables.
	JSON      *Value
	Form      *Value
	Multipart *Value
	Raw       *Value
	GraphQL   string
	Variables *Value

	// Response is how the body of the answer is read; see Responses. Blobs are where JSON
	// has files, as text in base64. FileName names the files.
	Response string
	Blobs    []jsonpath.Path
	FileName Template
	// Items finds the list in an answer, and Page the next page of it.
	Items *expr.Program
	Page  *Page
	// Batch sends a list in parts, and Chunk a file, with a request for each.
	Batch *Batch
	Chunk *Chunk

	// Idempotency says what a repeated request does; OnUnknown, what happens if it is
	// not known whether the service has received a request that must not be repeated.
	Idempotency Idempotency
	OnUnknown   string
	// Errors are tried in order on the answer, before those of the integration; the
	// first whose condition holds applies. If none does, the status decides.
	Errors []ErrorRule
	// Output is the result of the call. Nil means the body or, of a list, the items.
	Output *Value
}

// The ways to read the body of an answer.
const (
	ResponseJSON = "json"
	ResponseText = "text"
	ResponseXML  = "xml"
	ResponseFile = "file"
	ResponseNone = "none"
)

// Responses returns the values of response.
func Responses() []string {
	return []string{ResponseJSON, ResponseText, ResponseXML, ResponseFile, ResponseNone}
}

// Page says how to get the next page of a list: with the cursor Next, at the URL NextURL
// or, if both are nil, with the next number or offset. More says whether there is one.
type Page struct {
	Next, NextURL, More *expr.Program
	Size                int // of a full page, 0 if it is not known
}

// Batch splits a list into parts.
type Batch struct {
	Of   *expr.Program
	Size int
}

// Chunk sends a file in parts.
type Chunk struct {
	File *expr.Program
	Size int64 // of a part in bytes; the last one can be shorter
	// Next reads from an answer how many bytes of the file the service has. Without it,
	// these are all that were sent.
	Next *expr.Program
	// Ask is a call whose answer Next reads when it is not known how many bytes the
	// service has. Without it, the last part is sent again.
	Ask *Call
}

// Idempotency says what happens if a request is sent twice.
type Idempotency struct {
	// Safe requests can be repeated at any time.
	Safe bool
	// Remembered is how long the service recognizes a repeated request by its key.
	Remembered time.Duration
	// Find looks for what an earlier request has made. Its result, unless it is nil, is
	// that of the call.
	Find *Call
}

// The values of on_unknown.
const (
	Repeat = "repeat"
	Fail   = "fail"
)

// ErrorRule recognizes an error in an answer.
type ErrorRule struct {
	When Condition
	// Kind is "" if the status decides.
	Kind    string
	Code    Template
	Message Template
	// RetryAfter is a number of seconds or a time.
	RetryAfter Template
}

// The kinds of errors.
const (
	RateLimited = "rate_limited" // retried
	Unavailable = "unavailable"  // retried
	Reconnect   = "reconnect"    // the connection is broken
	Restart     = "restart"      // what the step has done so far is void
	NoError     = "none"
	Invalid     = "invalid"
	Denied      = "denied"
	NotFound    = "not_found"
	Conflict    = "conflict"
	Failed      = "failed"
)

func errorKinds() []string {
	return []string{RateLimited, Unavailable, Reconnect, Restart, NoError, Invalid, Denied, NotFound, Conflict, Failed}
}

// OperationNames returns the names of the operations, in the order of the file.
func (i *Integration) OperationNames() []string { return outlineNames(i.operations) }

// FindOperation returns the operation with a name.
func (i *Integration) FindOperation(name string) (*Operation, bool) {
	if _, known := findOutline(i.operations, name); !known {
		return nil, false
	}
	operations := i.Operations()
	for n := range operations {
		if operations[n].Name == name {
			return &operations[n], true
		}
	}
	return nil, false
}
