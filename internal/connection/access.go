package connection

import (
	"context"
	"fmt"
	"slices"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Access says who may use a connection: add it to steps and triggers, and test it. Runs
// of workflows that name it use it for everyone.
type Access string

// The values of Access.
const (
	Everyone    Access = "everyone"
	SomeMembers Access = "members" // the members of the Audience and its owner
	OwnerOnly   Access = "owner"
)

// Accesses lists the values of Access.
func Accesses() []Access { return []Access{Everyone, SomeMembers, OwnerOnly} }

// MaxMembers is how many members can be chosen to use a connection.
const MaxMembers = 100

// Audience is who may use a connection.
type Audience struct {
	Access  Access
	Members []string // ids of users
	// Owner is the id of whoever created the connection, which may be an API key.
	Owner string
}

// includes reports whether an actor may use the connection. API keys may use those that are open
// to everyone.
func (a Audience) includes(actor auth.Actor) bool {
	if a.Access == Everyone {
		return true
	}
	return actor.Type == audit.ActorUser && (actor.ID == a.Owner || a.Access == SomeMembers && slices.Contains(a.Members, actor.ID))
}

func (c Connection) audience() Audience { return Audience{c.Access, c.Members, c.CreatedBy} }

// checkUse returns an error if an actor may not use a connection.
func checkUse(actor auth.Actor, c Connection) error {
	if c.audience().includes(actor) {
		return nil
	}
	return restricted(actor, c)
}

// Usable returns a connection that an actor may use.
func (s *Service) Usable(ctx context.Context, actor auth.Actor, id string) (Connection, error) {
	c, err := s.Get(ctx, actor, id)
	if err != nil {
		return Connection{}, err
	}
	return c, checkUse(actor, c)
}

// checkChange returns an error if an actor may not change a connection. An owner of the workspace
// may change every connection, and so decide who may use it.
func checkChange(actor auth.Actor, c Connection) error {
	if actor.Type == audit.ActorUser && auth.Grants(actor.Scopes, auth.Admin) {
		return nil
	}
	return checkUse(actor, c)
}

// changeable returns a connection that an actor may change.
func (s *Service) changeable(ctx context.Context, actor auth.Actor, id string) (Connection, error) {
	c, err := s.Get(ctx, actor, id)
	if err == nil {
		err = checkChange(actor, c)
	}
	return c, err
}

// openChangeable is like changeable and also opens the connection.
func (s *Service) openChangeable(ctx context.Context, actor auth.Actor, id string) (*opened, error) {
	c, err := s.changeable(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return s.repo.reopen(ctx, c)
}

func restricted(actor auth.Actor, c Connection) error {
	if actor.Type == audit.ActorUser {
		return fault.New(fault.ConnectionRestricted, "the connection %q is not open to you: ask whoever created it, or an owner of the workspace, to add you", c.Name)
	}
	return fault.New(fault.ConnectionRestricted, "the connection %q is not open to API keys, which use only connections that are open to everyone: use the dashboard", c.Name)
}

// setAccess sets who may use a connection. A nil value stays as it is.
func (s *Service) setAccess(ctx context.Context, c *Connection, access *Access, members []string) error {
	if access != nil {
		if !slices.Contains(Accesses(), *access) {
			return fault.Field("/access", "must be everyone, members or owner")
		}
		if *access == OwnerOnly && !uid.Valid(uid.User, c.CreatedBy) {
			return fault.Field("/access", "must be everyone or members: an API key created the connection, so no person owns it")
		}
		if c.Access = *access; c.Access != SomeMembers && members == nil {
			c.Members = nil
		}
	}
	if members != nil {
		c.Members = slices.Compact(slices.Sorted(slices.Values(members)))
	}
	switch {
	case access == nil && members == nil:
		return nil
	case c.Access != SomeMembers && len(c.Members) > 0:
		return fault.Field("/members", "belongs to the access members: leave it out, or set access to members")
	case c.Access == SomeMembers && len(c.Members) == 0:
		return fault.Field("/members", "is required: the ids of the members who may use the connection")
	case len(c.Members) > MaxMembers:
		return fault.Field("/members", "must have at most %d entries", MaxMembers)
	}
	for i, id := range members {
		isMember, err := s.repo.store.IsMember(ctx, c.WorkspaceID, id)
		if err != nil {
			return err
		}
		if !isMember {
			return fault.Field(fmt.Sprintf("/members/%d", i), "is not the id of a member of the workspace")
		}
	}
	return nil
}

// Name is a name that steps and triggers can use for a connection.
type Name struct {
	Name string
	// Now is the present name of the connection. Name may be one that it had before.
	Now string
	// Integration is the id of its integration, "" for a custom connection.
	Integration string
	Audience
}

// MayUse reports whether an actor may use the connection.
func (n Name) MayUse(actor auth.Actor) bool { return n.includes(actor) }
