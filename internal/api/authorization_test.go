package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/transport"
)

// badCaller is a request without a valid key.
type badCaller struct {
	name    string
	query   string
	headers []string
}

// badCallers lists all ways to send no valid key.
func badCallers(w *testWorkspace) []badCaller {
	w.t.Helper()
	expired := w.call("POST", "/v1/api-keys", fmt.Sprintf(`{"name": "x", "scopes": ["admin"], "expires_at": %q}`, time.Now().Add(time.Hour).Format(time.RFC3339Nano))).wantStatus(201)
	w.server.query(w.t, `UPDATE api_keys SET expires_at = created_at + 1 WHERE id = ?`, expired.str("id"))
	revoked := w.call("POST", "/v1/api-keys", `{"name": "x", "scopes": ["admin"]}`).wantStatus(201)
	w.call("DELETE", "/v1/api-keys/"+revoked.str("id"), "").wantStatus(204)

	valid := w.key
	body := valid[:len(valid)-6]
	last := "A"
	if strings.HasSuffix(valid, "A") {
		last = "B"
	}
	unknown := "smk_00000000_" + strings.Repeat("z", 40)
	guessed := body[:13] + strings.Repeat("z", 40) // right id, wrong secret
	basic := base64.StdEncoding.EncodeToString([]byte(valid + ":"))
	bearer := func(value string) []string { return []string{"Authorization", "Bearer " + value} }
	return []badCaller{
		{name: "no key", headers: []string{"Authorization", ""}},
		{name: "no value", headers: []string{"Authorization", "Bearer"}},
		{name: "a malformed key", headers: bearer("nonsense")},
		{name: "a bad checksum", headers: bearer(valid[:len(valid)-1] + last)},
		{name: "a key cut short", headers: bearer(valid[:len(valid)-1])},
		{name: "a key with more", headers: bearer(valid + "a")},
		{name: "two keys", headers: bearer(valid + " " + valid)},
		{name: "an unknown key", headers: bearer(unknown + checksum(unknown))},
		{name: "a guessed key", headers: bearer(guessed + checksum(guessed))},
		{name: "the prefix of a key", headers: bearer(valid[:12])},
		{name: "the id of a key", headers: bearer(w.names["key"])},
		{name: "a revoked key", headers: bearer(revoked.str("key"))},
		{name: "an expired key", headers: bearer(expired.str("key"))},
		{name: "the scheme Basic", headers: []string{"Authorization", "Basic " + basic}},
		{name: "the scheme Token", headers: []string{"Authorization", "Token " + valid}},
		{name: "no scheme", headers: []string{"Authorization", valid}},
		{name: "another header", headers: []string{"Authorization", "", "X-API-Key", valid, "Cookie", "session=" + valid + "; __Host-stepmill=" + valid}},
		{name: "a session", headers: []string{"Authorization", "", "Cookie", "__Host-stepmill=" + w.names["token"]}},
		{name: "a key in the query", query: "key=" + valid + "&api_key=" + valid + "&access_token=" + valid, headers: []string{"Authorization", ""}},
	}
}

// Every route × every kind of caller that is rejected. Nothing is stored.
func TestAuthorizationMatrixRejects(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w, other := s.newTestWorkspace(t), s.newTestWorkspace(t)
	createOneOfEach(w)
	createOneOfEach(other)
	bad := badCallers(w)
	scoped := map[auth.Scope]client{}
	for _, scope := range auth.Scopes() {
		scoped[scope] = w.withScopes(string(scope))
	}
	before := s.tableContents(t)
	for _, route := range routes() {
		t.Run(routeName(route), func(t *testing.T) {
			if route.Scope != auth.Public {
				checkInvalidKeys(t, w, route, bad)
				checkOtherScopes(t, w, route, scoped)
			}
			if id, _, _, has := collection(route); has && strings.HasPrefix(id, "$") && !createsMissing(route) {
				checkForeignIDs(t, w, other, route)
			}
			if operatorOnly[routeName(route)] {
				path := w.expand(routePath(route, "$workspace"))
				scoped[auth.Admin].withT(t).call(route.Method, path, routeBody(t, route)).wantStatus(403, "insufficient_scope")
			}
		})
	}
	if diff := cmp.Diff(before, s.tableContents(t)); diff != "" {
		t.Errorf("rejected requests changed the store (-before +after):\n%s", diff)
	}
}

func checkInvalidKeys(t *testing.T, w *testWorkspace, route transport.Route, bad []badCaller) {
	t.Helper()
	id, _, _, _ := collection(route)
	for _, caller := range bad {
		path := w.expand(routePath(route, id))
		if caller.query != "" {
			separator := "?"
			if strings.Contains(path, "?") {
				separator = "&"
			}
			path += separator + caller.query
		}
		a := w.client.withT(t).call(route.Method, path, routeBody(t, route), caller.headers...)
		if a.status != http.StatusUnauthorized || a.code() != "unauthorized" || a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("with %s: got %d %s", caller.name, a.status, a.body)
		}
	}
}

