package api

import (
	"context"
	"log/slog"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
)

type sessions struct {
	accounts  *account.Service
	limits    *signInLimits
	publicURL func() string
	version   string
	cursors   *paging.Codec
	log       *slog.Logger
}

type userBody struct {
	ID          string `json:"id"`
	Email       string `json:"email"`
	Name        string `json:"name"`
	HasPassword bool   `json:"has_password"`
	CreatedAt   string `json:"created_at"`
}

type ownWorkspaceBody struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	Plan auth.Plan `json:"plan"`
}

type membershipBody struct {
	ownWorkspaceBody
	Role account.Role `json:"role"`
}

type signedInBody struct {
	User       userBody         `json:"user"`
	Role       account.Role     `json:"role"`
	Scopes     []auth.Scope     `json:"scopes"`
	Workspace  ownWorkspaceBody `json:"workspace"`
	Workspaces []membershipBody `json:"workspaces"`
	Operator   bool             `json:"operator"`
	Session    struct {
		ID        string `json:"id"`
		CreatedAt string `json:"created_at"`
		ExpiresAt string `json:"expires_at"`
	} `json:"session"`
	Version string `json:"version"`
	// OAuthRedirectURL is the redirect URL to register at services.
	OAuthRedirectURL string `json:"oauth_redirect_url"`
}

func (h *sessions) show(ctx context.Context, in account.SignedIn) (*transport.Reply, error) {
	all, err := h.accounts.Workspaces(ctx, in)
	if err != nil {
		return nil, err
	}
	body := signedInBody{
		User:   userBody{in.User.ID, in.User.Email, in.User.Name, in.User.Password != "", clock.Format(in.User.CreatedAt)},
		Role:   in.Role,
		Scopes: in.Role.Scopes(), Workspace: showOwnWorkspace(in.Workspace), Workspaces: make([]membershipBody, len(all)),
		Operator: in.Actor().IsOperator(), Version: h.version, OAuthRedirectURL: redirectURL(h.publicURL),
	}
	for i, m := range all {
		body.Workspaces[i] = membershipBody{showOwnWorkspace(m.Workspace), m.Role}
	}
	body.Session.ID, body.Session.CreatedAt, body.Session.ExpiresAt = in.Session.ID, clock.Format(in.Session.CreatedAt), clock.Format(in.Session.Ends())
	return transport.OK(body), nil
}

func showOwnWorkspace(w auth.Workspace) ownWorkspaceBody {
	return ownWorkspaceBody{w.ID, w.Name, w.Plan}
}

// signedInReply responds to a sign-in and replaces the session of the browser.
func (h *sessions) signedInReply(ctx context.Context, in account.SignedIn, token string, err error) (*transport.Reply, error) {
	if err != nil {
		return nil, err
	}
	r, err := h.show(ctx, in)
	if err != nil {
		return nil, err
	}
	return h.replace(ctx, r, token), nil
}

// replace sets the cookie of a new session, and ends the session that the browser
// had until now.
func (h *sessions) replace(ctx context.Context, r *transport.Reply, token string) *transport.Reply {
	c := transport.CallerOf(ctx)
	if err := h.accounts.EndReplaced(ctx, c.SessionToken, c.RequestID); err != nil {
		h.log.Warn("the session that a sign-in replaces did not end", "request_id", c.RequestID, "error", err)
	}
	return transport.WithSessionCookie(r, token)
}

type signInRequest struct {
	Body struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
	} `body:"required"`
}

func (h *sessions) signIn(ctx context.Context, in *signInRequest) (*transport.Reply, error) {
	if err := required(member{"/email", in.Body.Email}, member{"/password", in.Body.Password}); err != nil {
		return nil, err
	}
	email, err := account.Email("/email", *in.Body.Email)
	if err != nil {
		return nil, err
	}
	if err := h.limits.count(ctx, email); err != nil {
		return nil, err
	}
	signedIn, token, err := h.accounts.SignIn(ctx, email, *in.Body.Password, transport.CallerOf(ctx).Client)
	return h.signedInReply(ctx, signedIn, token, err)
}

func (h *sessions) get(ctx context.Context, _ *noInput) (*transport.Reply, error) {
	return h.show(ctx, *transport.CallerOf(ctx).SignedIn)
}

type moveSessionRequest struct {
	Body struct {
		WorkspaceID *string `json:"workspace_id"`
	} `body:"required"`
}

func (h *sessions) move(ctx context.Context, in *moveSessionRequest) (*transport.Reply, error) {
	if err := required(member{"/workspace_id", in.Body.WorkspaceID}); err != nil {
		return nil, err
	}
	moved, err := h.accounts.SwitchWorkspace(ctx, *transport.CallerOf(ctx).SignedIn, *in.Body.WorkspaceID)
	if err != nil {
		return nil, err
	}
	return h.show(ctx, moved)
}

func (h *sessions) signOut(ctx context.Context, _ *noInput) (*transport.Reply, error) {
	c := transport.CallerOf(ctx)
	if err := h.accounts.SignOut(ctx, c.Actor, c.SignedIn.Session.ID); err != nil && !fault.Is(err, fault.SessionNotFound) {
		return nil, err
	}
	return transport.WithoutSessionCookie(&transport.Reply{}), nil
}

func (h *sessions) signOutEverywhere(ctx context.Context, _ *noInput) (*transport.Reply, error) {
	return transport.WithoutSessionCookie(&transport.Reply{}), h.accounts.SignOutEverywhere(ctx, transport.Actor(ctx))
}

type sessionBody struct {
	ID         string `json:"id"`
	CreatedAt  string `json:"created_at"`
	LastSeenAt string `json:"last_seen_at"`
	ExpiresAt  string `json:"expires_at"`
	Address    string `json:"address"`
	UserAgent  string `json:"user_agent"`
	Current    bool   `json:"current"`
}

func (h *sessions) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	own := *transport.CallerOf(ctx).SignedIn
	show := func(session account.Session) sessionBody {
		return sessionBody{
			session.ID, clock.Format(session.CreatedAt), clock.Format(session.SeenAt), clock.Format(session.Ends()),
			session.Address, session.Agent, session.ID == own.Session.ID,
		}
	}
	return transport.Paginate(ctx, h.cursors, *in, []string{"sessions", own.User.ID},
		func(p paging.Request) (paging.Page[account.Session], error) { return h.accounts.Sessions(ctx, own, p) }, show)
}

func (h *sessions) end(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	if err := h.accounts.SignOut(ctx, transport.Actor(ctx), in.ID); err != nil {
		return nil, err
	}
	if in.ID == transport.CallerOf(ctx).SignedIn.Session.ID {
		return transport.WithoutSessionCookie(&transport.Reply{}), nil
	}
	return &transport.Reply{}, nil
}

type updateAccountRequest struct {
	Body struct {
		Name            *string `json:"name"`
		Password        *string `json:"password"`
		CurrentPassword *string `json:"current_password"`
	} `body:"required"`
}

func (h *sessions) updateAccount(ctx context.Context, in *updateAccountRequest) (*transport.Reply, error) {
	c := transport.CallerOf(ctx)
	if in.Body.Password != nil {
		if err := h.limits.count(ctx, c.SignedIn.User.Email); err != nil {
			return nil, err
		}
	}
	change := account.Change{Name: in.Body.Name, Password: in.Body.Password, Current: in.Body.CurrentPassword}
	changed, err := h.accounts.Update(ctx, c.Actor, *c.SignedIn, change)
	if err != nil {
		return nil, err
	}
	return h.show(ctx, changed)
}
