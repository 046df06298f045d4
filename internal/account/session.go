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
	// IdleLife is how long a session lasts that nobody uses.
	IdleLife = 30 * 24 * time.Hour
	// SessionLife is how long a session lasts at most.
	SessionLife = 90 * 24 * time.Hour

	maxAgent = 300
)

// SessionStore keeps sessions.
type SessionStore interface {
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
}

// Session is a browser in which a user is signed in, without its token.
type Session struct {
	ID          string
	UserID      string
	WorkspaceID string // the one it acts in
	CreatedAt   time.Time
	SeenAt      time.Time
	ExpiresAt   time.Time // whatever happens
	Address     string
	Agent       string
}

// Ends is when the session ends if nobody uses it any more.
func (s Session) Ends() time.Time {
	if idle := s.SeenAt.Add(IdleLife); idle.Before(s.ExpiresAt) {
		return idle
	}
	return s.ExpiresAt
}

// NewSession is a session that begins, with its record.
type NewSession struct {
	Session
	Hash  []byte
	Entry audit.Entry
}

// SignedIn is what a session stands for at this moment.
type SignedIn struct {
	Session   Session
	User      User
	Role      Role
	Workspace auth.Workspace
}

// Actor is who a signed-in user acts as.
func (in SignedIn) Actor() auth.Actor { return by(in.User, in.Role, in.Workspace, "") }

// SignIn begins a session for an e-mail address and a password. An address that
// nobody has takes as long as a wrong password, and is answered the same.
func (s *Service) SignIn(ctx context.Context, email, password string, visit Visit) (SignedIn, string, error) {
	email, err := Email("/email", email)
	if err != nil {
		return SignedIn{}, "", err
	}
	u, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return SignedIn{}, "", err
	}
	if u == nil {
		u = &User{}
	}
	fits, outdated, err := s.passwords.verify(ctx, u.Password, password)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !fits {
		return SignedIn{}, "", wrongCredentials()
	}
	was := u.Password
	if outdated {
		if u.Password, err = s.passwords.hash(ctx, password); err != nil {
			return SignedIn{}, "", err
		}
	}
	return s.begin(ctx, *u, was, visit)
}

// begin begins a session of a user who has shown who they are, in the workspace
// that they have been in for longest.
func (s *Service) begin(ctx context.Context, u User, was string, visit Visit) (SignedIn, string, error) {
	home, err := s.home(ctx, u)
	if err != nil {
		return SignedIn{}, "", err
	}
	in, fresh, token := newSession(u, home, visit)
	inserted, err := s.store.InsertSession(ctx, u, was, fresh)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !inserted { // the password or the membership changed meanwhile
		return SignedIn{}, "", wrongCredentials()
	}
	return in, token, nil
}

func (s *Service) home(ctx context.Context, u User) (Membership, error) {
	found, err := s.store.Memberships(ctx, u.ID)
	if err != nil {
		return Membership{}, err
	}
	if len(found) == 0 {
		return Membership{}, wrongCredentials()
	}
	return found[0], nil
}

func newSession(u User, in Membership, visit Visit) (SignedIn, NewSession, string) {
	token, hash := newToken()
	now := clock.Now()
	if len(visit.Agent) > maxAgent {
		visit.Agent = visit.Agent[:maxAgent]
	}
	session := Session{
		ID: uid.At(uid.Session, now), UserID: u.ID, WorkspaceID: in.Workspace.ID, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(SessionLife),
		Address: visit.Address, Agent: visit.Agent,
	}
	entry := by(u, in.Role, in.Workspace, visit.RequestID).Did("session.created", "session", session.ID, map[string]any{"address": visit.Address})
	return SignedIn{session, u, in.Role, in.Workspace}, NewSession{session, hash, entry}, token
}

// Authenticate finds who is behind the token of a session.
func (s *Service) Authenticate(ctx context.Context, token string) (SignedIn, error) {
	hash := hashOf(token)
	if hash == nil {
		return SignedIn{}, notSignedIn()
	}
	now := clock.Now()
	found := s.cache.get(hash, now)
	if found == nil {
		loaded, err := s.store.SessionByHash(ctx, hash)
		if err != nil {
			return SignedIn{}, err
		}
		if loaded == nil {
			return SignedIn{}, notSignedIn()
		}
		found = s.cache.put(hash, *loaded, now)
	}
	// What the cache has seen since the row was read counts too.
	in := found.signedIn
	if seen, ok := s.cache.lastSeen(in.Session.ID); ok && seen.After(in.Session.SeenAt) {
		in.Session.SeenAt = seen
	}
	if !in.Session.Ends().After(now) {
		return SignedIn{}, notSignedIn()
	}
	s.cache.use(in.Session.ID, in.Session.SeenAt, now)
	return in, nil
}

// FlushUse writes when sessions were used.
func (s *Service) FlushUse(ctx context.Context) error {
	for id, at := range s.cache.takeSeen() {
		if err := s.store.TouchSession(ctx, id, at); err != nil {
			return err
		}
	}
	return nil
}

// Workspaces lists the workspaces of a user.
func (s *Service) Workspaces(ctx context.Context, in SignedIn) ([]Membership, error) {
	return s.store.Memberships(ctx, in.User.ID)
}

// Move lets a session act in another workspace of its user.
func (s *Service) Move(ctx context.Context, in SignedIn, workspaceID string) (SignedIn, error) {
	all, err := s.store.Memberships(ctx, in.User.ID)
	if err != nil {
		return in, err
	}
	for _, m := range all {
		if m.Workspace.ID != workspaceID {
			continue
		}
		moved, err := s.store.MoveSession(ctx, in.User.ID, in.Session.ID, workspaceID)
		if err != nil {
			return in, err
		}
		if moved {
			s.cache.dropUser(in.User.ID)
			in.Session.WorkspaceID, in.Workspace, in.Role = workspaceID, m.Workspace, m.Role
			return in, nil
		}
	}
	return in, fault.New(fault.WorkspaceNotFound, "there is no workspace %q", workspaceID)
}

// Sessions lists the sessions of a user, newest first.
func (s *Service) Sessions(ctx context.Context, in SignedIn, page paging.Request) (paging.Page[Session], error) {
	return s.store.Sessions(ctx, in.User.ID, page)
}

// SignOut ends a session of the user.
func (s *Service) SignOut(ctx context.Context, actor auth.Actor, id string) error {
	ended, err := s.store.EndSession(ctx, actor.ID, id, actor.Did("session.ended", "session", id, nil))
	if err != nil {
		return err
	}
	if !ended {
		return fault.New(fault.SessionNotFound, "there is no session %q", id)
	}
	s.cache.dropUser(actor.ID)
	return nil
}

// SignOutEverywhere ends all sessions of the user.
func (s *Service) SignOutEverywhere(ctx context.Context, actor auth.Actor) error {
	err := s.store.EndSessions(ctx, actor.ID, actor.Did("session.ended", "user", actor.ID, map[string]any{"all": true}))
	s.cache.dropUser(actor.ID)
	return err
}

func notSignedIn() error { return fault.New(fault.Unauthorized, "you are not signed in") }

func wrongCredentials() error {
	return fault.New(fault.InvalidCredentials, "the e-mail address or the password is wrong")
}
