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
}

type startOIDCRequest struct {
	Next string `query:"next"`
}

// startOIDC redirects the browser to the provider.
func (s *Server) startOIDC(ctx context.Context, in *startOIDCRequest) (*reply, error) {
	if s.OIDC == nil {
		return nil, fault.New(fault.NotFound, "sign-in with an identity provider is not configured")
	}
	if err := s.countAttempt(ctx, ""); err != nil {
		return nil, err
	}
	address, flow, err := s.OIDC.Begin(ctx, s.PublicURL()+oidcCallback)
	if err != nil {
		return s.failedOIDC(ctx, "oidc_failed", err), nil
	}
	encoded, err := json.Marshal(oidcFlow{flow, localPath(in.Next)})
	if err != nil {
		return nil, err
	}
	return redirect(address).cookie(flowCookie, base64.RawURLEncoding.EncodeToString(encoded), flowSeconds), nil
}

type finishOIDCRequest struct {
	Query  url.Values `query:"*"`
	Cookie string     `header:"Cookie"`
}

// finishOIDC signs in the user whom the provider redirected back.
func (s *Server) finishOIDC(ctx context.Context, in *finishOIDCRequest) (*reply, error) {
	if s.OIDC == nil {
		return nil, fault.New(fault.NotFound, "sign-in with an identity provider is not configured")
	}
	if err := s.countAttempt(ctx, ""); err != nil {
		return nil, err
	}
	flow, ok := parseFlowCookie(in.Cookie)
	state, issuer := in.Query.Get("state"), in.Query.Get("iss")
	switch {
	case !ok || subtle.ConstantTimeCompare([]byte(state), []byte(flow.State)) != 1 || issuer != "" && issuer != s.OIDC.Issuer():
		return s.failedOIDC(ctx, "oidc_failed", fault.New(fault.InvalidRequest, "the callback does not belong to a sign-in that this browser started")), nil
	case in.Query.Get("error") != "":
		return s.failedOIDC(ctx, "oidc_denied", fault.New(fault.InvalidRequest, "the identity provider returned the error %q", clean(in.Query.Get("error")))), nil
	}
	identity, err := s.OIDC.Finish(ctx, flow.Flow, s.PublicURL()+oidcCallback, in.Query.Get("code"))
	if err != nil {
		return s.failedOIDC(ctx, "oidc_failed", err), nil
	}
	_, token, err := s.Accounts.SignInAs(ctx, identity, s.OIDCRole, callerOf(ctx).visit)
	switch {
	case fault.Is(err, fault.InsufficientScope):
		return s.failedOIDC(ctx, "oidc_unverified", err), nil
	case fault.Is(err, fault.InvalidCredentials):
		return s.failedOIDC(ctx, "oidc_unknown_user", err), nil
	case err != nil:
		return s.failedOIDC(ctx, "oidc_failed", err), nil
	}
	return s.replaceSession(ctx, redirect(s.PublicURL()+flow.Next), token).cookie(flowCookie, "", -1), nil
}

// failedOIDC redirects the browser to the sign-in page with an error code.
func (s *Server) failedOIDC(ctx context.Context, code string, err error) *reply {
	s.Log.Warn("sign-in with the identity provider failed", "request_id", callerOf(ctx).requestID, "reason", code, "error", err)
	return redirect(s.PublicURL()+"/sign-in?error="+code).cookie(flowCookie, "", -1)
}

func redirect(to string) *reply {
	return (&reply{status: http.StatusFound}).withHeader("Location", to)
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
