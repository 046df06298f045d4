package connections_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// provider is a certified OpenID provider that we did not write: oidc-provider.
type provider struct {
	issuer, controls string
	keys             map[string]string // private keys, by client id
}

// startProvider starts the provider.
func startProvider(t *testing.T) provider {
	t.Helper()
	if _, err := os.Stat("../receivers/node_modules/oidc-provider"); err != nil {
		t.Fatal("run `npm ci` in test/receivers first; `make test` does it")
	}
	issuer, controls, _ := strings.Cut(harness.StartNode(t, "../receivers/oidc.mjs"), " ")
	p := provider{issuer: issuer, controls: controls}
	harness.NewClient(controls, "").Expect(t, http.StatusOK, "GET", "/keys", nil).Decode(t, &p.keys)
	return p
}

// TestSignedClients gets tokens with private keys of every kind from a provider that we
// did not write: with its issuer as the audience of the assertions, and with its token
// URL.
func TestSignedClients(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	s := harness.Start(t, t.TempDir(), allowLoopback)
	test := func(name, client, key string, definition map[string]any) (result struct {
		OK      bool
		Problem *string
	}) {
		t.Helper()
		definition["hosts"], definition["test_url"], definition["client_auth"] = []string{p.controls}, p.controls+"/resource", "private_key_jwt"
		var made struct{ ID string }
		s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
			"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": client, "private_key": key, "key_id": client + "-1"}, "definition": definition,
		}, "Idempotency-Key", name).Decode(t, &made)
		s.Expect(t, http.StatusOK, "POST", "/v1/connections/"+made.ID+"/test", nil).Decode(t, &result)
		return result
	}
	byIssuer := func() map[string]any { return map[string]any{"issuer": p.issuer, "grant": "client_credentials"} }
	byURL := func() map[string]any { return map[string]any{"token_url": p.issuer + "/token"} }
	if len(p.keys) != 5 {
		t.Fatalf("%d keys", len(p.keys))
	}
	for client, key := range p.keys {
		if result := test(client+"_issuer", client, key, byIssuer()); !result.OK {
			t.Errorf("%s, by issuer: %s", client, *result.Problem)
		}
		if result := test(client+"_url", client, key, byURL()); !result.OK {
			t.Errorf("%s, by URL: %s", client, *result.Problem)
		}
	}
	result := test("foreign_key", "p256", p.keys["p384"], byURL())
	if result.OK || !strings.Contains(*result.Problem, "invalid_client") {
		t.Errorf("the key of another client: %+v", result)
	}
}
