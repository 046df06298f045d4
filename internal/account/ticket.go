package account

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

const ticketLifetime = 24 * time.Hour

// TicketStore persists tickets.
type TicketStore interface {
	InsertTicket(ctx context.Context, t Ticket, entries ...audit.Entry) error
	TicketByHash(ctx context.Context, kind TicketKind, hash []byte, now time.Time) (*Ticket, error)
	// CreateFirstOwner consumes a ticket and inserts a user who owns the first
	// workspace. It returns false if that workspace has an owner.
	CreateFirstOwner(ctx context.Context, ticketHash []byte, now time.Time, owner User, n NewSession, entries ...audit.Entry) (created bool, err error)
	// ResetPassword consumes a ticket, sets the password, ends all sessions of the
	// user and starts a new one.
	ResetPassword(ctx context.Context, ticketHash []byte, now time.Time, u User, n NewSession, entry audit.Entry) (reset bool, err error)
}

// TicketKind is the purpose of a ticket.
type TicketKind string

// The kinds of tickets.
const (
	// Welcome allows creating the first owner of an installation.
	Welcome TicketKind = "welcome"
	// Reset allows a user to choose a new password.
	Reset TicketKind = "reset"
)

// Ticket authorizes a one-time link.
type Ticket struct {
	Hash      []byte
	Kind      TicketKind
	UserID    string // for Reset
	CreatedAt time.Time
	ExpiresAt time.Time
}

// The pages that links open. The token is in the fragment, which browsers do not
// send, so that it does not appear in logs.
const (
	welcomePage    = "/welcome#token="
	resetPage      = "/reset#token="
	invitationPage = "/invitation#token="
)

// InvitationLink returns the link of an invitation.
func InvitationLink(base, token string) string { return base + invitationPage + token }

// WelcomeLink returns a link for creating the first owner, or "" if the first
// workspace has one. Having users is not enough: those who were invited with an
// API key or came from an identity provider may not be owners. It shows the link, if
// show is not nil, before the link works.
func (s *Service) WelcomeLink(ctx context.Context, base string, show auth.Show) (string, error) {
	first, err := s.store.FirstWorkspace(ctx)
	if err != nil || first == nil {
		return "", err
	}
	if owned, err := s.store.HasOwner(ctx, first.ID); err != nil || owned {
		return "", err
	}
	return s.newLink(ctx, Ticket{Kind: Welcome}, base+welcomePage, show)
}

// ResetLink returns a link with which a user can choose a new password. It is for
// the CLI only. It shows the link, if show is not nil, before the link works.
func (s *Service) ResetLink(ctx context.Context, base, email string, show auth.Show) (string, error) {
	email, err := Email("/email", email)
	if err != nil {
		return "", err
	}
	u, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return "", err
	}
	if u == nil {
		return "", fault.Field("/email", "there is no user with the address %s", email)
	}
	home, err := s.oldestMembership(ctx, *u)
	if err != nil {
		return "", err
	}
	actor := auth.Actor{Workspace: home.Workspace, Type: audit.ActorCLI}
	return s.newLink(ctx, Ticket{Kind: Reset, UserID: u.ID}, base+resetPage, show, actor.AuditEntry("user.link_created", "user", u.ID, nil))
}

func (s *Service) newLink(ctx context.Context, t Ticket, page string, show auth.Show, entries ...audit.Entry) (string, error) {
	var token string
	token, t.Hash = newToken()
	if err := show.Call(page + token); err != nil {
		return "", err
	}
	t.CreatedAt = clock.Now()
	t.ExpiresAt = t.CreatedAt.Add(ticketLifetime)
	return page + token, s.store.InsertTicket(ctx, t, entries...)
}

// NeedsSetup reports whether the installation has no users yet.
func (s *Service) NeedsSetup(ctx context.Context) (bool, error) {
	has, err := s.store.HasUsers(ctx)
	return !has, err
}

// CreateFirstOwner creates the first owner of the first workspace and signs them
// in. Of concurrent calls, one succeeds.
func (s *Service) CreateFirstOwner(ctx context.Context, token, email, name, password string, client ClientInfo) (SignedIn, string, error) {
	ticket, err := s.ticket(ctx, Welcome, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	workspace, err := s.store.FirstWorkspace(ctx)
	if err != nil || workspace == nil {
		if err == nil {
			err = invalidLink()
		}
		return SignedIn{}, "", err
	}
	recheck := func() error {
		_, err := s.ticket(ctx, Welcome, token)
		return err
	}
	owner, err := s.newUser(withRecheck(ctx, recheck), email, name, password)
	if err != nil {
		return SignedIn{}, "", err
	}
	in, fresh, sessionToken := newSession(owner, Membership{*workspace, Owner}, client)
	entry := actorFor(owner, Owner, *workspace, client.RequestID).AuditEntry("user.created", "user", owner.ID, map[string]any{"email": owner.Email, "role": Owner})
	created, err := s.store.CreateFirstOwner(ctx, ticket.Hash, clock.Now(), owner, fresh, entry)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !created {
		return SignedIn{}, "", invalidLink()
	}
	return in, sessionToken, nil
}

// ResetPassword sets the password of a user, ends their sessions and signs them
// in.
func (s *Service) ResetPassword(ctx context.Context, token, password string, client ClientInfo) (SignedIn, string, error) {
	ticket, err := s.ticket(ctx, Reset, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	found, err := s.store.User(ctx, ticket.UserID)
	u, err := fault.Found(found, err, func(string) error { return invalidLink() }, "")
	if err != nil {
		return SignedIn{}, "", err
	}
	home, err := s.oldestMembership(ctx, u)
	if err != nil {
		return SignedIn{}, "", err
	}
	if err := checkPassword(password, u.Email, u.Name); err != nil {
		return SignedIn{}, "", err
	}
	if u.Password, err = s.passwords.hash(ctx, password); err != nil {
		return SignedIn{}, "", err
	}
	in, fresh, sessionToken := newSession(u, home, client)
	entry := in.Actor().AuditEntry("user.password_changed", "user", u.ID, map[string]any{"by": "link"})
	entry.RequestID = client.RequestID
	reset, err := s.store.ResetPassword(ctx, ticket.Hash, clock.Now(), u, fresh, entry)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !reset {
		return SignedIn{}, "", invalidLink()
	}
	s.dropSessions(u.ID)
	return in, sessionToken, nil
}

func (s *Service) ticket(ctx context.Context, kind TicketKind, token string) (Ticket, error) {
	hash := hashToken(token)
	if hash == nil {
		return Ticket{}, invalidLink()
	}
	found, err := s.store.TicketByHash(ctx, kind, hash, clock.Now())
	return fault.Found(found, err, func(string) error { return invalidLink() }, "")
}

func invalidLink() error {
	return fault.New(fault.LinkNotFound, "the link is not valid: it has been used, has expired or never existed")
}
