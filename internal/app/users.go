package app

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/oidc"
	"github.com/stepmill/stepmill/internal/paging"
)

// User is a user as commands show them.
type User struct {
	ID         string     `json:"id"`
	Email      string     `json:"email"`
	Name       string     `json:"name"`
	Workspaces []string   `json:"workspaces"` // as id:role
	CreatedAt  time.Time  `json:"created_at"`
	LastSeenAt *time.Time `json:"last_seen_at"`
}

// Users lists everybody, newest first.
func (a *Admin) Users(ctx context.Context) ([]User, error) {
	found, err := all(func(p paging.Request) (paging.Page[account.User], error) { return a.core.people.Users(ctx, p) })
	users := []User{}
	for _, u := range found {
		memberships, err := a.core.people.MembershipsOf(ctx, u.ID)
		if err != nil {
			return nil, plain(err)
		}
		shown := User{u.ID, u.Email, u.Name, []string{}, u.CreatedAt, u.SeenAt}
		for _, m := range memberships {
			shown.Workspaces = append(shown.Workspaces, m.Workspace.ID+":"+string(m.Role))
		}
		users = append(users, shown)
	}
	return users, plain(err)
}

// CreateLink makes a link that works once: for the first user where there is
// none, for a new password of the user with an address otherwise.
func (a *Admin) CreateLink(ctx context.Context, at config.Place, email string) (string, error) {
	base, err := baseURL(at)
	if err != nil {
		return "", err
	}
	if email != "" {
		link, err := a.core.people.ResetLink(ctx, base, email)
		return link, plain(err)
	}
	link, err := a.core.people.WelcomeLink(ctx, base)
	if err == nil && link == "" {
		err = errors.New("the first workspace has an owner: name the user who needs a new password with --email")
	}
	return link, plain(err)
}

// baseURL is what links begin with, for a server that is told the same settings.
func baseURL(at config.Place) (string, error) {
	addr, err := net.ResolveTCPAddr("tcp", strings.TrimSpace(at.Listen))
	if err != nil {
		return "", err
	}
	if addr.IP == nil {
		addr.IP = net.IPv6unspecified
	}
	return at.PublicURL.Or(addr), nil
}

// identityProvider is where people can sign in, if the operator named one.
func (s *Server) identityProvider() (api.IdentityProvider, error) {
	if s.config.Issuer == "" {
		return nil, nil
	}
	secret, err := s.config.OIDC.Secret()
	if err != nil {
		return nil, err
	}
	client, closed := oidc.Outside("Stepmill/"+config.VersionText(), s.own)
	s.elsewhere = closed
	return oidc.New(oidc.Config{Issuer: s.config.Issuer, ClientID: s.config.ClientID, ClientSecret: secret, Client: client}), nil
}
