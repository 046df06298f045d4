package connections_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// foreign is an OAuth 2 server that we did not write: oauth2-mock-server.
type foreign struct{ issuer, controls string }

// startForeign starts the server.
func startForeign(t *testing.T) foreign {
	t.Helper()
	if _, err := os.Stat("../receivers/node_modules/oauth2-mock-server"); err != nil {
		t.Fatal("run `npm ci` in test/receivers first; `make test` does it")
	}
	issuer, controls, _ := strings.Cut(harness.StartNode(t, "../receivers/oauth.mjs"), " ")
	return foreign{issuer, controls}
}

// foreignState is what the server was asked for.
type foreignState struct {
	Requests map[string]int // for tokens, by grant type
	Clients  []string
	Served   int // requests for the resource with a valid token
	Revoked  []string
}

// control changes how the server behaves and returns its state.
func (f foreign) control(t *testing.T, path, body string) (state foreignState) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, f.controls+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// consent opens the page that the server asks for consent with, and returns what it
// sends back.
func (f foreign) consent(t *testing.T, begun harness.Response) url.Values {
	t.Helper()
	var consent struct {
		AuthorizeURL string `json:"authorize_url"`
	}
	begun.Decode(t, &consent)
	page, err := url.Parse(consent.AuthorizeURL)
	if err != nil || page.Query().Get("code_challenge_method") != "S256" {
		t.Errorf("%s, %v: no PKCE", consent.AuthorizeURL, err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(consent.AuthorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	location, err := resp.Location()
	if err != nil {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return location.Query()
}

// step returns a step that reads the protected resource.
func (f foreign) step() map[string]any {
	return map[string]any{"id": "call", "uses": "http.request", "connection": name, "with": map[string]any{"url": f.issuer + "/userinfo"}}
}

// TestForeignServer connects to an OAuth 2 server that we did not write, by its issuer:
// consent with PKCE, use, renewal, a rejected refresh token, reconnecting, revocation.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	oauth := startForeign(t)
	s := harness.Start(t, t.TempDir(), allowLoopback)
	person := signUp(t, s, s.AwaitSetupToken(t))
	id := person.finish(t, oauth.consent(t, person.post(t, http.StatusOK, "/ui/v1/connections/connect", map[string]any{
		"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": "flows"},
		"definition": map[string]any{"hosts": []string{oauth.issuer}, "issuer": oauth.issuer, "scopes": []string{"openid"}, "test_url": oauth.issuer + "/userinfo"},
	})))
	var shown struct {
		Status     string
		Problem    *string
		Definition map[string]any
	}
	get := func() {
		t.Helper()
		s.Expect(t, http.StatusOK, "GET", "/v1/connections/"+id, nil).Decode(t, &shown)
	}
	if get(); shown.Status != "connected" || shown.Definition["token_url"] != oauth.issuer+"/token" || shown.Definition["client_auth"] != "body" {
		t.Errorf("%+v", shown)
	}
	workflow := flow.Define(t, s.Client, oauth.step())
	awaitSuccess(t, s.Client, startRuns(t, s.Client, workflow, 3))
	oauth.control(t, "/expire", "")
	awaitSuccess(t, s.Client, startRuns(t, s.Client, workflow, 1))
	state := oauth.control(t, "/state", "")
	if state.Requests["authorization_code"] != 1 || state.Requests["refresh_token"] != 1 || state.Clients[0] != "flows" || state.Served < 5 {
		t.Errorf("%+v", state)
	}

	oauth.control(t, "/fails", "invalid_grant")
	oauth.control(t, "/expire", "")
	waiting := startRuns(t, s.Client, workflow, 1)
	harness.Eventually(t, "the connection is broken", func() bool { get(); return shown.Status == "needs_reconnect" })
	if shown.Problem == nil || !strings.Contains(*shown.Problem, "invalid_grant") {
		t.Errorf("%+v", shown)
	}
	oauth.control(t, "/fails", "")
	person.finish(t, oauth.consent(t, person.post(t, http.StatusOK, "/ui/v1/connections/"+id+"/reconnect", nil)))
	awaitSuccess(t, s.Client, waiting)

	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
	s.Expect(t, http.StatusNoContent, "DELETE", "/v1/connections/"+id, nil)
	harness.Eventually(t, "the token is revoked", func() bool { return len(oauth.control(t, "/state", "").Revoked) == 1 })
}

func TestForeignClientCredentials(t *testing.T) {
	t.Parallel()
	oauth := startForeign(t)
	s := harness.Start(t, t.TempDir(), allowLoopback)
	s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": name, "auth": "oauth2", "fields": map[string]string{"client_id": "flows", "client_secret": "an example"},
		"definition": map[string]any{"hosts": []string{oauth.issuer}, "issuer": oauth.issuer, "grant": "client_credentials"},
	}, "Idempotency-Key", "once")
	workflow := flow.Define(t, s.Client, oauth.step())
	awaitSuccess(t, s.Client, startRuns(t, s.Client, workflow, 2))
	oauth.control(t, "/expire", "")
	awaitSuccess(t, s.Client, startRuns(t, s.Client, workflow, 1))
	if state := oauth.control(t, "/state", ""); state.Requests["client_credentials"] != 2 {
		t.Errorf("%+v", state)
	}
}
