package account

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

const (
	invitationLifetime = 7 * 24 * time.Hour
	maxInvitations     = 500
)

// InvitationStore persists invitations.
type InvitationStore interface {
	Invitation(ctx context.Context, workspaceID, id string, now time.Time) (*Invitation, error)
	Invitations(ctx context.Context, workspaceID string, now time.Time, page paging.Request) (paging.Page[Invitation], error)
	InvitationByHash(ctx context.Context, hash []byte, now time.Time) (*Invitation, error)
	// InsertInvitation replaces an earlier invitation to the same address. It
	// returns false if the workspace has limit open invitations.
	InsertInvitation(ctx context.Context, in Invitation, limit int, entry audit.Entry) (inserted bool, err error)
	RevokeInvitation(ctx context.Context, workspaceID, id string, entry audit.Entry) (revoked bool, err error)
	// Accept consumes an invitation and starts a session. It inserts the user if
	// they do not exist yet.
	Accept(ctx context.Context, in Invitation, u User, n NewSession, entries ...audit.Entry) (accepted bool, err error)
}

// Invitation offers a person membership of a workspace.
type Invitation struct {
	ID          string
	WorkspaceID string
	Email       string
	Role        Role
	Hash        []byte // of the token in the link
	CreatedAt   time.Time
	CreatedBy   string
	ExpiresAt   time.Time
}

// InvitationPreview is an invitation as shown to the invited person.
type InvitationPreview struct {
	Invitation
	Workspace  auth.Workspace
	By         string // name of the user who invited; "" if it was not a user
	HasAccount bool
	// HasPassword is false if the account can only be used with an identity provider.
	HasPassword bool
}

