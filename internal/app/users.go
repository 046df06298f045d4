package app

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/oidc"
	"github.com/stepmill/stepmill/internal/paging"
)

// User is a user in the output of commands.
type User struct {
	ID         string     `json:"id"`
	Email      string     `json:"email"`
	Name       string     `json:"name"`
	Workspaces []string   `json:"workspaces"` // as id:role
	CreatedAt  time.Time  `json:"created_at"`
	LastSeenAt *time.Time `json:"last_seen_at"`
}

// Users lists all users, newest first.
func (a *Admin) Users(ctx context.Context) ([]User, error) {
	found, err := readAll(func(p paging.Request) (paging.Page[account.User], error) { return a.core.accounts.Users(ctx, p) })
	users := []User{}
	for _, u := range found {
		memberships, err := a.core.accounts.MembershipsOf(ctx, u.ID)
		if err != nil {
			return nil, cliError(err)
		}
		shown := User{u.ID, u.Email, u.Name, []string{}, u.CreatedAt, u.SeenAt}
		for _, m := range memberships {
			shown.Workspaces = append(shown.Workspaces, m.Workspace.ID+":"+string(m.Role))
		}
		users = append(users, shown)
	}
	return users, cliError(err)
}

// CreateLink shows and creates a link that works once: to reset the password of the
// user with the given email, or without one to create the first user.
func (a *Admin) CreateLink(ctx context.Context, at config.Endpoint, email string, show auth.Show) error {
	base, err := a.baseURL(at)
	if err != nil {
		return err
	}
	return a.showFirst(ctx, "link", show, func(show auth.Show) error {
		if email != "" {
			_, err := a.core.accounts.ResetLink(ctx, base, email, show)
			return err
		}
		link, err := a.core.accounts.WelcomeLink(ctx, base, show)
		if err == nil && link == "" {
			err = errors.New("the first workspace already has an owner: to reset a password, name the user with --email")
		}
		return err
	})
}

// baseURL returns the base URL of links for the server that runs the command, or
// else for one with the same settings.
func (a *Admin) baseURL(at config.Endpoint) (string, error) {
	if a.serverURL != nil && at.PublicURL == (config.PublicURL{}) {
		return a.serverURL(), nil
	}
	addr, err := net.ResolveTCPAddr("tcp", strings.TrimSpace(at.Listen))
	if err != nil {
		return "", err
	}
	if addr.IP == nil {
		addr.IP = net.IPv6unspecified
	}
	return at.PublicURL.Or(addr), nil
}

// identityProvider returns the configured OIDC provider, or nil.
func (s *Server) identityProvider() (api.IdentityProvider, error) {
	if s.config.Issuer == "" {
		return nil, nil
	}
	secret, err := s.config.OIDC.Secret()
	if err != nil {
		return nil, err
	}
	client, closed := oidc.NewHTTPClient("Stepmill/"+config.VersionText(), s.ownAddresses)
	s.front.closeOIDC = closed
	return oidc.New(oidc.Config{Issuer: s.config.Issuer, ClientID: s.config.ClientID, ClientSecret: secret, Client: client}), nil
}
