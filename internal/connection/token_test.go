package connection_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

// respondWith returns a token endpoint that always responds the same.
func respondWith(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// TestErrorsOfTokenEndpoints checks what the responses of a token endpoint to a renewal
// mean: every error of RFC 6749, section 5.2, those of services that deviate from it, and
// responses that no token endpoint sends. A connection is broken only if its service
// refuses to issue tokens.
func TestErrorsOfTokenEndpoints(t *testing.T) {
	t.Parallel()
	const (
		broken    = true
		temporary = false
	)
	json := func(status int, body string) http.HandlerFunc { return respondWith(status, "application/json", body) }
	for name, tc := range map[string]struct {
		respond http.HandlerFunc
		breaks  bool
		want    string // in the message
	}{
		"invalid_client":         {json(401, `{"error": "invalid_client"}`), broken, "check the client ID and secret, and reconnect"},
		"invalid_grant":          {json(400, `{"error": "invalid_grant", "error_description": "Token has been\nrevoked."}`), broken, "invalid_grant (Token has been revoked.): the access may have expired or was revoked; reconnect"},
		"unauthorized_client":    {json(400, `{"error": "unauthorized_client"}`), broken, "allow this grant"},
		"unsupported_grant_type": {json(400, `{"error": "unsupported_grant_type"}`), broken, "allow this grant"},
		"invalid_scope":          {json(400, `{"error": "invalid_scope"}`), broken, "allow these scopes"},
		"an error as a form":     {respondWith(200, "application/x-www-form-urlencoded", "error=invalid_grant&error_description=expired"), broken, "invalid_grant (expired)"},
		"a long description":     {json(400, `{"error": "invalid_grant", "error_description": "`+strings.Repeat("x", 5000)+`"}`), broken, "xxx…"},

		"invalid_request":           {json(400, `{"error": "invalid_request"}`), temporary, "invalid_request"},
		"an error of a service":     {json(200, `{"ok": false, "error": "internal_error"}`), temporary, "internal_error"},
		"a limit of a service":      {json(200, `{"ok": false, "error": "ratelimited"}`), temporary, "ratelimited"},
		"an object as the error":    {json(400, `{"error": {"code": 2, "message": "try later"}}`), temporary, "2 (try later)"},
		"a gateway's error":         {json(404, `{"error": "Not Found"}`), temporary, "Not Found"},
		"400 without an error":      {respondWith(400, "text/html", "<html>"), temporary, "400 Bad Request"},
		"401 without an error":      {respondWith(401, "text/plain", "no"), temporary, "401 Unauthorized"},
		"403 without an error":      {respondWith(403, "text/html", "<html>"), temporary, "403 Forbidden"},
		"server_error":              {json(400, `{"error": "server_error"}`), temporary, "server_error"},
		"temporarily_unavailable":   {json(400, `{"error": "temporarily_unavailable"}`), temporary, "temporarily_unavailable"},
		"500 with an error":         {json(500, `{"error": "invalid_grant"}`), temporary, "invalid_grant"},
		"503 without a body":        {json(503, ""), temporary, "503 Service Unavailable"},
		"too many requests":         {json(429, `{"error": "slow_down"}`), temporary, "slow_down"},
		"404":                       {respondWith(404, "text/html", "<html>"), temporary, "404 Not Found"},
		"a page":                    {respondWith(200, "text/html", "<html>sign in</html>"), temporary, "200 OK"},
		"JSON without a token":      {json(200, `{"token_type": "Bearer"}`), temporary, "200 OK"},
		"JSON that is not complete": {json(200, `{"access_token": "a`), temporary, "200 OK"},
		"a list":                    {json(200, `["access_token"]`), temporary, "200 OK"},
		"a redirect":                {respondWith(307, "text/plain", ""), temporary, "307 Temporary Redirect"},
		"an oversized body":         {json(200, `{"access_token": "`+strings.Repeat("x", 2<<20)+`"}`), temporary, "response_too_large"},
		"a connection that breaks":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, temporary, "connection_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, s := newInstallation(t), oauthserver.Start(t)
			c := in.connect(s, "shop")
			s.ExpireAll()
			s.Set(func(now *oauthserver.Settings) { now.Respond = tc.respond })
			err := in.call(in.parts, s, "shop")
			failure, isBroken := errors.AsType[*connection.BrokenError](err)
			switch {
			case isBroken != tc.breaks:
				t.Errorf("broken is %v: %v", isBroken, err)
			case isBroken && (!strings.Contains(failure.Problem, tc.want) || len(failure.Problem) > 500):
				t.Errorf("%s", failure.Problem)
			}
			s.Set(func(now *oauthserver.Settings) { now.Respond = nil })
			if tc.breaks {
				if now, err := in.Get(t.Context(), in.owner, c.ID); err != nil || now.Status != connection.NeedsReconnect || now.Problem != failure.Problem {
					t.Errorf("%+v, %v", now, err)
				}
				return
			}
			if failure, ok := errors.AsType[*action.Failure](err); !ok || !failure.Retryable || failure.Code != connection.CodeUnavailable || !strings.Contains(failure.Message, tc.want) {
				t.Errorf("%v", err)
			}
			// The next request is sent after a pause, or when somebody tests the connection.
			if failure, ok := errors.AsType[*action.Failure](in.call(in.parts, s, "shop")); !ok || failure.RetryAfter <= 0 {
				t.Errorf("there is no pause: %+v", failure)
			}
			if result, err := in.Test(t.Context(), in.owner, c.ID); err != nil || result.Problem != "" {
				t.Errorf("it does not recover: %+v, %v", result, err)
			}
			if err := in.call(in.parts, s, "shop"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTokenErrorsHideSecrets checks that a service that quotes what it rejects does not
// make a secret visible.
func TestTokenErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	in.connect(s, "shop")
	s.ExpireAll()
	s.Set(func(now *oauthserver.Settings) {
		now.Respond = func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error": "invalid_grant", "error_description": "unknown token %s of %s"}`, r.PostFormValue("refresh_token"), oauthserver.ClientSecret)
		}
	})
	err := in.call(in.parts, s, "shop")
	for _, secret := range append(s.Issued(), oauthserver.ClientSecret) {
		if strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("%v contains %s", err, secret)
		}
	}
	if !strings.Contains(fmt.Sprint(err), "unknown token *** of ***") {
		t.Errorf("%v", err)
	}
}

// TestConsentWithoutAToken checks that nothing is stored if the code of a consent is
// rejected, and that the message says what to do.
func TestConsentWithoutAToken(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	address, err := in.Connect(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q`, s.URL+"/authorize")),
	}, redirect)
	if err != nil {
		t.Fatal(err)
	}
	s.Set(func(now *oauthserver.Settings) { now.Fails = "invalid_client" })
	_, err = in.Complete(t.Context(), in.owner, s.Consent(t, address))
	faulttest.Want(t, err, fault.ConsentRefused)
	if !strings.Contains(fmt.Sprint(err), "invalid_client") || !strings.Contains(fmt.Sprint(err), "Check the client ID and secret") {
		t.Error(err)
	}
	if sealed, err := in.store.Connections.SealedConnection(t.Context(), in.owner.Workspace.ID, "shop"); sealed != nil || err != nil {
		t.Errorf("%+v, %v", sealed, err)
	}
}

// unreachable is a client whose requests fail.
type unreachable egress.Code

func (u unreachable) Do(context.Context, egress.Request) (*egress.Response, error) {
	return nil, &egress.Error{Code: egress.Code(u), Message: "no response"}
}

// TestUnreachableTokenEndpoint checks that a service that cannot be reached, is too slow
// or has a wrong certificate breaks no connection.
func TestUnreachableTokenEndpoint(t *testing.T) {
	t.Parallel()
	for _, code := range egress.Codes() {
		in, s := newInstallation(t), oauthserver.Start(t)
		c := in.connect(s, "shop")
		s.ExpireAll()
		reachable := in.client
		in.client = unreachable(code)
		node := in.node("node_1")
		in.client = reachable
		if failure, ok := errors.AsType[*action.Failure](in.call(node, s, "shop")); !ok || failure.Code != connection.CodeUnavailable {
			t.Errorf("%s: %+v", code, failure)
		}
		if now, err := in.Get(t.Context(), in.owner, c.ID); err != nil || now.Status != connection.Connected {
			t.Errorf("%s: %+v, %v", code, now, err)
		}
	}
}
