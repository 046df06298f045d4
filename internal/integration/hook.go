package integration

import (
	"time"

	"github.com/stepmill/stepmill/internal/expr"
)

// Hook is how a service calls when something happens there.
type Hook struct {
	Name string // such as repository
	// Scope says what the service is told one URL for.
	Scope string
	// Setup tells people how to enter the URL at the service, where no request does it. It
	// is zero if Register does.
	Setup Template
	// Register tells the service the URL, Unregister ends that, and Renew extends a
	// registration that expires. Without Renew, there is a new registration before the old
	// one expires. All of them can be nil.
	Register, Renew, Unregister *Operation
	// Expires is when a registration ends, a time, given what Register has returned.
	Expires *expr.Program
	// Verification says how calls prove that they come from the service.
	Verification Verification
	// Challenge recognizes a call with which the service checks the URL; nil if there is
	// none.
	Challenge *Challenge
	// Items are the events of a call; nil if its body is the only one. Key identifies an
	// event, unless the trigger does.
	Items, Key *expr.Program
	// Account is the account at the service that an event is for, if the scope is PerApp.
	Account *expr.Program
	// Reply is the body of the response to a call, nil for an empty one.
	Reply *Value
}

// The scopes of hooks.
const (
	PerTrigger    = "trigger"    // each trigger has a URL
	PerConnection = "connection" // the triggers with the same connection share one
	PerApp        = "app"        // all connections that were made with the same OAuth app share one
)

func hookScopes() []string { return []string{PerTrigger, PerConnection, PerApp} }

// Verification says how to verify a call. The members are those of [signature.Rule] of the
// same name.
type Verification struct {
	Scheme string
	// Secret is the key of the signature, or what Given must equal. SecretEncoding is
	// base64 if its bytes are written so.
	Secret         Template
	SecretEncoding string
	// Given is what the call proves itself with, for the scheme equals.
	Given     *expr.Program
	Header    string
	Algorithm string
	Encoding  string
	Prefix    string
	Timestamp string
	Signed    string
	Tolerance time.Duration
}

// ClientSecret is the secret of the OAuth app of a connection, with which some services
// sign their calls.
const ClientSecret = "client_secret"

// NeedsCredential reports whether the secrets of the connection, or its variables, are
// needed to verify a call.
func (v Verification) NeedsCredential() bool {
	return v.Secret.Reads("secret") || v.Secret.Reads("connection")
}

// Challenge recognizes a call that starts nothing, because the service only checks whether
// the URL is ours. Reply is the response to it: text, or an object that is sent as JSON.
type Challenge struct {
	When  Condition
	Reply *Value
}

// Hooks returns the hooks, in the order of the file.
func (i *Integration) Hooks() []Hook { return i.detail().hooks }

// FindHook returns the hook with a name.
func (i *Integration) FindHook(name string) (*Hook, bool) {
	hooks := i.Hooks()
	for n := range hooks {
		if hooks[n].Name == name {
			return &hooks[n], true
		}
	}
	return nil, false
}
