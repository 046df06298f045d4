package connection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/fault/faulttest"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/certificate"
)

// tokenServer is a service and its authorization server on one host, which records
// requests by path.
type tokenServer struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	issuer := "https://" + r.Host
	switch r.URL.Path {
	case openID:
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "token_endpoint": issuer + "/token", "revocation_endpoint": issuer + "/revoke"})
	case "/token":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"access_token": "issued-token", "expires_in": 3600}`)
	}
}

// requests returns the requests for a path.
func (s *tokenServer) requests(path string) (out []*http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if r.URL.Path == path {
			out = append(out, r)
		}
	}
	return out
}

func encoded(t *testing.T, definition map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOwnAuthority checks that a connection trusts its authorities for everything that it
// sends: discovery, tokens, tests, revocations and the requests of steps.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	in, ca, service := newInstallation(t), certificate.NewAuthority(t), &tokenServer{}
	server := ca.Serve(t, nil, service)
	wanted := connection.New{
		Name: "shop", Auth: integration.OAuth2, Fields: map[string]string{"client_id": "flows", "client_secret": "an example"},
		Definition: encoded(t, map[string]any{
			"hosts": []string{server.URL}, "issuer": server.URL, "grant": "client_credentials", "test_url": server.URL + "/me", "ca": ca.PEM,
		}),
	}
	wanted, err := in.Discover(t.Context(), in.owner, wanted)
	if err != nil {
		t.Fatal(err)
	}
	c, err := in.Create(t.Context(), in.owner, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := in.Test(t.Context(), in.owner, c.ID); err != nil || result.Problem != "" {
		t.Errorf("%+v, %v", result, err)
	}
	if err := in.use("shop", server.URL+"/resource"); err != nil {
		t.Error(err)
	}
	if err := in.Delete(t.Context(), in.owner, c.ID); err != nil {
		t.Error(err)
	}
	for _, path := range []string{openID, "/token", "/me", "/resource", "/revoke"} {
		if len(service.requests(path)) == 0 {
			t.Errorf("there was no request for %s", path)
		}
	}
}

// use sends a request with a connection.
func (in *installation) use(name, target string) error {
	return in.Use(in.t.Context(), in.owner.Workspace.ID, name, time.Minute, func(ctx context.Context, c action.Connection) error {
		resp, err := in.client.Do(ctx, egress.Request{URL: target, Credential: c.Credential, Workspace: in.owner.Workspace.ID, FollowRedirects: true})
		switch {
		case err != nil:
			return err
		case resp.Status == http.StatusUnauthorized:
			return &action.Failure{Code: "http_error", Message: "401", Rejected: true}
		case resp.Status != http.StatusOK:
			return fmt.Errorf("status %d", resp.Status)
		}
		return nil
	})
}

// TestAuthorityIsNotTrusted checks that other connections do not trust the authority of
// one.
func TestAuthorityIsNotTrusted(t *testing.T) {
	t.Parallel()
	in, ca := newInstallation(t), certificate.NewAuthority(t)
	server := ca.Serve(t, nil, &tokenServer{})
	for name, ca := range map[string]string{"trusts": ca.PEM, "trusts-another": certificate.NewAuthority(t).PEM, "trusts-none": ""} {
		definition := map[string]any{"hosts": []string{server.URL}}
		if ca != "" {
			definition["ca"] = ca
		}
		if _, err := in.Create(t.Context(), in.owner, connection.New{
			Name: name, Auth: integration.Bearer, Fields: map[string]string{"token": "a-token"}, Definition: encoded(t, definition),
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := in.use("trusts", server.URL); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"trusts-another", "trusts-none"} {
			if err := in.use(name, server.URL); err == nil || !strings.Contains(err.Error(), "not signed by a trusted authority") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAuthoritiesAreChecked(t *testing.T) {
	t.Parallel()
	in, ca := newInstallation(t), certificate.NewAuthority(t)
	expired, _ := ca.Client(t, "an old one", time.Now().Add(-time.Hour))
	for name, tc := range map[string]struct{ ca, says string }{
		"no PEM":   {"trust me", "PEM format"},
		"expired":  {ca.PEM + expired, "expired on " + time.Now().Add(-time.Hour).UTC().Format("2006-01-02") + ": CN=an old one"},
		"too long": {strings.Repeat(ca.PEM, 60), "at most 32 KiB"},
	} {
		for _, auth := range []string{integration.Bearer, integration.OAuth2} {
			definition := map[string]any{"hosts": []string{"api.example.com"}, "ca": tc.ca}
			if auth == integration.OAuth2 {
				definition["issuer"] = "https://api.example.com" // which is not asked
			}
			wanted, err := in.Discover(t.Context(), in.owner, connection.New{
				Name: "shop", Auth: auth, Fields: map[string]string{"token": "a-token"}, Definition: encoded(t, definition),
			})
			if err == nil {
				_, err = in.Create(t.Context(), in.owner, wanted)
			}
			faulttest.Want(t, err, fault.InvalidRequest, "/definition/ca")
			if failure, ok := fault.As(err); ok && !strings.Contains(failure.Details[0].Message, tc.says) {
				t.Errorf("%s, %s: %+v", name, auth, failure.Details)
			}
		}
	}
}
