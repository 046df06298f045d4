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

// TestDeviceCodeOfAProvider connects with a code to a provider that we did not write. The
// server is killed while the person has not entered the code.
func TestDeviceCodeOfAProvider(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	dir := t.TempDir()
	s := harness.Start(t, dir, allowLoopback)
	person := signUp(t, s, s.AwaitSetupToken(t))
	wanted := map[string]any{
		"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": "device"},
		"definition": map[string]any{
			"hosts": []string{p.controls}, "issuer": p.issuer, "grant": "device_code", "scopes": []string{"openid", "offline_access"}, "test_url": p.controls + "/resource",
		},
	}
	s.Expect(t, http.StatusUnauthorized, "POST", "/ui/v1/connections/connect-device", wanted) // an API key
	var asked struct {
		State    string
		UserCode string `json:"user_code"`
		URL      string `json:"verification_url"`
	}
	person.post(t, http.StatusOK, "/ui/v1/connections/connect-device", wanted).Decode(t, &asked)
	if asked.URL != p.issuer+"/device" {
		t.Errorf("%+v", asked)
	}
	type outcome struct {
		Connection *struct{ ID, Status string }
		RetryAfter *int `json:"retry_after"`
	}
	poll := func() (now outcome) {
		t.Helper()
		person.post(t, http.StatusOK, "/ui/v1/connections/poll-device", map[string]any{"state": asked.State}).Decode(t, &now)
		return now
	}
	if now := poll(); now.Connection != nil || now.RetryAfter == nil || *now.RetryAfter < 1 {
		t.Errorf("%+v", now)
	}
	s.Kill(t)
	s = harness.Start(t, dir, allowLoopback)
	person.Client = s.With("")
	poll()
	p.enter(t, asked.UserCode)
	var made outcome
	harness.Eventually(t, "the connection is made", func() bool { made = poll(); return made.Connection != nil })
	if made.Connection.Status != "connected" || made.RetryAfter != nil {
		t.Errorf("%+v", made)
	}
	person.post(t, http.StatusConflict, "/ui/v1/connections/poll-device", map[string]any{"state": asked.State})

	person.post(t, http.StatusOK, "/ui/v1/connections/"+made.Connection.ID+"/reconnect-device", nil).Decode(t, &asked)
	p.enter(t, asked.UserCode)
	harness.Eventually(t, "it is reconnected", func() bool { made = poll(); return made.Connection != nil })
}

// enter does what a person does who enters a code and consents.
func (p provider) enter(t *testing.T, code string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.controls+"/enter", strings.NewReader(code))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}
