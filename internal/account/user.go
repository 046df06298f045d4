package account

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

// UserStore persists users.
type UserStore interface {
	HasUsers(ctx context.Context) (bool, error)
	Users(ctx context.Context, page paging.Request) (paging.Page[User], error)
	User(ctx context.Context, id string) (*User, error)
	UserByEmail(ctx context.Context, email string) (*User, error)
	UserByIdentity(ctx context.Context, identity string) (*User, error)
	// BindIdentity stores the identity of u, which was previous before, in the place of
	// the password, and ends all sessions of the user. If join is not nil and the user
	// is not a member of its workspace yet, they become one. It returns false if the
	// identity was another one, or if another user has it.
	BindIdentity(ctx context.Context, u User, previous string, join *Membership, entries ...audit.Entry) (bound bool, err error)
	RenameUser(ctx context.Context, id, name string, entry audit.Entry) (renamed bool, err error)
	// ChangePassword stores the password of u if it was oldHash before, and ends all
	// sessions of the user except keepSession.
	ChangePassword(ctx context.Context, u User, oldHash, keepSession string, entry audit.Entry) (changed bool, err error)
	// Memberships lists the workspaces of a user, oldest membership first.
	Memberships(ctx context.Context, userID string) ([]Membership, error)
}

// Change is an update of a user's own account. A nil field is left unchanged.
type Change struct {
	Name     *string
	Password *string
	// Current is the current password, required to change it.
	Current *string
}

// Update changes the account of the signed-in user. A new password ends their
// other sessions.
func (s *Service) Update(ctx context.Context, actor auth.Actor, in SignedIn, change Change) (SignedIn, error) {
	if change.Name != nil {
		name, err := fault.Name("/name", *change.Name, maxNameLength)
		if err != nil {
			return in, err
		}
		change.Name = &name
	}
	if change.Password != nil {
		if err := s.changePassword(ctx, actor, in, change); err != nil {
			return in, err
		}
	} else if change.Current != nil {
		return in, fault.Field("/password", "is required with current_password")
	}
	if change.Name != nil {
		renamed, err := s.store.RenameUser(ctx, in.User.ID, *change.Name, actor.AuditEntry("user.updated", "user", in.User.ID, map[string]any{"name": *change.Name}))
		if err != nil {
			return in, err
		}
		if !renamed {
			return in, notSignedIn()
		}
	}
	s.dropSessions(in.User.ID)
	u, err := s.store.User(ctx, in.User.ID)
	if err != nil {
		return in, err
	}
	if u == nil {
		return in, notSignedIn()
	}
	in.User = *u
	return in, nil
}

func (s *Service) changePassword(ctx context.Context, actor auth.Actor, in SignedIn, change Change) error {
	u, err := s.store.User(ctx, in.User.ID)
	if err != nil {
		return err
	}
	if u == nil {
		return notSignedIn()
	}
	if err := checkPassword(*change.Password, u.Email, u.Name); err != nil {
		return err
	}
	if err := s.checkCurrent(ctx, *u, change.Current); err != nil {
		return err
	}
	oldHash := u.Password
	if u.Password, err = s.passwords.hash(ctx, *change.Password); err != nil {
		return err
	}
	changed, err := s.store.ChangePassword(ctx, *u, oldHash, in.Session.ID, actor.AuditEntry("user.password_changed", "user", u.ID, nil))
	if err != nil {
		return err
	}
	if !changed {
		return fault.Field("/current_password", "is no longer the current password")
	}
	return nil
}

func (s *Service) checkCurrent(ctx context.Context, u User, current *string) error {
	switch {
	case u.Password == "":
		return nil
	case current == nil:
		return fault.Field("/current_password", "is required")
	}
	matches, _, err := s.passwords.verify(ctx, u.Password, *current)
	if err == nil && !matches {
		err = fault.Field("/current_password", "is not the current password")
	}
	return err
}

// Users lists all users of the installation, newest first. It is for the CLI only.
func (s *Service) Users(ctx context.Context, page paging.Request) (paging.Page[User], error) {
	return s.store.Users(ctx, page)
}

// MembershipsOf lists the workspaces of a user. It is for the CLI only.
func (s *Service) MembershipsOf(ctx context.Context, userID string) ([]Membership, error) {
	return s.store.Memberships(ctx, userID)
}
