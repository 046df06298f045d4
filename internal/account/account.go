// Package account owns people: users and their passwords, the sessions in which
// they are signed in, their membership of workspaces with a role, invitations
// and one-time links. What a role may do is a set of the scopes of auth. It does
// not own HTTP, cookies included, nor the counting of attempts.
package account

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

// User is a person. An e-mail address belongs to one user of an installation.
type User struct {
	ID       string
	Email    string
	Name     string
	Password string // as a PHC string; "" for those who sign in elsewhere
	Identity string // who they are at an identity provider; "": nobody yet
	// SeenAt is when the user was last here, to a few minutes.
	SeenAt    *time.Time
	CreatedAt time.Time
}

// Member is a user in a workspace.
type Member struct {
	WorkspaceID string
	Role        Role
	JoinedAt    time.Time
	User        User
}

// Membership is a workspace of a user.
type Membership struct {
	Workspace auth.Workspace
	Role      Role
}

// Visit is where a sign-in comes from.
type Visit struct {
	Address   string
	Agent     string
	RequestID string
}

// Store keeps people. A method is one atomic unit; a pointer result is nil when
// there is no such row, and false says that a condition did not hold.
type Store interface {
	FirstWorkspace(ctx context.Context) (*auth.Workspace, error)
	Workspace(ctx context.Context, id string) (*auth.Workspace, error)
	UserStore
	SessionStore
	MemberStore
	InvitationStore
	TicketStore
}

// Service has the use cases of people.
type Service struct {
	store     Store
	passwords *hasher
	cache     *cache
}

// NewService makes a service on a store.
func NewService(store Store) *Service {
	return &Service{store: store, passwords: newHasher(), cache: newCache()}
}

// newUser checks what a person chose and makes a user of it.
func (s *Service) newUser(ctx context.Context, email, name, password string) (User, error) {
	email, err := Email("/email", email)
	if err != nil {
		return User{}, err
	}
	if name, err = fault.Name("/name", name, maxNameLength); err != nil {
		return User{}, err
	}
	if err := checkPassword(password, email); err != nil {
		return User{}, err
	}
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	now := clock.Now()
	return User{ID: uid.At(uid.User, now), Email: email, Name: name, Password: hash, SeenAt: &now, CreatedAt: now}, nil
}

const maxNameLength = 100

// by is the actor that a user is in a workspace.
func by(u User, role Role, w auth.Workspace, requestID string) auth.Actor {
	return auth.Actor{Workspace: w, Type: audit.ActorUser, ID: u.ID, Scopes: role.Scopes(), RequestID: requestID}
}
