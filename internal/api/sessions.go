package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

// defaultRequestsPerUser is the limit per minute: more than a dashboard with
// several tabs needs.
const defaultRequestsPerUser = 3000

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

// showSignedIn responds with the user, the session and the workspaces.
func (s *Server) showSignedIn(ctx context.Context, in account.SignedIn) (*reply, error) {
	all, err := s.Accounts.Workspaces(ctx, in)
	if err != nil {
		return nil, err
	}
	body := signedInBody{
		User:   userBody{in.User.ID, in.User.Email, in.User.Name, in.User.Password != "", clock.Format(in.User.CreatedAt)},
		Role:   in.Role,
		Scopes: in.Role.Scopes(), Workspace: showOwnWorkspace(in.Workspace), Workspaces: make([]membershipBody, len(all)),
		Operator: in.Actor().IsOperator(), Version: s.Version, OAuthRedirectURL: s.redirectURL(),
	}
	for i, m := range all {
		body.Workspaces[i] = membershipBody{showOwnWorkspace(m.Workspace), m.Role}
	}
	body.Session.ID, body.Session.CreatedAt, body.Session.ExpiresAt = in.Session.ID, clock.Format(in.Session.CreatedAt), clock.Format(in.Session.Ends())
	return ok(body), nil
}

func showOwnWorkspace(w auth.Workspace) ownWorkspaceBody {
	return ownWorkspaceBody{w.ID, w.Name, w.Plan}
}

// signedInReply responds to a sign-in and replaces the session of the browser.
func (s *Server) signedInReply(ctx context.Context, in account.SignedIn, token string, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	r, err := s.showSignedIn(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.replaceSession(ctx, r, token), nil
}

// replaceSession sets the cookie of a new session, and ends the session that the browser
// had until now.
func (s *Server) replaceSession(ctx context.Context, r *reply, token string) *reply {
	c := callerOf(ctx)
	if err := s.Accounts.EndReplaced(ctx, c.session, c.requestID); err != nil {
		s.Log.Warn("the session that a sign-in replaces did not end", "request_id", c.requestID, "error", err)
	}
	return withSessionCookie(r, token)
}

type signInRequest struct {
	Body struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
	} `body:"required"`
}

func (s *Server) signIn(ctx context.Context, in *signInRequest) (*reply, error) {
	if err := required(member{"/email", in.Body.Email}, member{"/password", in.Body.Password}); err != nil {
		return nil, err
	}
	email, err := account.Email("/email", *in.Body.Email)
	if err != nil {
		return nil, err
	}
	if err := s.countAttempt(ctx, email); err != nil {
		return nil, err
	}
	signedIn, token, err := s.Accounts.SignIn(ctx, email, *in.Body.Password, callerOf(ctx).visit)
	return s.signedInReply(ctx, signedIn, token, err)
}

func (s *Server) getSession(ctx context.Context, _ *noInput) (*reply, error) {
	return s.showSignedIn(ctx, *callerOf(ctx).signedIn)
}

type moveSessionRequest struct {
	Body struct {
		WorkspaceID *string `json:"workspace_id"`
	} `body:"required"`
}

func (s *Server) moveSession(ctx context.Context, in *moveSessionRequest) (*reply, error) {
	if err := required(member{"/workspace_id", in.Body.WorkspaceID}); err != nil {
		return nil, err
	}
	moved, err := s.Accounts.SwitchWorkspace(ctx, *callerOf(ctx).signedIn, *in.Body.WorkspaceID)
	if err != nil {
		return nil, err
	}
	return s.showSignedIn(ctx, moved)
}

func (s *Server) signOut(ctx context.Context, _ *noInput) (*reply, error) {
	c := callerOf(ctx)
	if err := s.Accounts.SignOut(ctx, c.actor, c.signedIn.Session.ID); err != nil && !fault.Is(err, fault.SessionNotFound) {
		return nil, err
	}
	return withoutSessionCookie(&reply{}), nil
}

func (s *Server) signOutEverywhere(ctx context.Context, _ *noInput) (*reply, error) {
	return withoutSessionCookie(&reply{}), s.Accounts.SignOutEverywhere(ctx, actorOf(ctx))
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

func (s *Server) listSessions(ctx context.Context, in *page) (*reply, error) {
	own := *callerOf(ctx).signedIn
	show := func(session account.Session) sessionBody {
		return sessionBody{
			session.ID, clock.Format(session.CreatedAt), clock.Format(session.SeenAt), clock.Format(session.Ends()),
			session.Address, session.Agent, session.ID == own.Session.ID,
		}
	}
	return paginate(ctx, s, *in, []string{"sessions", own.User.ID},
		func(p paging.Request) (paging.Page[account.Session], error) { return s.Accounts.Sessions(ctx, own, p) }, show)
}

type sessionRequest struct {
	ID string `path:"id"`
}

func (s *Server) endSession(ctx context.Context, in *sessionRequest) (*reply, error) {
	if err := s.Accounts.SignOut(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	if in.ID == callerOf(ctx).signedIn.Session.ID {
		return withoutSessionCookie(&reply{}), nil
	}
	return &reply{}, nil
}

type updateAccountRequest struct {
	Body struct {
		Name            *string `json:"name"`
		Password        *string `json:"password"`
		CurrentPassword *string `json:"current_password"`
	} `body:"required"`
}

func (s *Server) updateAccount(ctx context.Context, in *updateAccountRequest) (*reply, error) {
	c := callerOf(ctx)
	if in.Body.Password != nil {
		if err := s.countAttempt(ctx, c.signedIn.User.Email); err != nil {
			return nil, err
		}
	}
	change := account.Change{Name: in.Body.Name, Password: in.Body.Password, Current: in.Body.CurrentPassword}
	changed, err := s.Accounts.Update(ctx, c.actor, *c.signedIn, change)
	if err != nil {
		return nil, err
	}
	return s.showSignedIn(ctx, changed)
}
