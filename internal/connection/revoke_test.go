package connection_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/oauthserver"
)

func TestDeletedConnectionIsRevoked(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.Revoked(); len(got) != 1 || !strings.HasPrefix(got[0], "refresh-") {
		t.Errorf("revoked %q", got)
	}
}

// TestRevocation checks which tokens are revoked, and that a revocation that fails does
// not keep the connection.
func TestRevocation(t *testing.T) {
	t.Parallel()
	create := func(in *installation, s *oauthserver.Server, more string) connection.Connection {
		t.Helper()
		c, err := in.Create(t.Context(), in.owner, connection.New{Name: "shop", Auth: integration.OAuth2, Definition: definition(s, more), Fields: client})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, tc := range map[string]struct {
		connect func(*installation, *oauthserver.Server) connection.Connection
		status  int
		revoked string // the prefix of the token
		logged  string
	}{
		"client credentials": {func(in *installation, s *oauthserver.Server) connection.Connection {
			c := create(in, s, `, "revoke_url": "`+s.URL+`/revoke"`)
			if err := in.call(in.parts, s, "shop"); err != nil {
				t.Error(err)
			}
			return c
		}, http.StatusOK, "access-", ""},
		"no token was issued": {func(in *installation, s *oauthserver.Server) connection.Connection {
			return create(in, s, `, "revoke_url": "`+s.URL+`/revoke"`)
		}, http.StatusOK, "", ""},
		"the service cannot revoke": {func(in *installation, s *oauthserver.Server) connection.Connection {
			c := create(in, s, "")
			if err := in.call(in.parts, s, "shop"); err != nil {
				t.Error(err)
			}
			return c
		}, http.StatusOK, "", ""},
		"the service fails": {func(in *installation, s *oauthserver.Server) connection.Connection {
			return in.connect(s, "shop")
		}, http.StatusServiceUnavailable, "refresh-", "503 Service Unavailable"},
		"the service redirects": {func(in *installation, s *oauthserver.Server) connection.Connection {
			return in.connect(s, "shop")
		}, http.StatusTemporaryRedirect, "refresh-", "307 Temporary Redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, s := newInstallation(t), oauthserver.Start(t)
			c := tc.connect(in, s)
			s.Set(func(now *oauthserver.Settings) { now.RevokeStatus = tc.status })
			if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
				t.Fatal(err)
			}
			got := s.Revoked()
			if (len(got) == 1) != (tc.revoked != "") || len(got) == 1 && !strings.HasPrefix(got[0], tc.revoked) {
				t.Errorf("revoked %q", got)
			}
			log := in.log.String()
			if !strings.Contains(log, tc.logged) || (tc.logged == "") != (log == "") {
				t.Errorf("logged %q", log)
			}
			for _, secret := range append(s.Issued(), oauthserver.ClientSecret) {
				if strings.Contains(log, secret) {
					t.Errorf("the log contains %s", secret)
				}
			}
		})
	}
}

// TestDeletedDuringRenewal checks that the token that a renewal gets is revoked if the
// connection was deleted in the meantime.
func TestDeletedDuringRenewal(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	s.ExpireAll()
	asked, answer := make(chan struct{}), make(chan struct{})
	in.client = gate{in.client, s.URL + "/token", asked, answer}
	renewing := in.node("node_1")
	done := make(chan error)
	go func() { done <- in.call(renewing, s, "shop") }()
	<-asked
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := <-done; err == nil {
		t.Error("the call used a deleted connection")
	}
	if got := s.Revoked(); len(got) != 2 || !slices.Contains(got, s.Issued()[len(s.Issued())-1]) {
		t.Errorf("revoked %q of %q", got, s.Issued())
	}
}

// gate is a client that reports the response of a URL and returns it when it is opened.
type gate struct {
	connection.Client
	url           string
	asked, answer chan struct{}
}

func (g gate) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	resp, err := g.Client.Do(ctx, r)
	if r.URL == g.url {
		close(g.asked)
		<-g.answer
	}
	return resp, err
}

// TestReconnectDoesNotRevoke checks that the token of a connection is not revoked when
// it is reconnected, which would end the new grant at many services.
func TestReconnectDoesNotRevoke(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	c := in.connect(s, "shop")
	address, err := in.Reconnect(t.Context(), in.owner, c.ID, redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Complete(t.Context(), in.owner, s.Consent(t, address)); err != nil {
		t.Fatal(err)
	}
	if got := s.Revoked(); len(got) != 0 {
		t.Errorf("revoked %q", got)
	}
}

// services responds to the requests of all integrations and records them.
type services struct {
	mu       sync.Mutex
	requests []egress.Request
}

func (s *services) Do(_ context.Context, r egress.Request) (*egress.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	body := `{"access_token": "the-access-token", "refresh_token": "the-refresh-token"}`
	return &egress.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}, nil
}

