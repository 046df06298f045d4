package api

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/fault"
)

const (
	// flowCookie keeps what a browser has to bring back from the provider, and
	// for how long.
	flowCookie = "__Host-stepmill-oidc"
	flowLife   = 600 // seconds

	oidcCallback = "/ui/v1/oidc/callback"
)

// IdentityProvider is where people can show who they are.
type IdentityProvider interface {
	Begin(ctx context.Context, redirect string) (address string, flow account.Flow, err error)
	Finish(ctx context.Context, flow account.Flow, redirect, code string) (account.Identity, error)
	Issuer() string
}

// journey is what the cookie holds.
type journey struct {
	account.Flow
	Next string
}

type startOIDCRequest struct {
	Next string `query:"next"`
}

// startOIDC sends a browser to the provider.
func (s *Server) startOIDC(ctx context.Context, in *startOIDCRequest) (*reply, error) {
	if s.OIDC == nil {
		return nil, fault.New(fault.NotFound, "people do not sign in with an identity provider here")
	}
	if err := s.attempt(ctx, ""); err != nil {
		return nil, err
	}
	address, flow, err := s.OIDC.Begin(ctx, s.PublicURL()+oidcCallback)
	if err != nil {
		return s.failedOIDC(ctx, "oidc_failed", err), nil
	}
	kept, err := json.Marshal(journey{flow, localPath(in.Next)})
	if err != nil {
		return nil, err
	}
	return redirect(address).cookie(flowCookie, base64.RawURLEncoding.EncodeToString(kept), flowLife), nil
}

type finishOIDCRequest struct {
	Query  url.Values `query:"*"`
	Cookie string     `header:"Cookie"`
}

// finishOIDC signs somebody in who comes back from the provider.
func (s *Server) finishOIDC(ctx context.Context, in *finishOIDCRequest) (*reply, error) {
	if s.OIDC == nil {
		return nil, fault.New(fault.NotFound, "people do not sign in with an identity provider here")
	}
	if err := s.attempt(ctx, ""); err != nil {
		return nil, err
	}
	was, ok := journeyOf(in.Cookie)
	state, issuer := in.Query.Get("state"), in.Query.Get("iss")
	switch {
	case !ok || subtle.ConstantTimeCompare([]byte(state), []byte(was.State)) != 1 || issuer != "" && issuer != s.OIDC.Issuer():
		return s.failedOIDC(ctx, "oidc_failed", fault.New(fault.InvalidRequest, "this is not the sign-in that the browser began")), nil
	case in.Query.Get("error") != "":
		return s.failedOIDC(ctx, "oidc_denied", fault.New(fault.InvalidRequest, "the provider says %q", clean(in.Query.Get("error")))), nil
	}
	who, err := s.OIDC.Finish(ctx, was.Flow, s.PublicURL()+oidcCallback, in.Query.Get("code"))
	if err != nil {
		return s.failedOIDC(ctx, "oidc_failed", err), nil
	}
	_, token, err := s.Accounts.SignInAs(ctx, who, s.OIDCRole, callerOf(ctx).visit)
	switch {
	case fault.Is(err, fault.InsufficientScope):
		return s.failedOIDC(ctx, "oidc_unverified", err), nil
	case fault.Is(err, fault.InvalidCredentials):
		return s.failedOIDC(ctx, "oidc_unknown_user", err), nil
	case err != nil:
		return s.failedOIDC(ctx, "oidc_failed", err), nil
	}
	return withToken(redirect(s.PublicURL()+was.Next), token).cookie(flowCookie, "", -1), nil
}

// failedOIDC sends a browser back to where people sign in.
func (s *Server) failedOIDC(ctx context.Context, code string, err error) *reply {
	s.Log.Warn("somebody could not sign in with the identity provider", "request_id", callerOf(ctx).requestID, "reason", code, "error", err)
	return redirect(s.PublicURL()+"/sign-in?error="+code).cookie(flowCookie, "", -1)
}

func redirect(to string) *reply {
	return (&reply{status: http.StatusFound}).with("Location", to)
}

// localPath is a path of the dashboard; anything else leads to its start.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

func journeyOf(header string) (was journey, ok bool) {
	request := http.Request{Header: http.Header{"Cookie": {header}}}
	found := request.CookiesNamed(flowCookie)
	if len(found) != 1 {
		return journey{}, false
	}
	kept, err := base64.RawURLEncoding.DecodeString(found[0].Value)
	if err != nil || json.Unmarshal(kept, &was) != nil || was.State == "" {
		return journey{}, false
	}
	was.Next = localPath(was.Next)
	return was, true
}
