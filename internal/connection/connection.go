// Package connection owns connections: the named, sealed credentials with which the
// steps and triggers of a workspace reach other services. It decides which hosts a
// credential may be sent to, adds it to requests, and renews tokens before they
// expire. How a service authenticates is described by package integration.
package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/paging"
)

// Status says whether a connection works.
type Status string

// The statuses.
const (
	Untested       Status = "untested"
	Connected      Status = "connected"
	Failing        Status = "failing"         // the service rejected the credential
	NeedsReconnect Status = "needs_reconnect" // the token was revoked or has expired; steps wait
)

// Statuses lists the statuses.
func Statuses() []Status { return []Status{Untested, Connected, Failing, NeedsReconnect} }

// Connection is a credential of a workspace, without its secrets.
type Connection struct {
	ID          string
	WorkspaceID string
	// Name is how steps refer to the connection. The names that it had before lead to it
	// too.
	Name string
	// Integration is the id of the integration; empty for a custom connection, which
	// has its own Definition instead.
	Integration string
	Definition  json.RawMessage
	// Auth is the id of the way to authenticate, in the integration.
	Auth string
	// Fields are the values that were entered, without secrets, and Learned those that
	// the service told.
	Fields  map[string]string
	Learned map[string]string
	// Hosts are the hosts that the credential may be sent to.
	Hosts []Host
	// Access and Members say who may use the connection.
	Access  Access
	Members []string
	// Account is the account at the service, as people know it; empty if unknown.
	Account string
	// App identifies the OAuth app of an integration that the connection was made with;
	// empty if there is none, or if that was not recorded yet.
	App    string
	Status Status
	// Problem is why the status is failing or needs_reconnect.
	Problem string
	// Epoch increases whenever the credential changes.
	Epoch int64
	// ExpiresAt is when the current token expires; nil if it does not, or is unknown.
	ExpiresAt *time.Time
	// ConsentEndsAt is when somebody has to consent again, and WarnAt when people are warned
	// of that. Both are nil if the end is not known, and WarnAt also afterwards.
	ConsentEndsAt *time.Time
	WarnAt        *time.Time
	LastUsedAt    *time.Time
	CreatedAt     time.Time
	CreatedBy     string
	UpdatedAt     time.Time
	UpdatedBy     string
}

// Sealed is a connection with its sealed credential.
type Sealed struct {
	Connection
	Credential []byte
	// KeepClaim lets a renewal that is under way continue after a change: the token that it
	// renews stays. It is not stored.
	KeepClaim bool
}

// Usage says what uses a connection.
type Usage struct {
	// Aliases are the names that it had before, sorted.
	Aliases []string
	// Workflows are the workflows whose current definition names it: active ones
	// first, then by name, at most MaxUsers of them.
	Workflows []User
	// Waiting is the number of runs that wait for it to be reconnected.
	Waiting int
}

// MaxUsers is how many of the workflows that use a connection are listed, and MaxAliases
// how many names it can have had before.
const (
	MaxUsers   = 100
	MaxAliases = 20
)

// User is a workflow that uses a connection.
type User struct {
	ID     string
	Name   string
	Active bool
}

// Places are the ids of the steps and triggers of a workflow that use a connection.
type Places struct {
	Steps    []string
	Triggers []string
}

// Outcome is the outcome of creating or changing a connection.
type Outcome int

// The outcomes.
const (
	Created Outcome = iota
	Changed
	Stale     // it has changed since it was read
	NameTaken // by another connection, now or before
	TooMany   // connections, or names that a connection had before

	NoIntegration // the own integration of the workspace was deleted
)

