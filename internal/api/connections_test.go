package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/uid"
)

// setupConnection creates a connection that no other workspace has. Its test fails,
// because the address is not allowed.
func setupConnection(w *testWorkspace) {
	w.t.Helper()
	w.names["conn_name"] = strings.ReplaceAll(uid.New("c"), "_", "-")
	w.create("conn", "/v1/connections", `{"name": "$conn_name", "auth": "bearer", "fields": {"token": "the token of $conn_name"},
		"definition": {"hosts": ["http://127.0.0.1:9"], "test_url": "http://127.0.0.1:9/me"}}`)
}

func setupOAuthApp(w *testWorkspace) {
	w.t.Helper()
	w.create("app", "/v1/oauth-apps", `{"integration": "slack", "client_id": "1234.5678", "client_secret": "the secret of an app"}`)
}

const (
	connectionKeys = "id name aliases integration auth status problem account fields hosts access members definition last_used_at expires_at consent_ends_at certificate_expires_at created_at created_by updated_at updated_by used_by waiting_runs"
	appKeys        = "id integration auth client_id fields shared redirect_url hooks created_at created_by updated_at updated_by"
)

func TestConnections(t *testing.T) {
	const shop = `{"name": "shop", "auth": "api_key", "fields": {"key": "s3cret-value"},
		"definition": {"hosts": ["API.Example.com:443", "http://10.0.0.5:3000"], "apply": {"headers": {"X-Api-Key": "${{ secret.key }}"}}}}`
	runScenarios(t, []scenario{
		{
			name:    "a new connection is created, and shown without its secrets",
			request: "POST /v1/connections", scope: "write", body: shop, status: 201, members: connectionKeys, audit: "connection.created",
			contains: `{"name": "shop", "integration": null, "auth": "api_key", "status": "untested", "problem": null, "fields": {}, "hosts": ["api.example.com", "http://10.0.0.5:3000"],
				"last_used_at": null, "expires_at": null, "created_by": "~key_.*", "used_by": [], "waiting_runs": 0}`,
			after: func(w *testWorkspace, a *response) {
				if strings.Contains(string(a.body), "s3cret") || a.header.Get("Location") != "/v1/connections/"+a.str("id") {
					w.t.Errorf("%v %s", a.header, a.body)
				}
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"connections": 1}}`)
			},
		},
		{
			name:    "one of an integration, with its fields",
			request: "POST /v1/connections", body: `{"name": "git", "integration": "gitlab", "auth": "bearer", "fields": {"host": "git.example.com", "token": "glpat-12345"}}`,
			status: 201, audit: "connection.created", contains: `{"integration": "gitlab", "fields": {"host": "git.example.com"}, "hosts": ["git.example.com"], "definition": null}`,
		},
		{
			name:  "a connection is read with what uses it",
			setup: setupConnection, request: "GET /v1/connections/$conn", scope: "read", status: 200, members: connectionKeys,
			contains: `{"id": "$conn", "name": "$conn_name", "used_by": [], "waiting_runs": 0}`,
		},
		{
			name: "connections are listed by name",
			setup: func(w *testWorkspace) {
				for _, name := range []string{"b", "a-b", "a_b", "a"} {
					w.create("conn", "/v1/connections", strings.Replace(shop, `"shop"`, `"`+name+`"`, 1))
				}
			},
			request: "GET /v1/connections", scope: "read", status: 200, members: "data next_cursor",
			contains: `{"data": [{"name": "a"}, {"name": "a-b"}, {"name": "a_b"}, {"name": "b", "used_by": [], "waiting_runs": 0}], "next_cursor": null}`,
		},
		{
			name:  "a secret can be replaced",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", scope: "write", body: `{"fields": {"token": "another value"}}`, status: 200,
			members: connectionKeys, contains: `{"name": "$conn_name", "status": "untested"}`, audit: "connection.updated",
		},
		{
			name:  "the hosts of a custom connection can be changed",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", body: `{"fields": {"token": "another token"}, "definition": {"hosts": ["other.example.com"]}}`, status: 200, audit: "connection.updated",
			contains: `{"hosts": ["other.example.com"], "definition": {"hosts": ["other.example.com"]}}`,
		},
		{
			name:  "a stored secret is not used in another way",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", body: `{"definition": {"hosts": ["other.example.com"]}}`, status: 400, code: "invalid_request",
			pointers: []string{"/fields/token"}, message: "in another way",
		},
		{
			name:  "a connection keeps its earlier name as an alias",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", body: `{"name": "other"}`, status: 200, audit: "connection.updated",
			contains: `{"name": "other", "aliases": ["$conn_name"], "access": "everyone", "members": []}`,
			after: func(w *testWorkspace, _ *response) {
				w.call("POST", "/v1/connections", strings.Replace(shop, `"shop"`, `"$conn_name"`, 1)).wantStatus(409, "connection_exists")
			},
		},
		{
			name: "the name of another connection",
			setup: func(w *testWorkspace) {
				w.create("other", "/v1/connections", shop)
				setupConnection(w)
			},
			request: "PATCH /v1/connections/$conn", body: `{"name": "shop", "fields": {"token": "another token"}}`, status: 409, code: "connection_exists", message: "shop",
		},
		{
			name:  "a name with spaces",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", body: `{"name": "my shop"}`, status: 400, code: "invalid_request", pointers: []string{"/name"},
		},
		{
			name:  "nobody owns a connection that a key has made",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", body: `{"access": "owner"}`, status: 400, code: "invalid_request", pointers: []string{"/access"}, message: "members",
		},
		{
			name:  "a member who does not exist",
			setup: setupConnection, request: "PATCH /v1/connections/$conn", body: `{"access": "members", "members": ["usr_01m7fhvm96e1a9mdbwb15q0y3v"]}`, status: 400, code: "invalid_request", pointers: []string{"/members/0"},
		},
		{
			name:  "a failed test is a result",
			setup: setupConnection, request: "POST /v1/connections/$conn/test", scope: "write", status: 200, members: "ok problem connection", audit: "connection.tested",
			contains: `{"ok": false, "problem": "~.+", "connection": {"id": "$conn", "status": "failing", "problem": "~.+", "used_by": [], "waiting_runs": 0}}`,
		},
		{
			name:  "a deleted connection is not found, and its name can be used again",
			setup: setupConnection, request: "DELETE /v1/connections/$conn", scope: "write", status: 204, audit: "connection.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/connections/$conn", "").wantStatus(404, "connection_not_found")
				w.call("DELETE", "/v1/connections/$conn", "").wantStatus(404, "connection_not_found")
				w.call("POST", "/v1/connections", strings.Replace(shop, `"shop"`, `"$conn_name"`, 1)).wantStatus(201)
				wantContains(w.t, w.call("GET", "/v1/usage", "").json(), `{"current": {"connections": 1}}`)
			},
		},
		{
			name:  "a name is unique",
			setup: func(w *testWorkspace) { w.create("conn", "/v1/connections", shop) }, request: "POST /v1/connections", body: shop, status: 409, code: "connection_exists", message: "shop",
		},
		{name: "a name with a capital", request: "POST /v1/connections", body: `{"name": "Shop", "auth": "bearer", "fields": {"token": "abcd"}, "definition": {"hosts": ["a.example"]}}`, status: 400, code: "invalid_request", pointers: []string{"/name"}},
		{name: "a name is required", request: "POST /v1/connections", body: `{"auth": "bearer"}`, status: 400, code: "invalid_request", pointers: []string{"/name"}, lenient: true},
		{name: "an integration or a definition is required", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer"}`, status: 400, code: "invalid_request", pointers: []string{"/integration"}},
		{name: "an unknown integration", request: "POST /v1/connections", body: `{"name": "a", "integration": "slak", "auth": "bearer"}`, status: 400, code: "invalid_request", pointers: []string{"/integration"}, message: "slack"},
		{name: "an unknown way to authenticate", request: "POST /v1/connections", body: `{"name": "a", "integration": "slack", "auth": "magic"}`, status: 400, code: "invalid_request", pointers: []string{"/auth"}},
		{name: "an unknown kind", request: "POST /v1/connections", body: `{"name": "a", "auth": "magic", "definition": {"hosts": ["a.example"]}}`, status: 400, code: "invalid_request", pointers: []string{"/auth"}},
		{name: "a definition without hosts", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "fields": {"token": "abcd"}, "definition": {"hosts": []}}`, status: 400, code: "invalid_request", pointers: []string{"/definition/hosts"}},
		{name: "a host with a path", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "fields": {"token": "abcd"}, "definition": {"hosts": ["a.example/x"]}}`, status: 400, code: "invalid_request", pointers: []string{"/definition/hosts"}},
		{name: "an unknown member of the definition", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "fields": {"token": "abcd"}, "definition": {"hosts": ["a.example"], "host": "b"}}`, status: 400, code: "invalid_request", pointers: []string{"/definition/host"}},
		{name: "a member of another kind", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "fields": {"token": "abcd"}, "definition": {"hosts": ["a.example"], "scopes": ["x"]}}`, status: 400, code: "invalid_request", pointers: []string{"/definition/scopes"}},
		{name: "an unknown field", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "fields": {"token": "abcd", "tokn": "efgh"}, "definition": {"hosts": ["a.example"]}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/tokn"}},
		{name: "a secret of three characters cannot be masked", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "fields": {"token": "äöü"}, "definition": {"hosts": ["a.example"]}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/token"}},
		{name: "a missing field", request: "POST /v1/connections", body: `{"name": "a", "auth": "bearer", "definition": {"hosts": ["a.example"]}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/token"}},
		{
			name: "an unreadable key file", request: "POST /v1/connections", status: 400, code: "invalid_request", pointers: []string{"/fields/key"},
			body: `{"name": "a", "auth": "service_account", "fields": {"key": "{\"type\": \"service_account\"}"}, "definition": {"hosts": ["a.example"], "token_url": "https://a.example/token", "scopes": ["x"]}}`,
		},
		{
			name: "a way that needs consent", request: "POST /v1/connections", body: `{"name": "a", "integration": "slack", "auth": "oauth2"}`,
			status: 400, code: "invalid_request", pointers: []string{"/auth"}, message: "dashboard",
		},
	})
}

// A connection that an active workflow uses cannot be deleted.
func TestConnectionInUse(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupConnection(w)
	step := `{"id": "get", "uses": "http.request", "connection": "$conn_name", "with": {"url": "https://api.example.com/"}}`
	w.create("wf", "/v1/workflows", `{"name": "Orders"}`)
	w.call("PATCH", "/v1/workflows/$wf", `{"steps": [{"id": "get", "uses": "http.request", "connection": "none", "with": {"url": "https://a.example/"}}]}`).wantStatus(422, "workflow_invalid")
	w.patch("wf", `{"steps": [`+step+`]}`)
	wantContains(t, w.call("GET", "/v1/connections/$conn", "").json(), w.expand(`{"used_by": [{"workflow_id": "$wf", "name": "Orders", "active": false, "steps": ["get"], "triggers": []}]}`))
	w.patch("wf", `{"state": "active"}`)
	active := w.expand(`{"used_by": [{"workflow_id": "$wf", "name": "Orders", "active": true}], "waiting_runs": 0}`)
	wantContains(t, w.call("GET", "/v1/connections", "").json(), `{"data": [`+active+`]}`)
	wantContains(t, w.call("PATCH", "/v1/connections/$conn", `{"fields": {"token": "another token"}}`).json(), active)
	wantContains(t, w.call("POST", "/v1/connections/$conn/test", "").json(), `{"connection": `+active+`}`)
	if a := w.call("DELETE", "/v1/connections/$conn", "").wantStatus(409, "connection_in_use"); !strings.Contains(string(a.body), "Orders") {
		t.Errorf("%s", a.body)
	}
	w.patch("wf", `{"state": "paused"}`)
	w.call("DELETE", "/v1/connections/$conn", "").wantStatus(204)
	a := w.call("PATCH", "/v1/workflows/$wf", `{"state": "active"}`).wantStatus(422, "workflow_invalid")
	if !strings.Contains(string(a.body), "/steps/0/connection") {
		t.Errorf("%s", a.body)
	}
	w.patch("wf", `{"name": "Sales", "state": "draft"}`)
	w.create("conn", "/v1/connections", `{"name": "$conn_name", "auth": "bearer", "fields": {"token": "a new token"}, "definition": {"hosts": ["api.example.com"]}}`)
	w.patch("wf", `{"state": "active"}`)
	w.patch("wf", `{"steps": []}`)
	wantContains(t, w.call("GET", "/v1/connections/$conn", "").json(), `{"used_by": []}`)
	w.call("DELETE", "/v1/connections/$conn", "").wantStatus(204)
}

func TestOAuthApps(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name:    "a new app is created, and shown without its secret",
			request: "POST /v1/oauth-apps", scope: "admin", body: `{"integration": "slack", "client_id": " 1234.5678 ", "client_secret": "s3cret-value", "fields": {"signing_secret": "s3cret-too"}}`, status: 201,
			members: appKeys, audit: "oauth_app.created",
			contains: `{"integration": "slack", "auth": "oauth2", "client_id": "1234.5678", "fields": {}, "shared": false, "redirect_url": "~https?://.*/ui/v1/oauth/callback"}`,
			after: func(w *testWorkspace, a *response) {
				if strings.Contains(string(a.body), "s3cret") || a.header.Get("Location") != "/v1/oauth-apps/"+a.str("id") {
					w.t.Errorf("%v %s", a.header, a.body)
				}
			},
		},
		{
			name:  "another one for the same service replaces it",
			setup: setupOAuthApp, request: "POST /v1/oauth-apps", scope: "admin", body: `{"integration": "slack", "auth": "oauth2", "client_id": "new", "client_secret": "s3cret-value"}`, status: 200,
			contains: `{"id": "$app", "client_id": "new"}`, audit: "oauth_app.updated",
			after: func(w *testWorkspace, _ *response) {
				wantContains(w.t, w.call("GET", "/v1/oauth-apps", "").json(), w.expand(`{"data": [{"id": "$app"}], "next_cursor": null}`))
			},
		},
		{name: "an app is read", setup: setupOAuthApp, request: "GET /v1/oauth-apps/$app", scope: "admin", status: 200, members: appKeys, contains: `{"id": "$app", "client_id": "1234.5678"}`},
		{
			name: "a deleted app is not found", setup: setupOAuthApp, request: "DELETE /v1/oauth-apps/$app", scope: "admin", status: 204, audit: "oauth_app.deleted",
			after: func(w *testWorkspace, _ *response) {
				w.call("GET", "/v1/oauth-apps/$app", "").wantStatus(404, "oauth_app_not_found")
			},
		},
		{name: "the secret is required", request: "POST /v1/oauth-apps", body: `{"integration": "slack", "client_id": "c"}`, status: 400, code: "invalid_request", pointers: []string{"/client_secret"}, lenient: true},
		{name: "an unknown integration", request: "POST /v1/oauth-apps", body: `{"integration": "slak", "client_id": "c", "client_secret": "s3cret"}`, status: 400, code: "invalid_request", pointers: []string{"/integration"}, message: "slack"},
		{name: "an integration without consent", request: "POST /v1/oauth-apps", body: `{"integration": "stripe", "client_id": "c", "client_secret": "s3cret"}`, status: 400, code: "invalid_request", pointers: []string{"/integration"}},
		{name: "an unknown field", request: "POST /v1/oauth-apps", body: `{"integration": "slack", "client_id": "c", "client_secret": "s3cret", "fields": {"signing": "s3cret"}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/signing"}},
		{name: "a secret field of three characters cannot be masked", request: "POST /v1/oauth-apps", body: `{"integration": "slack", "client_id": "c", "client_secret": "s3cret", "fields": {"signing_secret": "abc"}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/signing_secret"}},
		{name: "a field that is too long", request: "POST /v1/oauth-apps", body: `{"integration": "slack", "client_id": "c", "client_secret": "s3cret", "fields": {"signing_secret": "` + strings.Repeat("x", 65<<10) + `"}}`, status: 400, code: "invalid_request", pointers: []string{"/fields/signing_secret"}},
		{name: "only the first workspace shares apps", request: "POST /v1/oauth-apps", body: `{"integration": "slack", "client_id": "c", "client_secret": "s3cret", "shared": true}`, status: 400, code: "invalid_request", pointers: []string{"/shared"}},
	})
}

// A person connects a service by consent, in a session.
func TestConnectRoutes(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	owner := w.addUser("owner")
	const slack = `{"name": "team", "integration": "slack", "auth": "oauth2"}`
	owner.call("POST", "/ui/v1/connections/connect", slack).wantStatus(409, "oauth_app_missing")
	setupOAuthApp(w)
	setupConnection(w)
	owner.call("POST", "/ui/v1/connections/connect", w.expand(`{"name": "$conn_name", "integration": "slack", "auth": "oauth2"}`)).wantStatus(409, "connection_exists")
	owner.call("POST", "/ui/v1/connections/connect", `{"name": "git", "integration": "gitlab", "auth": "bearer", "fields": {"token": "abcd"}}`).wantStatus(400, "invalid_request")
	owner.call("POST", w.expand("/ui/v1/connections/$conn/reconnect"), "").wantStatus(400, "invalid_request")
	owner.call("POST", "/ui/v1/connections/conn_01m7facgqmf46bs8r42wfv2z13/reconnect", "").wantStatus(404, "connection_not_found")
	w.addUser("viewer").call("POST", "/ui/v1/connections/connect", slack).wantStatus(403, "insufficient_scope")

	begun := owner.call("POST", "/ui/v1/connections/connect", slack).wantStatus(200)
	at, err := url.Parse(begun.str("authorize_url"))
	if err != nil || at.Host != "slack.com" || at.Query().Get("redirect_uri") != begun.str("redirect_url") || at.Query().Get("client_id") != "1234.5678" {
		t.Errorf("%v %s", err, begun.body)
	}
	if got := owner.call("GET", "/ui/v1/session", "").wantStatus(200).str("oauth_redirect_url"); got != begun.str("redirect_url") {
		t.Errorf("the redirect URL of the session is %s", got)
	}
	refused := "/ui/v1/oauth/callback?error=access_denied&error_description=no&state=" + at.Query().Get("state")
	for _, tc := range []struct {
		name              string
		client            client
		path, code, means string
	}{
		{"no session", w.server.anonymous(t), refused, "unauthorized", "sign in, and connect again"},
		{"a session that has ended", client{t: t, server: w.server, token: strings.Repeat("x", 43)}, refused, "unauthorized", "sign in, and connect again"},
		{"a role that may not connect", w.addUser("viewer").client, refused, "insufficient_scope", "your role"},
		{"another person", w.addUser("owner").client, refused, "consent_expired", "another person"},
		{"an unknown state", owner.client, "/ui/v1/oauth/callback?code=x&state=y", "consent_expired", "Connect again"},
		{"no parameters", owner.client, "/ui/v1/oauth/callback", "consent_expired", "Connect again"},
		{"refused", owner.client, refused, "consent_refused", "access_denied (no). To fix it: connect again and allow it"},
		{"a used state", owner.client, refused, "consent_expired", "was completed before"},
	} {
		done := tc.client.call("GET", tc.path, "").wantStatus(http.StatusFound)
		to, err := url.Parse(done.header.Get("Location"))
		if err != nil || to.Path != "/connections/done" || !to.Query().Has("state") || to.Query().Get("error") != tc.code || !strings.Contains(to.Query().Get("message"), tc.means) {
			t.Errorf("%s: got %s, want %s, %s", tc.name, done.header.Get("Location"), tc.code, tc.means)
		}
	}
	wantContains(t, owner.call("GET", "/ui/v1/connections", "").json(), w.expand(`{"data": [{"id": "$conn"}]}`))
}

// A consent begins where the browser will have a session when it comes back.
func TestConnectAtAnotherHost(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	owner := w.addUser("owner")
	setupOAuthApp(w)
	port := w.server.url[strings.LastIndex(w.server.url, ":"):]
	for origin, refused := range map[string]bool{
		w.server.url:                  false,
		strings.ToUpper(w.server.url): false,
		"null":                        false, // and the host is the same
		"":                            false,
		"http://localhost" + port:     true,
		"https://127.0.0.1" + port:    true,
		"http://127.0.0.1":            true,
		"https://proxy.example.com":   true,
	} {
		for _, path := range []string{"/ui/v1/connections/connect", "/ui/v1/connections/conn_01m7facgqmf46bs8r42wfv2z13/reconnect"} {
			body := ""
			if strings.HasSuffix(path, "/connect") {
				body = `{"name": "team", "integration": "slack", "auth": "oauth2"}`
			}
			got := owner.call("POST", path, body, "Origin", origin, "Sec-Fetch-Site", "same-origin")
			if refused {
				got.wantStatus(409, "wrong_host")
				if text := string(got.body); !strings.Contains(text, origin) || !strings.Contains(text, w.server.url) || !strings.Contains(text, "--public-url") {
					t.Errorf("%s: %s", origin, text)
				}
			} else if got.status == 409 {
				t.Errorf("%q is refused: %s", origin, got.body)
			}
		}
	}
}

// A connection for chosen people is closed to everybody else, in workflows and tests too.
func TestRestrictedConnection(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	setupConnection(w)
	setupMember(w)
	w.call("PATCH", "/v1/connections/$conn", `{"access": "members", "members": ["$member"]}`).wantStatus(200)
	for _, call := range [][3]string{
		{"PATCH", "/v1/connections/$conn", `{"access": "everyone"}`},
		{"PATCH", "/v1/connections/$conn", `{"name": "other"}`},
		{"POST", "/v1/connections/$conn/test", ""},
		{"POST", "/v1/connections/$conn/options", `{"operation": "slack.post_message", "input": "channel"}`},
		{"DELETE", "/v1/connections/$conn", ""},
	} {
		w.call(call[0], call[1], call[2]).wantStatus(403, "connection_restricted")
	}
	step := `{"id": "get", "uses": "http.request", "connection": "$conn_name", "with": {"url": "https://api.example.com/"}}`
	w.create("wf", "/v1/workflows", `{"name": "Orders"}`)
	for _, call := range [][3]string{
		{"PATCH", "/v1/workflows/$wf", `{"steps": [` + step + `]}`},
		{"POST", "/v1/workflows/$wf/steps/get/test", `{"definition": {"steps": [` + step + `]}}`},
		{"POST", "/v1/workflows/import", `{"name": "Copy", "steps": [` + step + `]}`},
	} {
		a := w.call(call[0], call[1], call[2])
		if a.status != 422 || !strings.Contains(string(a.body), "not open to you") {
			t.Errorf("%s %s: %d %s", call[0], call[1], a.status, a.body)
		}
	}
	wantContains(t, w.call("GET", "/v1/connections/$conn", "").json(), w.expand(`{"access": "members", "members": ["$member"], "used_by": []}`))
}
