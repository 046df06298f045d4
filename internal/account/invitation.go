package account

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

const (
	invitationLife = 7 * 24 * time.Hour
	maxInvitations = 500
)

// InvitationStore keeps invitations.
type InvitationStore interface {
	Invitation(ctx context.Context, workspaceID, id string, now time.Time) (*Invitation, error)
	Invitations(ctx context.Context, workspaceID string, now time.Time, page paging.Request) (paging.Page[Invitation], error)
	InvitationByHash(ctx context.Context, hash []byte, now time.Time) (*Invitation, error)
	// InsertInvitation takes the place of an earlier one to the same address. It
	// refuses, with false, when the workspace has atMost open ones.
	InsertInvitation(ctx context.Context, in Invitation, atMost int, entry audit.Entry) (inserted bool, err error)
	RevokeInvitation(ctx context.Context, workspaceID, id string, entry audit.Entry) (revoked bool, err error)
	// Accept uses an invitation up and begins a session. A user who is not there
	// yet is made.
	Accept(ctx context.Context, in Invitation, u User, n NewSession, entries ...audit.Entry) (accepted bool, err error)
}

// Invitation is a place in a workspace that somebody may take.
type Invitation struct {
	ID          string
	WorkspaceID string
	Email       string
	Role        Role
	Hash        []byte // of the token in its link
	CreatedAt   time.Time
	CreatedBy   string
	ExpiresAt   time.Time
}

// Invited is an invitation as the invited person sees it.
type Invited struct {
	Invitation
	Workspace  auth.Workspace
	By         string // the name of who invited, if that is a user
	HasAccount bool
}

// Invite makes an invitation and returns it with the token of its link, which is
// not kept. It takes the place of an earlier one to the same address.
func (s *Service) Invite(ctx context.Context, actor auth.Actor, email, roleName string) (Invitation, string, error) {
	email, err := Email("/email", email)
	if err != nil {
		return Invitation{}, "", err
	}
	role, err := ParseRole("/role", roleName)
	if err != nil {
		return Invitation{}, "", err
	}
	if member, err := s.memberByEmail(ctx, actor.Workspace.ID, email); err != nil || member {
		if err == nil {
			err = alreadyMember(email)
		}
		return Invitation{}, "", err
	}
	token, hash := newToken()
	now := clock.Now()
	in := Invitation{
		ID: uid.At(uid.Invitation, now), WorkspaceID: actor.Workspace.ID, Email: email, Role: role, Hash: hash,
		CreatedAt: now, CreatedBy: actor.Name(), ExpiresAt: now.Add(invitationLife),
	}
	entry := actor.Did("invitation.created", "invitation", in.ID, map[string]any{"email": email, "role": role})
	inserted, err := s.store.InsertInvitation(ctx, in, maxInvitations, entry)
	if err != nil {
		return Invitation{}, "", err
	}
	if !inserted {
		return Invitation{}, "", fault.New(fault.PlanLimitExceeded, "the workspace has %d open invitations; revoke one first", maxInvitations)
	}
	return in, token, nil
}

func (s *Service) memberByEmail(ctx context.Context, workspaceID, email string) (bool, error) {
	u, err := s.store.UserByEmail(ctx, email)
	if err != nil || u == nil {
		return false, err
	}
	member, err := s.store.Member(ctx, workspaceID, u.ID)
	return member != nil, err
}

// Invitations lists the open invitations, newest first.
func (s *Service) Invitations(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Invitation], error) {
	return s.store.Invitations(ctx, actor.Workspace.ID, clock.Now(), page)
}

// Invitation reads an open invitation.
func (s *Service) Invitation(ctx context.Context, actor auth.Actor, id string) (Invitation, error) {
	if !uid.Valid(uid.Invitation, id) {
		return Invitation{}, noInvitation(id)
	}
	found, err := s.store.Invitation(ctx, actor.Workspace.ID, id, clock.Now())
	return fault.Found(found, err, noInvitation, id)
}

// RevokeInvitation takes an invitation back.
func (s *Service) RevokeInvitation(ctx context.Context, actor auth.Actor, id string) error {
	if !uid.Valid(uid.Invitation, id) {
		return noInvitation(id)
	}
	revoked, err := s.store.RevokeInvitation(ctx, actor.Workspace.ID, id, actor.Did("invitation.revoked", "invitation", id, nil))
	if err == nil && !revoked {
		err = noInvitation(id)
	}
	return err
}

func noInvitation(id string) error {
	return fault.New(fault.InvitationNotFound, "there is no invitation %q", id)
}

// Look shows an invitation to whoever has its link.
func (s *Service) Look(ctx context.Context, token string) (Invited, error) {
	in, err := s.invitation(ctx, token)
	if err != nil {
		return Invited{}, err
	}
	out := Invited{Invitation: in}
	workspace, err := s.store.Workspace(ctx, in.WorkspaceID)
	if out.Workspace, err = fault.Found(workspace, err, func(string) error { return noLink() }, ""); err != nil {
		return out, err
	}
	u, err := s.store.UserByEmail(ctx, in.Email)
	if out.HasAccount = u != nil; err != nil || !uid.Valid(uid.User, in.CreatedBy) {
		return out, err
	}
	inviter, err := s.store.User(ctx, in.CreatedBy)
	if inviter != nil {
		out.By = inviter.Name
	}
	return out, err
}

func (s *Service) invitation(ctx context.Context, token string) (Invitation, error) {
	hash := hashOf(token)
	if hash == nil {
		return Invitation{}, noLink()
	}
	in, err := s.store.InvitationByHash(ctx, hash, clock.Now())
	return fault.Found(in, err, func(string) error { return noLink() }, "")
}

// Accept makes a member of somebody who has the link of an invitation and begins
// a session in its workspace. Who has an account shows its password; who has
// none chooses one.
func (s *Service) Accept(ctx context.Context, token, name, password string, visit Visit) (SignedIn, string, error) {
	invited, err := s.Look(ctx, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	u, isNew, err := s.accepting(ctx, invited.Email, name, password)
	if err != nil {
		return SignedIn{}, "", err
	}
	if member, err := s.store.Member(ctx, invited.WorkspaceID, u.ID); err != nil || member != nil {
		if err == nil {
			err = alreadyMember(u.Email)
		}
		return SignedIn{}, "", err
	}
	in, fresh, sessionToken := newSession(u, Membership{invited.Workspace, invited.Role}, visit)
	actor := by(u, invited.Role, invited.Workspace, visit.RequestID)
	entries := []audit.Entry{actor.Did("invitation.accepted", "invitation", invited.ID, map[string]any{"role": invited.Role})}
	if isNew {
		entries = append(entries, actor.Did("user.created", "user", u.ID, map[string]any{"email": u.Email}))
	}
	accepted, err := s.store.Accept(ctx, invited.Invitation, u, fresh, entries...)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !accepted { // it was used up or taken back meanwhile
		return SignedIn{}, "", noLink()
	}
	return in, sessionToken, nil
}

// accepting is the user of an address who shows their password, or a new one.
func (s *Service) accepting(ctx context.Context, email, name, password string) (u User, isNew bool, err error) {
	found, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return User{}, false, err
	}
	if found == nil {
		u, err = s.newUser(ctx, email, name, password)
		return u, true, err
	}
	fits, _, err := s.passwords.verify(ctx, found.Password, password)
	if err == nil && !fits {
		err = wrongCredentials()
	}
	return *found, false, err
}

func alreadyMember(email string) error {
	return fault.New(fault.AlreadyMember, "%s is a member of the workspace already", email)
}
