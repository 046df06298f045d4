// Package account owns users: their passwords, sessions and workspace
// memberships, and the invitations and one-time links that let them in. A role
// maps to a set of scopes of package auth. It does not own HTTP, including
// cookies, nor the rate limiting of sign-ins.
package account

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/credcache"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// User is a person. An e-mail address belongs to one user of an installation.
type User struct {
	ID       string
	Email    string
	Name     string
	Password string // a PHC string; "" if the user signs in with an identity provider only
	Identity string // Identity.key at the identity provider; "" if none is bound
	// SeenAt is the time of the user's last request, to within a few minutes.
	SeenAt    *time.Time
	CreatedAt time.Time
}

// Member is a user as a member of a workspace.
type Member struct {
	WorkspaceID string
	Role        Role
	JoinedAt    time.Time
	User        User
}

// Membership is a workspace that a user belongs to.
type Membership struct {
	Workspace auth.Workspace
	Role      Role
}

// ClientInfo describes the client that signs in.
type ClientInfo struct {
	Address   string
	Agent     string
	RequestID string
}

// Store persists accounts. Each method is one transaction. A pointer result is
// nil if there is no such row. A false result means that a condition did not hold
// and nothing was changed.
type Store interface {
	In(tx txn.Tx) Store
	FirstWorkspace(ctx context.Context) (*auth.Workspace, error)
	Workspace(ctx context.Context, id string) (*auth.Workspace, error)
	// RecordAudit writes audit entries about what changed nothing.
	RecordAudit(ctx context.Context, entries ...audit.Entry) error
	UserStore
	SessionStore
	MemberStore
	InvitationStore
	TicketStore
}

// Service implements the use cases of accounts.
type Service struct {
	store     Store
	passwords *hasher
	cache     *credcache.Cache[SignedIn]
	failures  *failures
}

// Option configures a Service.
type Option func(*Service)

// WithCost sets the cost of new password hashes in place of DefaultCost.
func WithCost(c Cost) Option { return func(s *Service) { s.passwords = newHasher(c) } }

// NewService returns a service that uses the given store.
func NewService(store Store, options ...Option) *Service {
	s := &Service{store: store, passwords: newHasher(DefaultCost()), cache: credcache.New[SignedIn](touchInterval), failures: newFailures()}
	for _, apply := range options {
		apply(s)
	}
	return s
}

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// newUser validates the input and returns a user with a hashed password.
func (s *Service) newUser(ctx context.Context, email, name, password string) (User, error) {
	email, badEmail := Email("/email", email)
	name, badName := fault.Name("/name", name, maxNameLength)
	if err := fault.Fields(badEmail, badName, checkPassword(password, email, name)); err != nil {
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

// truncate returns the first n characters of text.
func truncate(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
}

func actorFor(u User, role Role, w auth.Workspace, requestID string) auth.Actor {
	return auth.Actor{Workspace: w, Type: audit.ActorUser, ID: u.ID, Label: u.Name, Scopes: role.Scopes(), RequestID: requestID}
}
