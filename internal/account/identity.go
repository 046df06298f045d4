package account

import (
	"context"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Identity is who somebody is, as an identity provider says.
type Identity struct {
	// Issuer names the provider, Subject the person: for good, and for nobody else.
	Issuer, Subject string
	Email           string
	Verified        bool // that the address is the person's own
	Name            string
}

// key is what a user is known by.
func (i Identity) key() string { return i.Issuer + " " + i.Subject }

// Flow is what a browser keeps while it is at an identity provider.
type Flow struct {
	State    string
	Nonce    string
	Verifier string
}

// SignInAs begins a session for somebody whom an identity provider knows. A user
// is known by what the provider calls them, and before they first come from there
// by their address. Somebody who is none becomes a member of the first workspace
// with the given role; without a role they are refused.
func (s *Service) SignInAs(ctx context.Context, who Identity, role Role, visit Visit) (SignedIn, string, error) {
	u, err := s.store.UserByIdentity(ctx, who.key())
	if err != nil {
		return SignedIn{}, "", err
	}
	if u != nil {
		return s.begin(ctx, *u, u.Password, visit)
	}
	if !who.Verified {
		return SignedIn{}, "", fault.New(fault.InsufficientScope, "the identity provider does not vouch for the e-mail address")
	}
	email, err := Email("/email", who.Email)
	if err != nil {
		return SignedIn{}, "", err
	}
	if u, err = s.store.UserByEmail(ctx, email); err != nil {
		return SignedIn{}, "", err
	}
	if u != nil {
		if err := s.bind(ctx, u, who, visit); err != nil {
			return SignedIn{}, "", err
		}
		return s.begin(ctx, *u, u.Password, visit)
	}
	if role == "" {
		return SignedIn{}, "", wrongCredentials()
	}
	return s.admit(ctx, email, who, role, visit)
}

// bind makes somebody who comes from the provider for the first time the user
// with their address. One whom the same provider has called something else is
// another person: addresses are given to others.
func (s *Service) bind(ctx context.Context, u *User, who Identity, visit Visit) error {
	if strings.HasPrefix(u.Identity, who.Issuer+" ") {
		return wrongCredentials()
	}
	home, err := s.home(ctx, *u)
	if err != nil {
		return err
	}
	was := u.Identity
	u.Identity = who.key()
	entry := by(*u, home.Role, home.Workspace, visit.RequestID).Did("user.updated", "user", u.ID, map[string]any{"identity_provider": who.Issuer})
	bound, err := s.store.BindIdentity(ctx, *u, was, entry)
	if err != nil || bound {
		return err
	}
	// Somebody was faster: the same person maybe, in another tab.
	now, err := s.store.UserByIdentity(ctx, who.key())
	if err == nil && (now == nil || now.ID != u.ID) {
		err = wrongCredentials()
	}
	return err
}

// admit makes a member of the first workspace.
func (s *Service) admit(ctx context.Context, email string, who Identity, role Role, visit Visit) (SignedIn, string, error) {
	workspace, err := s.store.FirstWorkspace(ctx)
	if err != nil || workspace == nil {
		return SignedIn{}, "", err
	}
	name, err := fault.Name("/name", who.Name, maxNameLength)
	if err != nil {
		name = email[:min(len(email), maxNameLength)]
	}
	now := clock.Now()
	u := User{ID: uid.At(uid.User, now), Email: email, Name: name, Identity: who.key(), SeenAt: &now, CreatedAt: now}
	in, fresh, token := newSession(u, Membership{*workspace, role}, visit)
	entry := by(u, role, *workspace, visit.RequestID).Did("user.created", "user", u.ID, map[string]any{"email": email, "role": role})
	joined, err := s.store.Join(ctx, u, role, fresh, entry)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !joined { // somebody else made the same user at this moment
		return SignedIn{}, "", wrongCredentials()
	}
	return in, token, nil
}
