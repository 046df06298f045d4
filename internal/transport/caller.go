package transport

import (
	"context"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Caller holds what is known about a request beside its endpoint's input.
type Caller struct {
	RequestID string
	Actor     auth.Actor
	SignedIn  *account.SignedIn  // nil without a session
	Client    account.ClientInfo // what a session that begins with this request records
	// SessionToken is the token that the browser sent to a public route, valid or not.
	SessionToken string
	Origin       string // of the page that sent the request, as its browser says
	Host         string // that the request was sent to
	Network      string // the key for what is counted by client; see network

	mount     mount
	rejection error      // why there is no actor, or why the request is over a limit
	endpoint  *Endpoint  // nil if no route matches
	code      fault.Code // of the error response
	streamed  bool       // the response was a stream
	dashboard bool       // the dashboard served it
}

// bodyOwner returns whom the body of the request is counted against.
func (c *Caller) bodyOwner() BodyOwner {
	if c.Actor.Workspace.ID != "" {
		return WorkspaceBodies(c.Actor.Workspace.ID)
	}
	return NetworkBodies(c.Network)
}

type callerKey struct{}

// CallerOf returns the caller of the request that the context belongs to.
func CallerOf(ctx context.Context) *Caller { return ctx.Value(callerKey{}).(*Caller) }

// Actor returns who makes the request that the context belongs to.
func Actor(ctx context.Context) auth.Actor { return CallerOf(ctx).Actor }
