// Package integration owns the manifests of the integrations, the files
// integrations/<id>/integration.yaml: their types, the rules for them, and the
// catalog of those that are part of the product. A manifest says how to connect to
// a service, and what steps can do there.
//
// The package makes no requests and knows no credentials. It renders templates
// from values that the caller has.
package integration

import (
	"cmp"
	"io/fs"
)

// Integration is a service that workflows can connect to.
type Integration struct {
	ID       string
	Name     string
	Category string
	Docs     string
	Keywords []string
	// BaseURL is where the paths of calls start. It is zero if every call has a URL.
	BaseURL Template
	// Headers are sent with every call. A header whose value is nil is left out.
	Headers    map[string]Template
	Connection Connection
	// Of is the integration whose connections this one uses, "" if it has its own.
	Of string
	// Scopes are the OAuth scopes that its operations need beside those of Of.
	Scopes []string
	// Errors are those of every call, after its own.
	Errors []ErrorRule
	Rates  []Rate

	operations, triggers []Outline
	detail               func() detail
	folder               fs.FS    // of the manifests, nil for a custom connection
	digest, use          string   // of a workspace's own integration
	size                 int      // of its manifest
	hosts                []string // of a custom connection, as they were entered
	services             []head   // those that use its connections
	variables            variables
}

// FullName returns the name of an operation or a trigger as workflows have it, such as
// gmail.new_message.
func (i *Integration) FullName(name string) string { return i.ID + "." + name }

// ConnectedAs returns the id of the integration that the connections belong to.
func (i *Integration) ConnectedAs() string { return cmp.Or(i.Of, i.ID) }

// Connection describes a connection: what people enter, how the credential is
// applied, and which hosts may receive it.
type Connection struct {
	// Fields are asked for with every entry of Auth, in the order of the file.
	Fields []Field
	Auth   []Auth
	Hosts  []Host
	// Test and Learn are what the entries of Auth have in common. Auth.Test and
	// Auth.Learn are complete.
	Test  *Call
	Learn map[string]Template
}

// Find returns the entry of Auth with the id.
func (c *Connection) Find(id string) (*Auth, bool) {
	for i := range c.Auth {
		if c.Auth[i].ID == id {
			return &c.Auth[i], true
		}
	}
	return nil, false
}

// IDs lists the ids of the entries of Auth.
func (c *Connection) IDs() []string {
	var ids []string
	for _, a := range c.Auth {
		ids = append(ids, a.ID)
	}
	return ids
}

// Fields returns what people enter for a connection with the entry of Auth: the
// fields of all entries, then its own.
func (i *Integration) Fields(a *Auth) []Field {
	return append(append([]Field(nil), i.Connection.Fields...), a.Fields...)
}

