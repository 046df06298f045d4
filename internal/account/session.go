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
	// IdleTimeout is how long an unused session lasts.
	IdleTimeout = 30 * 24 * time.Hour
	// SessionLifetime is how long any session lasts at most.
	SessionLifetime = 90 * 24 * time.Hour

	maxAgent = 300 // characters
	// touchInterval is the minimum time between writes of a session's last use.
	touchInterval = 5 * time.Minute
)

// SessionStore persists sessions.
type SessionStore interface {
	// InsertSession starts a session if the user still has the password oldHash and
	// the membership. It also stores the password of u, which may be rehashed.
	InsertSession(ctx context.Context, u User, oldHash string, n NewSession) (inserted bool, err error)
	SessionByHash(ctx context.Context, hash []byte) (*SignedIn, error)
	Sessions(ctx context.Context, userID string, page paging.Request) (paging.Page[Session], error)
	// SetSessionWorkspace switches a session to another workspace of its user.
	SetSessionWorkspace(ctx context.Context, userID, id, workspaceID string) (switched bool, err error)
	EndSession(ctx context.Context, userID, id string, entry audit.Entry) (ended bool, err error)
	EndSessions(ctx context.Context, userID string, entry audit.Entry) error
	TouchSession(ctx context.Context, id string, at time.Time) error
}

// Session is a browser session of a user, without its token.
type Session struct {
	ID          string
	UserID      string
	WorkspaceID string // the current one
	CreatedAt   time.Time
	SeenAt      time.Time
	ExpiresAt   time.Time // even if it is used
	Address     string
	Agent       string
}

// Ends returns when the session ends if it is no longer used.
func (s Session) Ends() time.Time {
	if idle := s.SeenAt.Add(IdleTimeout); idle.Before(s.ExpiresAt) {
		return idle
	}
	return s.ExpiresAt
}

// NewSession is a session to insert, with its audit entry.
type NewSession struct {
	Session
	Hash  []byte
	Entry audit.Entry
}

// SignedIn is a session with its user, and their current workspace and role.
type SignedIn struct {
	Session   Session
	User      User
	Role      Role
	Workspace auth.Workspace
}

// Actor returns the actor of the session.
func (in SignedIn) Actor() auth.Actor { return actorFor(in.User, in.Role, in.Workspace, "") }

// SignIn starts a session for an e-mail address and a password. An unknown address
// takes as long as a wrong password and returns the same error.
func (s *Service) SignIn(ctx context.Context, email, password string, client ClientInfo) (SignedIn, string, error) {
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
	matches, outdated, err := s.passwords.verify(ctx, u.Password, password)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !matches {
		if u.ID != "" {
			s.failures.add(u.ID, client, clock.Now())
		}
		return SignedIn{}, "", wrongCredentials()
	}
	oldHash := u.Password
	if outdated {
		if u.Password, err = s.passwords.hash(ctx, password); err != nil {
			return SignedIn{}, "", err
		}
	}
	return s.startSession(ctx, *u, oldHash, client)
}

// startSession starts a session of an authenticated user in the workspace that
// they joined first.
func (s *Service) startSession(ctx context.Context, u User, oldHash string, client ClientInfo) (SignedIn, string, error) {
	home, err := s.oldestMembership(ctx, u)
	if err != nil {
		return SignedIn{}, "", err
	}
	in, fresh, token := newSession(u, home, client)
	inserted, err := s.store.InsertSession(ctx, u, oldHash, fresh)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !inserted { // the password or the membership changed in the meantime
		return SignedIn{}, "", wrongCredentials()
	}
	return in, token, nil
}

func (s *Service) oldestMembership(ctx context.Context, u User) (Membership, error) {
	found, err := s.store.Memberships(ctx, u.ID)
	if err != nil {
		return Membership{}, err
	}
	if len(found) == 0 {
		return Membership{}, wrongCredentials()
	}
	return found[0], nil
}

func newSession(u User, in Membership, client ClientInfo) (SignedIn, NewSession, string) {
	token, hash := newToken()
	now := clock.Now()
	session := Session{
		ID: uid.At(uid.Session, now), UserID: u.ID, WorkspaceID: in.Workspace.ID, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(SessionLifetime),
		Address: client.Address, Agent: truncate(client.Agent, maxAgent),
	}
	entry := actorFor(u, in.Role, in.Workspace, client.RequestID).AuditEntry("session.created", "session", session.ID, map[string]any{"address": client.Address})
	return SignedIn{session, u, in.Role, in.Workspace}, NewSession{session, hash, entry}, token
}

