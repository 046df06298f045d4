package connection_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

const audience = "https://orders.example/"

// TestTokenParamsOfAConsent checks that further parameters are part of the request for
// the first token, and not of refreshes.
func TestTokenParamsOfAConsent(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	address, err := in.Connect(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: client,
		Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q, "params": {"prompt": "consent"}, "token_params": {"audience": %q}`, s.URL+"/authorize", audience)),
	}, redirect)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(address); err != nil || u.Query().Get("prompt") != "consent" || u.Query().Has("audience") {
		t.Errorf("%s, %v", address, err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Fatal(err)
	}
	if form := s.Form("authorization_code"); form.Get("audience") != audience || form.Has("prompt") {
		t.Errorf("the request for the first token has %v", form)
	}
	s.ExpireAll()
	if err := in.call(in.parts, s, "shop"); err != nil {
		t.Fatal(err)
	}
	if form := s.Form("refresh_token"); form == nil || form.Has("audience") {
		t.Errorf("the refresh has %v", form)
	}
}

// TestTokenParamsOfClientCredentials checks that every request for a token has the
// further parameters.
func TestTokenParamsOfClientCredentials(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	_, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: client,
		Definition: definition(s, fmt.Sprintf(`, "scopes": ["orders"], "token_params": {"audience": %q, "resource": "urn:shop"}`, audience)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := in.call(in.parts, s, "shop"); err != nil {
			t.Fatal(err)
		}
		form := s.Form("client_credentials")
		if form.Get("audience") != audience || form.Get("resource") != "urn:shop" || form.Get("scope") != "orders" {
			t.Errorf("the request has %v", form)
		}
		clear(form)
		s.ExpireAll()
	}
	if n := s.Requests("client_credentials"); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestErrorsNameTheAudience checks that an error of the service about a parameter that is
// not secret stays readable.
func TestErrorsNameTheAudience(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: definition(s, fmt.Sprintf(`, "token_params": {"audience": %q}`, audience)),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Set(func(now *oauthserver.Settings) {
		now.Respond = respondWith(http.StatusBadRequest, "application/json", `{"error": "access_denied", "error_description": "unknown audience `+audience+`"}`)
	})
	result, err := in.Test(t.Context(), in.owner, c.ID)
	if err != nil || !strings.Contains(result.Problem, "unknown audience "+audience) {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestReservedParams checks that a definition cannot replace the parameters that protect
// a consent or identify the client.
func TestReservedParams(t *testing.T) {
	t.Parallel()
	in := newInstallation(t)
	for _, member := range []string{"params", "token_params"} {
		for _, name := range []string{
			"client_id", "client_secret", "client_assertion", "client_assertion_type", "response_type", "redirect_uri", "state", "scope", "request", "request_uri",
			"code_challenge", "code_challenge_method", "code_verifier", "grant_type", "code", "device_code", "refresh_token", "",
		} {
			_, err := in.Connect(t.Context(), in.owner, connection.New{
				Name: "shop", Auth: integration.OAuth2, Fields: client,
				Definition: []byte(fmt.Sprintf(`{"hosts": ["api.example.com"], "authorize_url": "https://id.example/a", "token_url": "https://id.example/t", %q: {%q: "x"}}`, member, name)),
			}, redirect)
			faulttest.Want(t, err, fault.InvalidRequest, "/definition/"+member+"/"+name)
		}
	}
	_, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "s3cret"}, Definition: []byte(`{"hosts": ["api.example.com"], "token_params": {"audience": "x"}}`),
	})
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/token_params")
}

// TestTokenBody checks in which form parameters are sent: for a first token, a refresh
// and a revocation.
func TestTokenBody(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ more, media string }{
		{"", "application/x-www-form-urlencoded"},
		{`, "token_body": "form"`, "application/x-www-form-urlencoded"},
		{`, "token_body": "json"`, "application/json"},
		{`, "token_body": "json", "client_auth": "body"`, "application/json"},
	} {
		in, s := newInstallation(t), oauthserver.Start(t)
		address, err := in.Connect(t.Context(), in.owner, connection.New{
			Name: "shop", Auth: integration.OAuth2, Fields: client,
			Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q, "revoke_url": %q %s`, s.URL+"/authorize", s.URL+"/revoke", tc.more)),
		}, redirect)
		if err != nil {
			t.Fatal(err)
		}
		want := func(what string) {
			t.Helper()
			if media := s.Media(); media != tc.media {
				t.Errorf("%s: %s is sent as %s", tc.more, what, media)
			}
		}
		c, err := in.Complete(t.Context(), in.owner, s.Consent(t, address))
		if err != nil {
			t.Fatal(err)
		}
		want("the code")
		s.ExpireAll()
		if err := in.call(in.parts, s, "shop"); err != nil || s.Requests("refresh_token") != 1 {
			t.Fatal(err)
		}
		want("a refresh")
		if err := in.Delete(t.Context(), in.owner, c.ID); err != nil || len(s.Revoked()) != 1 {
			t.Fatal(err)
		}
		want("a revocation")
	}
	in, s := newInstallation(t), oauthserver.Start(t)
	_, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Fields: client, Definition: definition(s, `, "token_body": "xml"`)})
	faulttest.Want(t, err, fault.InvalidRequest, "/definition/token_body")
}