// Auth is one way to authenticate.
//
// The members from AuthorizeURL on belong to the kind oauth2, TokenURL and Scopes
// also to service_account. These rules hold for every service:
//   - A request to the token or revoke URL carries the headers of the integration,
//     with Accept: application/json.
//   - The answer to a token request is JSON or form-encoded, as its Content-Type
//     says. One without an access token is an error whatever its status: some
//     services answer 200 with an error member.
//   - A token without expires_in is used until the service answers 401.
//   - If a refresh returns no new refresh token, the old one stays valid.
type Auth struct {
	ID    string // unique in the manifest; the kind, unless it says otherwise
	Kind  string
	Label string
	Help  string
	// Fields has the fields of the kind, if the entry does not replace them, and
	// those of the entry.
	Fields []Field
	// AppFields are entered once per OAuth app, beside the client id and secret.
	AppFields []Field
	// Apply says where the credential goes. It is complete for every kind but
	// aws_sigv4, which signs requests.
	Apply Apply
	// Test checks a new connection, and Learn reads its variables. See Stage.
	Test  *Call
	Learn map[string]Template
	// Service is the name of the service in signatures of aws_sigv4. If it is empty,
	// the host has it.
	Service string
	// CA has certificate authorities in PEM that are trusted too, for custom connections.
	CA string

	// AuthorizeURL is where people consent, and DeviceURL where codes are issued that
	// people consent with (RFC 8628). If both are zero, the entry uses client credentials.
	// Only custom connections have a DeviceURL.
	AuthorizeURL Template
	DeviceURL    Template
	TokenURL     Template
	// RevokeURL is zero if tokens cannot be revoked. A request to it carries the
	// refresh token, or the access token if there is none, as RevokeParam, and the
	// client's credentials.
	RevokeURL      Template
	RevokeParam    string
	Scopes         []string
	ScopeSeparator string
	ScopeParam     string // the name of the parameter with the scopes
	// Params are added to the authorize URL, or to the request to the device URL.
	Params map[string]Template
	// TokenParams are added to the request for the first token and to requests with
	// client credentials, not to refreshes. Those of a manifest may replace grant_type.
	TokenParams map[string]Template
	ClientAuth  string // "basic" or "body": where the client id and secret go; or PrivateKeyJWT
	TokenBody   string // "form" or "json"
	RevokeBody  string // "form" or "json"
	PKCE        bool
	// TokenAt is the member of the first token answer that has access_token and the
	// other standard members, "" for the answer itself. An answer without this
	// member, such as that of a refresh, has them itself.
	TokenAt string
	// Issuer is what the authorization server calls itself, "" if that is not known. If
	// IssRequired is set, it names itself in each answer to a request for consent.
	Issuer      string
	IssRequired bool
	// Refusals are the errors, beside those of RFC 6749, with which the service refuses
	// tokens for good. Any other error may pass.
	Refusals []string
	// Exchange, if not nil, trades the token for one that lives longer: after the
	// code was exchanged, and again instead of a refresh.
	Exchange *Exchange

	hostField string
}

// NeedsConsent reports whether a person must sign in at the service to connect.
func (a *Auth) NeedsConsent() bool { return !a.AuthorizeURL.IsZero() || a.UsesDeviceCode() }

// UsesDeviceCode reports whether that person enters a code at the service, on any device,
// and is not sent back from there.
func (a *Auth) UsesDeviceCode() bool { return !a.DeviceURL.IsZero() }

// HostField returns the name of the field with which whoever connects chooses the
// host of the token URL, as in https://${{ connection.host }}/token, or "" if the
// service has it. The client secret of an app for one such host must not be sent to
// another.
func (a *Auth) HostField() string { return a.hostField }

// Exchange is a request to trade a token for another. It is sent like a token
// request, with the client's credentials and these parameters.
type Exchange struct {
	URL    Template
	Params map[string]Template
}

// Apply says how the credential is attached to a request. A header or parameter
// whose value is nil is left out.
type Apply struct {
	Headers map[string]Template
	Query   map[string]Template
	Basic   *Basic
	// Path replaces {auth} in URLs.
	Path Template
}

// Basic has the user name and the password of HTTP basic authentication.
type Basic struct {
	User     Template
	Password Template
}

// Host is a host that may receive the credential. If Name reads a variable that is
// not checked when it is entered, the host must be one of the domains in Within or
// below one.
type Host struct {
	Name   Template
	Within []string
}

// Stage is the moment at which a variable is learned.
type Stage int

// The stages, in their order. An entry of Learn that reads test has AtTest, one that
// reads token has AtToken, any other AtCallback: the moment the person comes back
// from the service or, without consent, before the first request. A variable that
// is nil keeps its value. A variable with the name of a field must pass the
// field's Check.
const (
	AtCallback Stage = iota
	AtToken
	AtTest
)

// Learned returns the entries of Learn that a stage gives.
func (a *Auth) Learned(stage Stage) map[string]Template {
	out := map[string]Template{}
	for name, t := range a.Learn {
		if stageOf(t) == stage {
			out[name] = t
		}
	}
	return out
}

func stageOf(t Template) Stage {
	switch {
	case t.Reads("test"):
		return AtTest
	case t.Reads("token"):
		return AtToken
	}
	return AtCallback
}

// Learned variables with a meaning of their own. They are not readable as
// connection.<name>.
const (
	Label   = "label"   // shown to people
	Account = "account" // identifies the account at the service
)
