package account

import (
	"context"
	"strings"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Identity is a person as described by an identity provider.
type Identity struct {
	// Issuer names the provider. Subject identifies the person at the provider and
	// is never changed or reassigned.
	Issuer, Subject string
	Email           string
	Verified        bool // the provider has verified the address
	Name            string
}

// key returns the value of User.Identity for the identity.
func (i Identity) key() string { return i.Issuer + " " + i.Subject }

// verifiedEmail returns the address, which the provider must have verified.
func (i Identity) verifiedEmail() (string, error) {
	if !i.Verified {
		return "", fault.New(fault.InsufficientScope, "the identity provider has not verified the e-mail address")
	}
	return Email("/email", i.Email)
}

// Flow is the state that a browser keeps while the user is at the identity
// provider.
type Flow struct {
	State    string
	Nonce    string
	Verifier string
}

// SignInAs starts a session for a person whom an identity provider has
// authenticated. It finds the user by the identity or, at their first sign-in with
// the provider, by the e-mail address. Somebody else may have created that user, by
// accepting an invitation to the address; so from then on only the provider lets
// people in. At the first sign-in a person joins the first workspace with the given
// role. If the role is empty, they do not, and a person without an account is rejected.
func (s *Service) SignInAs(ctx context.Context, identity Identity, role Role, client ClientInfo) (SignedIn, string, error) {
	u, err := s.store.UserByIdentity(ctx, identity.key())
	if err != nil {
		return SignedIn{}, "", err
	}
	if u != nil {
		return s.startSession(ctx, *u, u.Password, client)
	}
	email, err := identity.verifiedEmail()
	if err != nil {
		return SignedIn{}, "", err
	}
	if u, err = s.store.UserByEmail(ctx, email); err != nil {
		return SignedIn{}, "", err
	}
	if u != nil {
		if err := s.bindIdentity(ctx, u, identity, role, client); err != nil {
			return SignedIn{}, "", err
		}
		return s.startSession(ctx, *u, u.Password, client)
	}
	if role == "" {
		return SignedIn{}, "", wrongCredentials()
	}
	return s.joinFirstWorkspace(ctx, email, identity, role, client)
}

// bindIdentity binds the identity to the user with its address, in the place of the
// password and of all sessions. It rejects an identity if the user has another one at
// the same provider: the address may have been reassigned to another person.
func (s *Service) bindIdentity(ctx context.Context, u *User, identity Identity, role Role, client ClientInfo) error {
	if strings.HasPrefix(u.Identity, identity.Issuer+" ") {
		return wrongCredentials()
	}
	home, err := s.oldestMembership(ctx, *u)
	if err != nil {
		return err
	}
	join, err := s.membershipToJoin(ctx, *u, role)
	if err != nil {
		return err
	}
	previous := u.Identity
	u.Identity, u.Password = identity.key(), ""
	entries := []audit.Entry{
		actorFor(*u, home.Role, home.Workspace, client.RequestID).AuditEntry("user.updated", "user", u.ID, map[string]any{"identity_provider": identity.Issuer}),
	}
	if join != nil {
		entries = append(entries, actorFor(*u, join.Role, join.Workspace, client.RequestID).AuditEntry("member.updated", "user", u.ID, map[string]any{"role": join.Role}))
	}
	bound, err := s.store.BindIdentity(ctx, *u, previous, join, entries...)
	s.dropSessions(u.ID)
	if err != nil || bound {
		return err
	}
	// A concurrent sign-in changed the user, possibly of the same person in another
	// tab.
	now, err := s.store.UserByIdentity(ctx, identity.key())
	if err == nil && (now == nil || now.ID != u.ID) {
		err = wrongCredentials()
	}
	return err
}

// membershipToJoin returns the membership of the first workspace that a user gets with
// the role of the provider, or nil if there is no such role or they have one.
func (s *Service) membershipToJoin(ctx context.Context, u User, role Role) (*Membership, error) {
	if role == "" {
		return nil, nil
	}
	first, err := s.store.FirstWorkspace(ctx)
	if err != nil || first == nil {
		return nil, err
	}
	member, err := s.store.Member(ctx, first.ID, u.ID)
	if err != nil || member != nil {
		return nil, err
	}
	return &Membership{*first, role}, nil
}

// joinFirstWorkspace creates a user who is a member of the first workspace.
func (s *Service) joinFirstWorkspace(ctx context.Context, email string, identity Identity, role Role, client ClientInfo) (SignedIn, string, error) {
	workspace, err := s.store.FirstWorkspace(ctx)
	if err != nil || workspace == nil {
		return SignedIn{}, "", err
	}
	u := newIdentifiedUser(email, identity)
	in, fresh, token := newSession(u, Membership{*workspace, role}, client)
	entry := actorFor(u, role, *workspace, client.RequestID).AuditEntry("user.created", "user", u.ID, map[string]any{"email": email, "role": role})
	joined, err := s.store.Join(ctx, u, role, fresh, entry)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !joined { // the user was created concurrently
		return SignedIn{}, "", wrongCredentials()
	}
	return in, token, nil
}

// newIdentifiedUser returns a new user who signs in with an identity provider.
func newIdentifiedUser(email string, identity Identity) User {
	name, err := fault.Name("/name", identity.Name, maxNameLength)
	if err != nil {
		name = truncate(email, maxNameLength)
	}
	now := clock.Now()
	return User{ID: uid.At(uid.User, now), Email: email, Name: name, Identity: identity.key(), SeenAt: &now, CreatedAt: now}
}