// Store stores connections. Each method is one transaction. A pointer result is nil
// when there is no such row; a false result means that nothing was changed.
type Store interface {
	UsageStore
	// InsertConnection stores a new connection unless its name is taken or the
	// workspace already has atMost.
	InsertConnection(ctx context.Context, c Sealed, atMost int, entry audit.Entry) (Outcome, error)
	Connection(ctx context.Context, workspaceID, id string) (*Connection, error)
	// Connections are ordered by name.
	Connections(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Connection], error)
	// SealedConnection returns a connection with its credential, by its name or one that
	// it had before.
	SealedConnection(ctx context.Context, workspaceID, name string) (*Sealed, error)
	// UpdateConnection replaces everything but the id, the name, who may use it and what
	// was recorded by use, if the connection still has the epoch. Another epoch ends a
	// claim, unless KeepClaim is set. With the same epoch, a connection that has to be
	// reconnected stays as it is.
	UpdateConnection(ctx context.Context, c Sealed, wasEpoch int64, entry *audit.Entry) (updated bool, err error)
	// ChangeConnection replaces what people set of a connection, also its name and who may
	// use it, and the credential if the epoch differs, unless it has changed since it was
	// read. The earlier name still leads to it.
	ChangeConnection(ctx context.Context, now Sealed, was Connection, entry audit.Entry) (Outcome, error)
	// SetConnectionStatus changes the status, and writes the events, if the connection
	// still has the epoch and does not have to be reconnected: only a new credential
	// changes that.
	SetConnectionStatus(ctx context.Context, workspaceID, id string, epoch int64, status Status, problem string, events ...event.Event) (changed bool, err error)
	// DeleteConnection deletes a connection that no active workflow uses, and returns
	// it. Otherwise it returns the active workflows that use it.
	DeleteConnection(ctx context.Context, workspaceID, id string, entry audit.Entry) (deleted *Sealed, users []User, err error)
	// ClaimRenewal makes one node renew a credential, if the connection still has the
	// epoch, is not broken unless the claim says so, and no other claim is valid than the
	// one that it extends: a claim ends with its time, and with its node.
	ClaimRenewal(ctx context.Context, claim Claim) (claimed bool, err error)
	// ReleaseRenewal ends a claim early, whatever the epoch is by now.
	ReleaseRenewal(ctx context.Context, claim Claim) error
	// IsMember reports whether a user is a member of the workspace.
	IsMember(ctx context.Context, workspaceID, userID string) (bool, error)
}

// UsageStore stores what uses connections.
type UsageStore interface {
	// ConnectionPlaces returns where a workflow uses a connection under any of the names. It
	// is empty for a workflow that was deleted.
	ConnectionPlaces(ctx context.Context, workspaceID, workflowID string, names []string) (Places, error)
	// ConnectionUsage returns what uses connections, by their present names.
	ConnectionUsage(ctx context.Context, workspaceID string, names []string) (map[string]Usage, error)
	// WakeSteps wakes some of the runs with steps that wait for a connection, under any of
	// its names. It returns true if there may be more.
	WakeSteps(ctx context.Context, workspaceID, name string, at time.Time) (more bool, err error)
	// MarkConnectionsUsed records when connections were last used, by id.
	MarkConnectionsUsed(ctx context.Context, used map[string]time.Time) error
}

// Recorder records what people did.
type Recorder interface {
	RecordAudit(ctx context.Context, entries ...audit.Entry) error
}

// Codes of steps that fail because of their connection.
const (
	CodeMissing     = "connection_missing"     // there is none with the name
	CodeBroken      = "connection_broken"      // it was not reconnected in time
	CodeUnavailable = "connection_unavailable" // its token could not be renewed for now

	// Codes of triggers that a service cannot call because of their connection.
	CodeAppMissing     = "oauth_app_missing" // the app that the connection was made with
	CodeAccountUnknown = "account_unknown"   // the account at the service
)

// Claim is the right of a node to renew the credential of a connection.
type Claim struct {
	WorkspaceID string
	ID          string
	Epoch       int64
	Broken      bool // the connection has to be reconnected, and somebody wants to try anyway
	Node        string
	At          time.Time
	Until       time.Time
	Extends     time.Time // the end of the claim of the same node that it extends; zero if it is new
}

// BrokenError is returned for a connection that has to be reconnected.
type BrokenError struct{ Name, Problem string }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the connection %q has to be reconnected: %s", e.Name, e.Problem)
}

// Unwrap returns the failure of what cannot wait until the connection works again.
func (e *BrokenError) Unwrap() error {
	return &action.Failure{Code: CodeBroken, Message: e.Error()}
}