func checkOtherScopes(t *testing.T, w *testWorkspace, route transport.Route, scoped map[auth.Scope]client) {
	t.Helper()
	id, missing, _, _ := collection(route)
	for scope, c := range scoped {
		if scope == route.Scope || scope == auth.Admin {
			continue
		}
		// Without the scope, the response does not reveal whether the id
		// exists.
		for _, id := range []string{id, missing} {
			a := c.withT(t).call(route.Method, w.expand(routePath(route, id)), routeBody(t, route))
			if a.status != http.StatusForbidden || a.code() != "insufficient_scope" || !strings.Contains(a.message(), string(route.Scope)) {
				t.Errorf("with the scope %s: got %d %s", scope, a.status, a.body)
			}
		}
	}
}

// checkForeignIDs checks that objects of another workspace cannot be told from
// unknown ones.
func checkForeignIDs(t *testing.T, w, other *testWorkspace, route transport.Route) {
	t.Helper()
	id, missing, code, _ := collection(route)
	var answers []*response
	var ids []string
	for _, id := range []string{other.expand(id), missing} {
		a := w.client.withT(t).call(route.Method, routePath(route, id), routeBody(t, route)).wantStatus(404, code)
		if !strings.Contains(a.message(), id) {
			t.Errorf("the message does not name %s: %s", id, a.body)
		}
		answers, ids = append(answers, a), append(ids, id)
	}
	if foreign, none := normalized(answers[0], ids[0]), normalized(answers[1], ids[1]); foreign != none {
		t.Errorf("a foreign id can be distinguished from an unknown one:\n%s\n%s", foreign, none)
	}
}

// normalized returns a response without parts that differ between requests.
func normalized(a *response, id string) string {
	header := a.header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Content-Length"} {
		header.Del(name)
	}
	text := strings.NewReplacer(id, "ID", a.header.Get("X-Request-Id"), "REQUEST").Replace(string(a.body))
	return fmt.Sprint(a.status, header, text)
}

// Every route × every caller that is allowed. A route that changes something is called
// with its own scope alone: it needs objects that no other call has changed, and the
// other tests call it as admin.
func TestAuthorizationMatrixAllows(t *testing.T) {
	t.Parallel()
	reading := newTestWorkspace(t) // for routes that change nothing
	createOneOfEach(reading)
	for _, route := range routes() {
		t.Run(routeName(route), func(t *testing.T) {
			t.Parallel()
			w, scopes := reading.withT(t), [][]string{{string(route.Scope)}, {"admin"}, {"read", "write", "execute", "admin"}}
			if route.Method != http.MethodGet {
				w, scopes = newTestWorkspace(t), scopes[:1]
				createOneOfEach(w)
			}
			for _, held := range scopes {
				as := w.server.operator(t)
				switch {
				case operatorOnly[routeName(route)]:
				case held[0] == string(auth.Public):
					as = w.server.anonymous(t)
				default:
					as = w.withScopes(held...)
				}
				id, _, _, _ := collection(route)
				a := as.call(route.Method, w.expand(routePath(route, id)), routeBody(t, route))
				if want := statusOf(route); a.status != want {
					t.Errorf("with the scopes %v: got %d %s, want %d", held, a.status, a.body, want)
				}
			}
		})
	}
}

// The scheme is case-insensitive, and white space around a key is ignored.
func TestAuthorizationHeaderForms(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for _, form := range []string{"Bearer %s", "bearer %s", "BEARER %s", "Bearer  %s", "Bearer %s "} {
		w.call("GET", "/v1/workflows", "", "Authorization", fmt.Sprintf(form, w.key)).wantStatus(200)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.url+"/v1/workflows", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header["Authorization"] = []string{"Bearer " + w.key, "Bearer " + w.key}
	w.send(request, "").wantStatus(401, "unauthorized")
}

// A key cannot see or change anything in another workspace.
func TestWorkspaceIsolation(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	createOneOfEach(other)
	other.workflow("empty")
	other.runToEnd("done", "empty", "")
	for _, path := range []string{"/v1/workflows", "/v1/runs", "/v1/approvals", "/v1/webhooks", "/v1/events", "/v1/secrets", "/v1/variables", "/v1/connections", "/v1/tables", "/v1/state", "/v1/oauth-apps", "/v1/audit", "/v1/nodes", "/v1/members", "/v1/invitations", "/v1/api-keys", "/v1/workspaces", "/v1/usage", "/v1/search?q=workflow", "/v1/search?q=run_", "/v1/search?q=wf_"} {
		body := string(w.call("GET", path, "").wantStatus(200).body)
		for what, id := range other.names {
			if strings.Contains(body, id) {
				t.Errorf("%s shows the %s of another workspace: %s", path, what, body)
			}
		}
	}
}
