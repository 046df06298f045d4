package api

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/transport"
)

type providerSignIns struct {
	accounts  *account.Service
	sessions  *sessions
	provider  IdentityProvider // nil: there is none
	role      account.Role     // of new users; empty: they are rejected
	publicURL func() string
	log       *slog.Logger
}

const (
	// flowCookie stores the state of a sign-in while the browser is at the
	// provider.
	flowCookie  = "__Host-stepmill-oidc"
	flowSeconds = 600 // seconds

	oidcCallback = "/ui/v1/oidc/callback"
)

// IdentityProvider authenticates people with OpenID Connect.
type IdentityProvider interface {
	Begin(ctx context.Context, redirect string) (address string, flow account.Flow, err error)
	Finish(ctx context.Context, flow account.Flow, redirect, code string) (account.Identity, error)
	Issuer() string
}

// oidcFlow is the content of the flow cookie.
type oidcFlow struct {
	account.Flow
	Next string
	// Invitation is the token of the invitation to accept, "" to only sign in.
	Invitation string
}

type startOIDCRequest struct {
	Next string `query:"next"`
}

func (h *providerSignIns) start(ctx context.Context, in *startOIDCRequest) (*transport.Reply, error) {
	if err := h.countAttempt(ctx); err != nil {
		return nil, err
	}
	flow := oidcFlow{Next: localPath(in.Next)}
	address, cookie, err := h.begin(ctx, flow)
	if err != nil {
		return h.failed(ctx, flow, "oidc_failed", err), nil
	}
	return redirect(address).Cookie(flowCookie, cookie, flowSeconds), nil
}

type acceptWithProviderRequest struct {
	Body struct {
		Token *string `json:"token"`
	} `body:"required"`
}

type providerBody struct {
	URL string `json:"url"`
}

// acceptInvitation returns the address at the provider where the invited person
// signs in. The token is not in the address of this request, so it is not in logs.
func (h *providerSignIns) acceptInvitation(ctx context.Context, in *acceptWithProviderRequest) (*transport.Reply, error) {
	if err := required(member{"/token", in.Body.Token}); err != nil {
		return nil, err
	}
	if err := h.countAttempt(ctx); err != nil {
		return nil, err
	}
	if _, err := h.accounts.PreviewInvitation(ctx, *in.Body.Token); err != nil {
		return nil, err
	}
	address, cookie, err := h.begin(ctx, oidcFlow{Next: "/workflows", Invitation: *in.Body.Token})
	if err != nil {
		h.log.Warn("sign-in with the identity provider failed", "request_id", transport.CallerOf(ctx).RequestID, "reason", "oidc_failed", "error", err)
		return nil, fault.New(fault.Unavailable, "the identity provider cannot be reached; try again in a moment")
	}
	return transport.OK(providerBody{address}).Cookie(flowCookie, cookie, flowSeconds), nil
}

func (h *providerSignIns) countAttempt(ctx context.Context) error {
	if h.provider == nil {
		return fault.New(fault.NotFound, "sign-in with an identity provider is not configured")
	}
	return h.sessions.limits.count(ctx, "")
}

// begin returns the address at the provider and the value of the flow cookie.
func (h *providerSignIns) begin(ctx context.Context, flow oidcFlow) (address, cookie string, err error) {
	if address, flow.Flow, err = h.provider.Begin(ctx, h.publicURL()+oidcCallback); err != nil {
		return "", "", err
	}
	encoded, err := json.Marshal(flow)
	return address, base64.RawURLEncoding.EncodeToString(encoded), err
}

type finishOIDCRequest struct {
	Query  url.Values `query:"*"`
	Cookie string     `header:"Cookie"`
}

// finish signs in the user whom the provider redirected back.
func (h *providerSignIns) finish(ctx context.Context, in *finishOIDCRequest) (*transport.Reply, error) {
	if err := h.countAttempt(ctx); err != nil {
		return nil, err
	}
	flow, ok := parseFlowCookie(in.Cookie)
	state, issuer := in.Query.Get("state"), in.Query.Get("iss")
	switch {
	case !ok || subtle.ConstantTimeCompare([]byte(state), []byte(flow.State)) != 1 || issuer != "" && issuer != h.provider.Issuer():
		// The flow may be that of another tab.
		return h.failed(ctx, oidcFlow{}, "oidc_failed", fault.New(fault.InvalidRequest, "the callback does not belong to a sign-in that this browser started")), nil
	case in.Query.Get("error") != "":
		return h.failed(ctx, flow, "oidc_denied", fault.New(fault.InvalidRequest, "the identity provider returned the error %q", transport.Clean(in.Query.Get("error")))), nil
	}
	identity, err := h.provider.Finish(ctx, flow.Flow, h.publicURL()+oidcCallback, in.Query.Get("code"))
	if err != nil {
		return h.failed(ctx, flow, "oidc_failed", err), nil
	}
	token, err := h.enterAs(ctx, flow, identity)
	if err != nil {
		return h.failed(ctx, flow, oidcError(err), err), nil
	}
	return h.sessions.replace(ctx, redirect(h.publicURL()+flow.Next), token).Cookie(flowCookie, "", -1), nil
}

// enterAs signs in a person whom the provider has authenticated, and accepts the
// invitation of the flow. It returns the token of the session.
func (h *providerSignIns) enterAs(ctx context.Context, flow oidcFlow, identity account.Identity) (token string, err error) {
	visit := transport.CallerOf(ctx).Client
	if flow.Invitation != "" {
		_, token, err = h.accounts.AcceptAs(ctx, identity, flow.Invitation, visit)
	} else {
		_, token, err = h.accounts.SignInAs(ctx, identity, h.role, visit)
	}
	return token, err
}

// oidcError returns the code with which a page explains why a person was not let in.
func oidcError(err error) string {
	switch {
	case errors.Is(err, account.ErrOtherAddress):
		return "oidc_other_address"
	case fault.Is(err, fault.InsufficientScope):
		return "oidc_unverified"
	case fault.Is(err, fault.InvalidCredentials):
		return "oidc_unknown_user"
	case fault.Is(err, fault.AlreadyMember):
		return "oidc_already_member"
	default:
		return "oidc_failed"
	}
}

// failed redirects the browser to the page where the sign-in began, with an error
// code. The page of the invitation remembers its token itself.
func (h *providerSignIns) failed(ctx context.Context, flow oidcFlow, code string, err error) *transport.Reply {
	h.log.Warn("sign-in with the identity provider failed", "request_id", transport.CallerOf(ctx).RequestID, "reason", code, "error", err)
	page := "/sign-in"
	if flow.Invitation != "" {
		page = "/invitation"
	}
	return redirect(h.publicURL()+page+"?error="+code).Cookie(flowCookie, "", -1)
}

func redirect(to string) *transport.Reply {
	return (&transport.Reply{Status: http.StatusFound}).WithHeader("Location", to)
}

// localPath returns next if it is a path of the dashboard, otherwise "/".
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

func parseFlowCookie(header string) (flow oidcFlow, ok bool) {
	request := http.Request{Header: http.Header{"Cookie": {header}}}
	found := request.CookiesNamed(flowCookie)
	if len(found) != 1 {
		return oidcFlow{}, false
	}
	encoded, err := base64.RawURLEncoding.DecodeString(found[0].Value)
	if err != nil || json.Unmarshal(encoded, &flow) != nil || flow.State == "" {
		return oidcFlow{}, false
	}
	flow.Next = localPath(flow.Next)
	return flow, true
}
