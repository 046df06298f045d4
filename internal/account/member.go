package account

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// MemberStore persists the members of workspaces.
type MemberStore interface {
	Members(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Member], error)
	Member(ctx context.Context, workspaceID, userID string) (*Member, error)
	HasOwner(ctx context.Context, workspaceID string) (bool, error)
	// SetRole and RemoveMember return LastOwner if the workspace would be left
	// without an owner.
	SetRole(ctx context.Context, workspaceID, userID string, role Role, entry audit.Entry) (Outcome, error)
	RemoveMember(ctx context.Context, workspaceID, userID string, entry audit.Entry) (Outcome, error)
	// Join inserts a user as a member of a workspace, without an invitation, and
	// starts a session.
	Join(ctx context.Context, u User, role Role, n NewSession, entries ...audit.Entry) (joined bool, err error)
}

// Outcome is the result of changing or removing a member.
type Outcome int

// The outcomes.
const (
	Done Outcome = iota
	Missing
	LastOwner
)

// Members lists the members of the actor's workspace, newest user first.
func (s *Service) Members(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Member], error) {
	return s.store.Members(ctx, actor.Workspace.ID, page)
}

// Member returns a member of the actor's workspace.
func (s *Service) Member(ctx context.Context, actor auth.Actor, id string) (Member, error) {
	if !uid.Valid(uid.User, id) {
		return Member{}, memberNotFound(id)
	}
	found, err := s.store.Member(ctx, actor.Workspace.ID, id)
	return fault.Found(found, err, memberNotFound, id)
}

// SetRole changes the role of a member. It rejects a change that would leave the
// workspace without an owner.
func (s *Service) SetRole(ctx context.Context, actor auth.Actor, id, roleName string) (Member, error) {
	role, err := ParseRole("/role", roleName)
	if err != nil {
		return Member{}, err
	}
	if !uid.Valid(uid.User, id) {
		return Member{}, memberNotFound(id)
	}
	entry := actor.AuditEntry("member.updated", "user", id, map[string]any{"role": role})
	outcome, err := s.store.SetRole(ctx, actor.Workspace.ID, id, role, entry)
	if err := outcomeError(outcome, err, id); err != nil {
		return Member{}, err
	}
	s.dropSessions(id)
	return s.Member(ctx, actor, id)
}

// Remove removes a member from the workspace and ends their sessions in it. A
// user who is left without a workspace is deleted.
func (s *Service) Remove(ctx context.Context, actor auth.Actor, id string) error {
	if !uid.Valid(uid.User, id) {
		return memberNotFound(id)
	}
	outcome, err := s.store.RemoveMember(ctx, actor.Workspace.ID, id, actor.AuditEntry("member.removed", "user", id, nil))
	if err := outcomeError(outcome, err, id); err != nil {
		return err
	}
	s.dropSessions(id)
	return nil
}

func outcomeError(outcome Outcome, err error, id string) error {
	switch {
	case err != nil:
		return err
	case outcome == Missing:
		return memberNotFound(id)
	case outcome == LastOwner:
		return fault.New(fault.LastOwner, "%s is the only owner of the workspace; make another member an owner first", id)
	}
	return nil
}

func memberNotFound(id string) error {
	return fault.New(fault.MemberNotFound, "there is no member %q", id)
}