// Authenticate returns the session that a token belongs to.
func (s *Service) Authenticate(ctx context.Context, token string) (SignedIn, error) {
	hash := hashToken(token)
	if hash == nil {
		return SignedIn{}, notSignedIn()
	}
	now := clock.Now()
	in, found := s.cache.Get(string(hash), now)
	if !found {
		generation := s.cache.Generation()
		loaded, err := s.store.SessionByHash(ctx, hash)
		if err != nil {
			return SignedIn{}, err
		}
		if loaded == nil {
			return SignedIn{}, notSignedIn()
		}
		in = *loaded
		s.cache.Put(string(hash), in, now, generation)
	}
	// The cache may have seen a later use than the row.
	if seen := s.cache.LastUse(in.Session.ID); seen.After(in.Session.SeenAt) {
		in.Session.SeenAt = seen
	}
	if !in.Session.Ends().After(now) {
		return SignedIn{}, notSignedIn()
	}
	if now.Sub(in.Session.SeenAt) >= touchInterval {
		s.cache.Touch(in.Session.ID, now)
	}
	return in, nil
}

// dropSessions makes this process read the sessions of a user again.
func (s *Service) dropSessions(userID string) {
	s.cache.Drop(func(in SignedIn) bool { return in.User.ID == userID })
}

// FlushLastUsed writes the times of last use that are due. After an error, the
// next call writes the rest.
func (s *Service) FlushLastUsed(ctx context.Context) error {
	due := s.cache.TakeUnwritten()
	for id, at := range due {
		if err := s.store.TouchSession(ctx, id, at); err != nil {
			s.cache.Restore(due)
			return err
		}
		delete(due, id)
	}
	return nil
}

// Workspaces lists the workspaces of the signed-in user.
func (s *Service) Workspaces(ctx context.Context, in SignedIn) ([]Membership, error) {
	return s.store.Memberships(ctx, in.User.ID)
}

// SwitchWorkspace switches a session to another workspace of its user.
func (s *Service) SwitchWorkspace(ctx context.Context, in SignedIn, workspaceID string) (SignedIn, error) {
	all, err := s.store.Memberships(ctx, in.User.ID)
	if err != nil {
		return in, err
	}
	for _, m := range all {
		if m.Workspace.ID != workspaceID {
			continue
		}
		switched, err := s.store.SetSessionWorkspace(ctx, in.User.ID, in.Session.ID, workspaceID)
		if err != nil {
			return in, err
		}
		if switched {
			s.dropSessions(in.User.ID)
			in.Session.WorkspaceID, in.Workspace, in.Role = workspaceID, m.Workspace, m.Role
			return in, nil
		}
	}
	return in, fault.New(fault.WorkspaceNotFound, "there is no workspace %q", workspaceID)
}

// Sessions lists the sessions of the signed-in user, newest first.
func (s *Service) Sessions(ctx context.Context, in SignedIn, page paging.Request) (paging.Page[Session], error) {
	return s.store.Sessions(ctx, in.User.ID, page)
}

// SessionAddresses returns the client addresses of the latest sessions of the
// user with an e-mail address. There are none if there is no such user.
func (s *Service) SessionAddresses(ctx context.Context, email string) ([]string, error) {
	u, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return nil, err
	}
	if u == nil {
		u = &User{}
	}
	sessions, err := s.store.Sessions(ctx, u.ID, paging.Request{Limit: paging.MaxLimit})
	addresses := make([]string, len(sessions.Items))
	for i, session := range sessions.Items {
		addresses[i] = session.Address
	}
	return addresses, err
}

// SignOut ends a session of the user.
func (s *Service) SignOut(ctx context.Context, actor auth.Actor, id string) error {
	ended, err := s.store.EndSession(ctx, actor.ID, id, actor.AuditEntry("session.ended", "session", id, nil))
	if err != nil {
		return err
	}
	if !ended {
		return fault.New(fault.SessionNotFound, "there is no session %q", id)
	}
	s.dropSessions(actor.ID)
	return nil
}

// EndReplaced ends the session with a token, if there is one: its browser has a new one.
func (s *Service) EndReplaced(ctx context.Context, token, requestID string) error {
	in, err := s.Authenticate(ctx, token)
	if fault.Is(err, fault.Unauthorized) {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.SignOut(ctx, actorFor(in.User, in.Role, in.Workspace, requestID), in.Session.ID)
	if fault.Is(err, fault.SessionNotFound) { // it has ended in the meantime
		return nil
	}
	return err
}

// SignOutEverywhere ends all sessions of the user.
func (s *Service) SignOutEverywhere(ctx context.Context, actor auth.Actor) error {
	err := s.store.EndSessions(ctx, actor.ID, actor.AuditEntry("session.ended", "user", actor.ID, map[string]any{"all": true}))
	s.dropSessions(actor.ID)
	return err
}

func notSignedIn() error { return fault.New(fault.Unauthorized, "you are not signed in") }

func wrongCredentials() error {
	return fault.New(fault.InvalidCredentials, "the e-mail address or the password is wrong")
}
