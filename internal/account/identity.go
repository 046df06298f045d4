package account

import (
	"context"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// Identity is who somebody is, as an identity provider says.
type Identity struct {
	Email    string
	Verified bool // that the address is the person's own
	Name     string
}

// Flow is what a browser keeps while it is at an identity provider.
type Flow struct {
	State    string
	Nonce    string
	Verifier string
}

// SignInAs begins a session for somebody whom an identity provider knows. A user
// is found by their address. Somebody who is none becomes a member of the first
// workspace with the given role; without a role they are refused.
func (s *Service) SignInAs(ctx context.Context, who Identity, role Role, visit Visit) (SignedIn, string, error) {
	if !who.Verified {
		return SignedIn{}, "", fault.New(fault.InsufficientScope, "the identity provider does not vouch for the e-mail address")
	}
	email, err := Email("/email", who.Email)
	if err != nil {
		return SignedIn{}, "", err
	}
	u, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return SignedIn{}, "", err
	}
	if u != nil {
		return s.begin(ctx, *u, u.Password, visit)
	}
	if role == "" {
		return SignedIn{}, "", wrongCredentials()
	}
	return s.admit(ctx, email, who.Name, role, visit)
}

// admit makes a member of the first workspace.
func (s *Service) admit(ctx context.Context, email, name string, role Role, visit Visit) (SignedIn, string, error) {
	workspace, err := s.store.FirstWorkspace(ctx)
	if err != nil || workspace == nil {
		return SignedIn{}, "", err
	}
	if name, err = fault.Name("/name", name, maxNameLength); err != nil {
		name = email[:min(len(email), maxNameLength)]
	}
	now := clock.Now()
	u := User{ID: uid.At(uid.User, now), Email: email, Name: name, SeenAt: &now, CreatedAt: now}
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
