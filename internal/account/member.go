package account

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// MemberStore keeps who is in a workspace.
type MemberStore interface {
	Members(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Member], error)
	Member(ctx context.Context, workspaceID, userID string) (*Member, error)
	// SetRole and RemoveMember answer LastOwner when nobody else owns the
	// workspace.
	SetRole(ctx context.Context, workspaceID, userID string, role Role, entry audit.Entry) (Outcome, error)
	RemoveMember(ctx context.Context, workspaceID, userID string, entry audit.Entry) (Outcome, error)
	// Join makes a member of a workspace without an invitation, and begins a
	// session.
	Join(ctx context.Context, u User, role Role, n NewSession, entries ...audit.Entry) (joined bool, err error)
}

// Outcome is what became of a change of a member.
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

// Member reads one member.
func (s *Service) Member(ctx context.Context, actor auth.Actor, id string) (Member, error) {
	if !uid.Valid(uid.User, id) {
		return Member{}, noMember(id)
	}
	found, err := s.store.Member(ctx, actor.Workspace.ID, id)
	return fault.Found(found, err, noMember, id)
}

// SetRole gives a member another role. A workspace that has an owner keeps one.
func (s *Service) SetRole(ctx context.Context, actor auth.Actor, id, roleName string) (Member, error) {
	role, err := ParseRole("/role", roleName)
	if err != nil {
		return Member{}, err
	}
	if !uid.Valid(uid.User, id) {
		return Member{}, noMember(id)
	}
	entry := actor.Did("member.updated", "user", id, map[string]any{"role": role})
	outcome, err := s.store.SetRole(ctx, actor.Workspace.ID, id, role, entry)
	if err := settle(outcome, err, id); err != nil {
		return Member{}, err
	}
	s.cache.dropUser(id)
	return s.Member(ctx, actor, id)
}

// Remove takes a member out of the workspace and ends their sessions in it. A
// user who is in no workspace any more is gone.
func (s *Service) Remove(ctx context.Context, actor auth.Actor, id string) error {
	if !uid.Valid(uid.User, id) {
		return noMember(id)
	}
	outcome, err := s.store.RemoveMember(ctx, actor.Workspace.ID, id, actor.Did("member.removed", "user", id, nil))
	if err := settle(outcome, err, id); err != nil {
		return err
	}
	s.cache.dropUser(id)
	return nil
}

func settle(outcome Outcome, err error, id string) error {
	switch {
	case err != nil:
		return err
	case outcome == Missing:
		return noMember(id)
	case outcome == LastOwner:
		return fault.New(fault.LastOwner, "%s is the only owner of the workspace; make somebody else an owner first", id)
	}
	return nil
}

func noMember(id string) error {
	return fault.New(fault.MemberNotFound, "there is no member %q", id)
}