// Invite creates an invitation and returns it with the token of its link, which
// is not stored. It replaces an earlier invitation to the same address.
func (s *Service) Invite(ctx context.Context, actor auth.Actor, email, roleName string) (Invitation, string, error) {
	email, badEmail := Email("/email", email)
	role, badRole := ParseRole("/role", roleName)
	if err := fault.Fields(badEmail, badRole); err != nil {
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
		CreatedAt: now, CreatedBy: actor.Name(), ExpiresAt: now.Add(invitationLifetime),
	}
	entry := actor.AuditEntry("invitation.created", "invitation", in.ID, map[string]any{"email": email, "role": role})
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

// Invitation returns an open invitation.
func (s *Service) Invitation(ctx context.Context, actor auth.Actor, id string) (Invitation, error) {
	if !uid.Valid(uid.Invitation, id) {
		return Invitation{}, invitationNotFound(id)
	}
	found, err := s.store.Invitation(ctx, actor.Workspace.ID, id, clock.Now())
	return fault.Found(found, err, invitationNotFound, id)
}

// RevokeInvitation revokes an open invitation.
func (s *Service) RevokeInvitation(ctx context.Context, actor auth.Actor, id string) error {
	if !uid.Valid(uid.Invitation, id) {
		return invitationNotFound(id)
	}
	revoked, err := s.store.RevokeInvitation(ctx, actor.Workspace.ID, id, actor.AuditEntry("invitation.revoked", "invitation", id, nil))
	if err == nil && !revoked {
		err = invitationNotFound(id)
	}
	return err
}

func invitationNotFound(id string) error {
	return fault.New(fault.InvitationNotFound, "there is no invitation %q", id)
}

// PreviewInvitation returns the invitation that the token of a link belongs to.
func (s *Service) PreviewInvitation(ctx context.Context, token string) (InvitationPreview, error) {
	in, err := s.invitation(ctx, token)
	if err != nil {
		return InvitationPreview{}, err
	}
	out := InvitationPreview{Invitation: in}
	workspace, err := s.store.Workspace(ctx, in.WorkspaceID)
	if out.Workspace, err = fault.Found(workspace, err, func(string) error { return invalidLink() }, ""); err != nil {
		return out, err
	}
	u, err := s.store.UserByEmail(ctx, in.Email)
	out.HasAccount, out.HasPassword = u != nil, u != nil && u.Password != ""
	if err != nil || !uid.Valid(uid.User, in.CreatedBy) {
		return out, err
	}
	inviter, err := s.store.User(ctx, in.CreatedBy)
	if inviter != nil {
		out.By = inviter.Name
	}
	return out, err
}

func (s *Service) invitation(ctx context.Context, token string) (Invitation, error) {
	hash := hashToken(token)
	if hash == nil {
		return Invitation{}, invalidLink()
	}
	in, err := s.store.InvitationByHash(ctx, hash, clock.Now())
	return fault.Found(in, err, func(string) error { return invalidLink() }, "")
}

// Accept adds the invited person to the workspace and starts a session in it. A
// person with an account confirms it with its password; a person without one
// chooses a name and a password.
func (s *Service) Accept(ctx context.Context, token, name, password string, client ClientInfo) (SignedIn, string, error) {
	invited, err := s.PreviewInvitation(ctx, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	u, isNew, err := s.acceptingUser(ctx, invited.Email, name, password, client)
	if err != nil {
		return SignedIn{}, "", err
	}
	return s.accept(ctx, invited, u, isNew, client)
}

// ErrOtherAddress reports that the provider authenticated somebody else than the person
// whom the invitation is for.
var ErrOtherAddress = errors.New("the invitation is for another e-mail address")

// AcceptAs adds an invited person whom an identity provider has authenticated to the
// workspace and starts a session in it. They join no other workspace.
func (s *Service) AcceptAs(ctx context.Context, identity Identity, token string, client ClientInfo) (SignedIn, string, error) {
	invited, err := s.PreviewInvitation(ctx, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	u, isNew, err := s.identifiedUser(ctx, identity, invited.Email, client)
	if err != nil {
		return SignedIn{}, "", err
	}
	return s.accept(ctx, invited, u, isNew, client)
}

// identifiedUser returns the user with the identity, or a new user if there is none. The
// e-mail address must be that of the user or one that the provider has verified.
func (s *Service) identifiedUser(ctx context.Context, identity Identity, email string, client ClientInfo) (u User, isNew bool, err error) {
	found, err := s.store.UserByIdentity(ctx, identity.key())
	if err != nil {
		return User{}, false, err
	}
	if found != nil && found.Email == email {
		return *found, false, nil
	}
	claimed, err := identity.verifiedEmail()
	if err != nil {
		return User{}, false, err
	}
	if claimed != email {
		return User{}, false, ErrOtherAddress
	}
	if found == nil {
		if found, err = s.store.UserByEmail(ctx, email); err != nil {
			return User{}, false, err
		}
		if found == nil {
			return newIdentifiedUser(email, identity), true, nil
		}
		err = s.bindIdentity(ctx, found, identity, "", client)
	}
	return *found, false, err
}

func (s *Service) accept(ctx context.Context, invited InvitationPreview, u User, isNew bool, client ClientInfo) (SignedIn, string, error) {
	if member, err := s.store.Member(ctx, invited.WorkspaceID, u.ID); err != nil || member != nil {
		if err == nil {
			err = alreadyMember(u.Email)
		}
		return SignedIn{}, "", err
	}
	in, fresh, sessionToken := newSession(u, Membership{invited.Workspace, invited.Role}, client)
	actor := actorFor(u, invited.Role, invited.Workspace, client.RequestID)
	entries := []audit.Entry{actor.AuditEntry("invitation.accepted", "invitation", invited.ID, map[string]any{"role": invited.Role})}
	if isNew {
		entries = append(entries, actor.AuditEntry("user.created", "user", u.ID, map[string]any{"email": u.Email}))
	}
	accepted, err := s.store.Accept(ctx, invited.Invitation, u, fresh, entries...)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !accepted { // used or revoked in the meantime
		return SignedIn{}, "", invalidLink()
	}
	return in, sessionToken, nil
}

// acceptingUser returns the user with the address if the password is theirs, or a
// new user if there is none.
func (s *Service) acceptingUser(ctx context.Context, email, name, password string, client ClientInfo) (u User, isNew bool, err error) {
	found, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return User{}, false, err
	}
	if found == nil {
		u, err = s.newUser(ctx, email, name, password)
		return u, true, err
	}
	matches, _, err := s.passwords.verify(ctx, found.Password, password)
	if err == nil && !matches {
		s.failures.add(found.ID, client, clock.Now())
		err = wrongCredentials()
	}
	return *found, false, err
}

func alreadyMember(email string) error {
	return fault.New(fault.AlreadyMember, "%s is already a member of the workspace", email)
}
