package account

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
)

const ticketLife = 24 * time.Hour

// TicketStore keeps tickets.
type TicketStore interface {
	InsertTicket(ctx context.Context, t Ticket, entries ...audit.Entry) error
	TicketByHash(ctx context.Context, kind TicketKind, hash []byte, now time.Time) (*Ticket, error)
	// Found makes the first user of an installation, the owner of its first
	// workspace, for a ticket that it uses up.
	Found(ctx context.Context, ticketHash []byte, now time.Time, owner User, n NewSession, entries ...audit.Entry) (founded bool, err error)
	// ResetPassword uses a ticket up and ends all sessions of the user before it
	// begins one.
	ResetPassword(ctx context.Context, ticketHash []byte, now time.Time, u User, n NewSession, entry audit.Entry) (reset bool, err error)
}

// TicketKind says what a ticket is for.
type TicketKind string

// The kinds of tickets.
const (
	// Welcome lets somebody make the first user of an installation.
	Welcome TicketKind = "welcome"
	// Reset lets a user choose a new password.
	Reset TicketKind = "reset"
)

// Ticket is a link that works once.
type Ticket struct {
	Hash      []byte
	Kind      TicketKind
	UserID    string // of a reset
	CreatedAt time.Time
	ExpiresAt time.Time
}

// The pages that links lead to. The token stands behind a #, so that it is sent
// to nobody and in no log.
const (
	welcomePage    = "/welcome#token="
	resetPage      = "/reset#token="
	invitationPage = "/invitation#token="
)

// InvitationLink is where an invited person goes.
func InvitationLink(base, token string) string { return base + invitationPage + token }

// WelcomeLink makes a link to create the first user, below a base URL. It is
// empty when there are users.
func (s *Service) WelcomeLink(ctx context.Context, base string) (string, error) {
	needed, err := s.Needed(ctx)
	if err != nil || !needed {
		return "", err
	}
	return s.newLink(ctx, Ticket{Kind: Welcome}, base+welcomePage)
}

// ResetLink makes a link with which a user chooses a new password. It is for the
// person at the machine.
func (s *Service) ResetLink(ctx context.Context, base, email string) (string, error) {
	email, err := Email("/email", email)
	if err != nil {
		return "", err
	}
	u, err := s.store.UserByEmail(ctx, email)
	if err != nil {
		return "", err
	}
	if u == nil {
		return "", fault.Field("/email", "nobody has the address %s", email)
	}
	home, err := s.home(ctx, *u)
	if err != nil {
		return "", err
	}
	actor := auth.Actor{Workspace: home.Workspace, Type: audit.ActorCLI}
	return s.newLink(ctx, Ticket{Kind: Reset, UserID: u.ID}, base+resetPage, actor.Did("user.link_created", "user", u.ID, nil))
}

func (s *Service) newLink(ctx context.Context, t Ticket, page string, entries ...audit.Entry) (string, error) {
	var token string
	token, t.Hash = newToken()
	t.CreatedAt = clock.Now()
	t.ExpiresAt = t.CreatedAt.Add(ticketLife)
	return page + token, s.store.InsertTicket(ctx, t, entries...)
}

// Needed tells whether the installation still needs its first user.
func (s *Service) Needed(ctx context.Context) (bool, error) {
	has, err := s.store.HasUsers(ctx)
	return !has, err
}

// Found makes the first user, who owns the first workspace, and signs them in.
// However many try, one does.
func (s *Service) Found(ctx context.Context, token, email, name, password string, visit Visit) (SignedIn, string, error) {
	ticket, err := s.ticket(ctx, Welcome, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	workspace, err := s.store.FirstWorkspace(ctx)
	if err != nil || workspace == nil {
		if err == nil {
			err = noLink()
		}
		return SignedIn{}, "", err
	}
	still := func() error {
		_, err := s.ticket(ctx, Welcome, token)
		return err
	}
	owner, err := s.newUser(asLongAs(ctx, still), email, name, password)
	if err != nil {
		return SignedIn{}, "", err
	}
	in, fresh, sessionToken := newSession(owner, Membership{*workspace, Owner}, visit)
	entry := by(owner, Owner, *workspace, visit.RequestID).Did("user.created", "user", owner.ID, map[string]any{"email": owner.Email, "role": Owner})
	founded, err := s.store.Found(ctx, ticket.Hash, clock.Now(), owner, fresh, entry)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !founded {
		return SignedIn{}, "", noLink()
	}
	return in, sessionToken, nil
}

// ResetPassword gives a user the password they chose, ends their sessions and
// signs them in.
func (s *Service) ResetPassword(ctx context.Context, token, password string, visit Visit) (SignedIn, string, error) {
	ticket, err := s.ticket(ctx, Reset, token)
	if err != nil {
		return SignedIn{}, "", err
	}
	found, err := s.store.User(ctx, ticket.UserID)
	u, err := fault.Found(found, err, func(string) error { return noLink() }, "")
	if err != nil {
		return SignedIn{}, "", err
	}
	home, err := s.home(ctx, u)
	if err != nil {
		return SignedIn{}, "", err
	}
	if err := checkPassword(password, u.Email); err != nil {
		return SignedIn{}, "", err
	}
	if u.Password, err = s.passwords.hash(ctx, password); err != nil {
		return SignedIn{}, "", err
	}
	in, fresh, sessionToken := newSession(u, home, visit)
	entry := in.Actor().Did("user.password_changed", "user", u.ID, map[string]any{"by": "link"})
	entry.RequestID = visit.RequestID
	reset, err := s.store.ResetPassword(ctx, ticket.Hash, clock.Now(), u, fresh, entry)
	if err != nil {
		return SignedIn{}, "", err
	}
	if !reset {
		return SignedIn{}, "", noLink()
	}
	s.cache.dropUser(u.ID)
	return in, sessionToken, nil
}

func (s *Service) ticket(ctx context.Context, kind TicketKind, token string) (Ticket, error) {
	hash := hashOf(token)
	if hash == nil {
		return Ticket{}, noLink()
	}
	found, err := s.store.TicketByHash(ctx, kind, hash, clock.Now())
	return fault.Found(found, err, func(string) error { return noLink() }, "")
}

func noLink() error {
	return fault.New(fault.LinkNotFound, "the link is not valid: it was used, has expired or never was one")
}