// to returns the only request to a URL.
func (s *services) to(t *testing.T, target string) egress.Request {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []egress.Request
	for _, r := range s.requests {
		if r.URL == target {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d requests to %s", len(found), target)
	}
	return found[0]
}

// TestTokenRequestsOfIntegrations checks the requests for a token and for its
// revocation: headers, where the client's credentials go, and the form of the body.
func TestTokenRequestsOfIntegrations(t *testing.T) {
	t.Parallel()
	const basic = "Basic Y2xpZW50OnMzY3JldA=="
	for _, tc := range []struct {
		integration, tokenURL, revokeURL string
		header                           http.Header
		revokes                          string // the body of the revocation
	}{
		{
			"reddit", "https://www.reddit.com/api/v1/access_token", "https://www.reddit.com/api/v1/revoke_token",
			http.Header{"User-Agent": {"web:stepmill:v1 (self-hosted)"}, "Authorization": {basic}, "Accept": {"application/json"}}, "token=the-refresh-token",
		},
		{
			"notion", "https://api.notion.com/v1/oauth/token", "https://api.notion.com/v1/oauth/revoke",
			http.Header{"Notion-Version": {"2025-09-03"}, "Authorization": {basic}, "Content-Type": {"application/json"}}, `{"token":"the-refresh-token"}`,
		},
		{
			"linear", "https://api.linear.app/oauth/token", "https://api.linear.app/oauth/revoke",
			http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "client_id=client&client_secret=s3cret&refresh_token=the-refresh-token",
		},
		{
			"quickbooks", "https://oauth.platform.intuit.com/oauth2/v1/tokens/bearer", "https://developer.api.intuit.com/v2/oauth2/tokens/revoke",
			http.Header{"Authorization": {basic}, "Accept": {"application/json"}}, `{"token":"the-refresh-token"}`,
		},
		{
			"gitlab", "https://gitlab.com/oauth/token", "https://gitlab.com/oauth/revoke",
			http.Header{"Accept": {"application/json"}}, "client_id=client&client_secret=s3cret&token=the-refresh-token",
		},
		{"github", "https://github.com/login/oauth/access_token", "", http.Header{"Accept": {"application/json"}, "X-Github-Api-Version": {"2022-11-28"}}, ""},
	} {
		t.Run(tc.integration, func(t *testing.T) {
			t.Parallel()
			in, client := newInstallation(t), &services{}
			in.client = client
			in.parts = in.node("node_1")
			if _, _, err := in.PutApp(t.Context(), in.owner, connection.NewApp{Integration: tc.integration, ClientID: "client", ClientSecret: "s3cret"}); err != nil {
				t.Fatal(err)
			}
			address, err := in.Connect(t.Context(), in.owner, connection.New{Name: "it", Integration: tc.integration, Auth: "oauth2"}, redirect)
			if err != nil {
				t.Fatal(err)
			}
			at, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			c, err := in.Complete(t.Context(), in.owner, url.Values{"code": {"the-code"}, "state": {at.Query().Get("state")}, "realmId": {"1"}})
			if err != nil {
				t.Fatal(err)
			}
			wantHeader := func(r egress.Request) {
				t.Helper()
				for name := range tc.header {
					if got := r.Header.Get(name); got != tc.header.Get(name) && !(name == "Content-Type" && r.URL == tc.tokenURL) {
						t.Errorf("%s: %s is %q", r.URL, name, got)
					}
				}
			}
			wantHeader(client.to(t, tc.tokenURL))
			if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
				t.Fatal(err)
			}
			if tc.revokeURL == "" {
				return
			}
			r := client.to(t, tc.revokeURL)
			wantHeader(r)
			if got := string(r.Body); got != tc.revokes {
				t.Errorf("the body is %s", got)
			}
		})
	}
}

// TestConsentThatCannotBeSaved checks that the token of a consent is revoked if another
// connection has taken the name in the meantime.
func TestConsentThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	in, s := newInstallation(t), oauthserver.Start(t)
	address, err := in.Connect(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: client,
		Definition: definition(s, fmt.Sprintf(`, "authorize_url": %q, "revoke_url": %q`, s.URL+"/authorize", s.URL+"/revoke")),
	}, redirect)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Create(t.Context(), in.owner, connection.New{
		Name: "shop", Auth: integration.Bearer, Fields: map[string]string{"token": "s3cret"}, Definition: []byte(`{"hosts": ["api.example.com"]}`),
	}); err != nil {
		t.Fatal(err)
	}
	_, err = in.Complete(t.Context(), in.owner, s.Consent(t, address))
	faulttest.Want(t, err, fault.ConnectionExists)
	if got := s.Revoked(); len(got) != 1 {
		t.Errorf("revoked %q", got)
	}
}
