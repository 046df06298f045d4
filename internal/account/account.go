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
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// User is a person. An e-mail address belongs to one user of an installation.
type User struct {
	ID       string
	Email    string
	Name     string
	Password string // as a PHC string; "" for those who sign in elsewhere
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

	HasUsers(ctx context.Context) (bool, error)
	Users(ctx context.Context, page paging.Request) (paging.Page[User], error)
	User(ctx context.Context, id string) (*User, error)
	UserByEmail(ctx context.Context, email string) (*User, error)
	RenameUser(ctx context.Context, id, name string, entry audit.Entry) (renamed bool, err error)
	// ChangePassword does so if it is still the old one, and ends all sessions
	// of the user but one.
	ChangePassword(ctx context.Context, u User, was, keep string, entry audit.Entry) (changed bool, err error)
	// Memberships lists the workspaces of a user, the oldest membership first.
	Memberships(ctx context.Context, userID string) ([]Membership, error)

	// InsertSession begins a session if the user still has the password that was
	// read, and the membership. It also writes the user's own password anew.
	InsertSession(ctx context.Context, u User, was string, n NewSession) (inserted bool, err error)
	SessionByHash(ctx context.Context, hash []byte) (*SignedIn, error)
	Sessions(ctx context.Context, userID string, page paging.Request) (paging.Page[Session], error)
	// MoveSession lets a session act in another workspace of its user.
	MoveSession(ctx context.Context, userID, id, workspaceID string) (moved bool, err error)
	EndSession(ctx context.Context, userID, id string, entry audit.Entry) (ended bool, err error)
	EndSessions(ctx context.Context, userID string, entry audit.Entry) error
	TouchSession(ctx context.Context, id string, at time.Time) error

	Members(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Member], error)
	Member(ctx context.Context, workspaceID, userID string) (*Member, error)
	// SetRole and RemoveMember answer LastOwner when nobody else owns the
	// workspace.
	SetRole(ctx context.Context, workspaceID, userID string, role Role, entry audit.Entry) (Outcome, error)
	RemoveMember(ctx context.Context, workspaceID, userID string, entry audit.Entry) (Outcome, error)

	Invitation(ctx context.Context, workspaceID, id string, now time.Time) (*Invitation, error)
	Invitations(ctx context.Context, workspaceID string, now time.Time, page paging.Request) (paging.Page[Invitation], error)
	// InsertInvitation takes the place of an earlier one to the same address. It
	// refuses, with false, when the workspace has atMost open ones.
	InsertInvitation(ctx context.Context, in Invitation, atMost int, entry audit.Entry) (inserted bool, err error)
	RevokeInvitation(ctx context.Context, workspaceID, id string, entry audit.Entry) (revoked bool, err error)
	InvitationByHash(ctx context.Context, hash []byte, now time.Time) (*Invitation, error)
	// Accept uses an invitation up and begins a session. A user who is not there
	// yet is made.
	Accept(ctx context.Context, in Invitation, u User, n NewSession, entries ...audit.Entry) (accepted bool, err error)
	// Join makes a member of a workspace without an invitation, and begins a
	// session.
	Join(ctx context.Context, u User, role Role, n NewSession, entries ...audit.Entry) (joined bool, err error)

	InsertTicket(ctx context.Context, t Ticket, entries ...audit.Entry) error
	TicketByHash(ctx context.Context, kind TicketKind, hash []byte, now time.Time) (*Ticket, error)
	// Found makes the first user of an installation, the owner of its first
	// workspace, for a ticket that it uses up.
	Found(ctx context.Context, ticketHash []byte, now time.Time, owner User, n NewSession, entries ...audit.Entry) (founded bool, err error)
	// ResetPassword uses a ticket up and ends all sessions of the user before it
	// begins one.
	ResetPassword(ctx context.Context, ticketHash []byte, now time.Time, u User, n NewSession, entry audit.Entry) (reset bool, err error)
}

// Outcome is what became of a change of a member.
type Outcome int

// The outcomes.
const (
	Done Outcome = iota
	Missing
	LastOwner
)

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
	if err := checkPassword("/password", password, email); err != nil {
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
