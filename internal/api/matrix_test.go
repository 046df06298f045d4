package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/auth"
)

// badCaller is a way to come without a valid key.
type badCaller struct {
	name    string
	query   string
	headers []string
}

// badCallers are all ways to come without a valid key to a workspace.
func badCallers(w *world) []badCaller {
	w.t.Helper()
	end := time.Now().Add(200 * time.Millisecond)
	expired := w.call("POST", "/v1/api-keys", fmt.Sprintf(`{"name": "x", "scopes": ["admin"], "expires_at": %q}`, end.Format(time.RFC3339Nano))).want(201).text("key")
	revoked := w.call("POST", "/v1/api-keys", `{"name": "x", "scopes": ["admin"]}`).want(201)
	w.call("DELETE", "/v1/api-keys/"+revoked.text("id"), "").want(204)
	time.Sleep(time.Until(end) + 10*time.Millisecond)

	valid := w.key
	body := valid[:len(valid)-6]
	last := "A"
	if strings.HasSuffix(valid, "A") {
		last = "B"
	}
	unknown := "smk_00000000_" + strings.Repeat("z", 40)
	guessed := body[:13] + strings.Repeat("z", 40) // the right id, another secret
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
		{name: "a revoked key", headers: bearer(revoked.text("key"))},
		{name: "an expired key", headers: bearer(expired)},
		{name: "the scheme Basic", headers: []string{"Authorization", "Basic " + basic}},
		{name: "the scheme Token", headers: []string{"Authorization", "Token " + valid}},
		{name: "no scheme", headers: []string{"Authorization", valid}},
		{name: "another header", headers: []string{"Authorization", "", "X-API-Key", valid, "Cookie", "session=" + valid + "; __Host-stepmill=" + valid}},
		{name: "a session", headers: []string{"Authorization", "", "Cookie", "__Host-stepmill=" + w.names["token"]}},
		{name: "a key in the query", query: "?key=" + valid + "&api_key=" + valid + "&access_token=" + valid, headers: []string{"Authorization", ""}},
	}
}

// Every route × every kind of caller that is turned away: by table, and without
// a trace in the store.
func TestMatrixOfRefusals(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w, other := s.newWorld(t), s.newWorld(t)
	furnish(w)
	furnish(other)
	bad := badCallers(w)
	scoped := map[auth.Scope]client{}
	for _, scope := range auth.Scopes() {
		scoped[scope] = w.as(string(scope))
	}
	before := s.content(t)
	for _, route := range routes() {
		t.Run(name(route), func(t *testing.T) {
			if route.Scope != auth.Public {
				refuseStrangers(t, w, route, bad)
				refuseOtherScopes(t, w, route, scoped)
			}
			if id, _, _, has := collection(route); has && strings.HasPrefix(id, "$") && !makes(route) {
				refuseForeignIDs(t, w, other, route)
			}
			if operatorOnly[name(route)] {
				path := w.fill(routePath(route, "$workspace"))
				scoped[auth.Admin].on(t).call(route.Method, path, routeBody(t, route)).want(403, "insufficient_scope")
			}
		})
	}
	if diff := cmp.Diff(before, s.content(t)); diff != "" {
		t.Errorf("refused requests changed the store (-before +after):\n%s", diff)
	}
}

func refuseStrangers(t *testing.T, w *world, route api.Route, bad []badCaller) {
	t.Helper()
	id, _, _, _ := collection(route)
	for _, caller := range bad {
		path := w.fill(routePath(route, id)) + caller.query
		a := w.client.on(t).call(route.Method, path, routeBody(t, route), caller.headers...)
		if a.status != http.StatusUnauthorized || a.code() != "unauthorized" || a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("with %s: got %d %s", caller.name, a.status, a.body)
		}
	}
}

func refuseOtherScopes(t *testing.T, w *world, route api.Route, scoped map[auth.Scope]client) {
	t.Helper()
	id, missing, _, _ := collection(route)
	for scope, c := range scoped {
		if scope == route.Scope || scope == auth.Admin {
			continue
		}
		// What lacks the scope does not learn whether the id exists either.
		for _, id := range []string{id, missing} {
			a := c.on(t).call(route.Method, w.fill(routePath(route, id)), routeBody(t, route))
			if a.status != http.StatusForbidden || a.code() != "insufficient_scope" || !strings.Contains(a.message(), string(route.Scope)) {
				t.Errorf("with the scope %s: got %d %s", scope, a.status, a.body)
			}
		}
	}
}

// refuseForeignIDs makes sure that what belongs to another workspace cannot be
// told from what does not exist.
func refuseForeignIDs(t *testing.T, w, other *world, route api.Route) {
	t.Helper()
	id, missing, code, _ := collection(route)
	var answers []*answer
	var ids []string
	for _, id := range []string{other.fill(id), missing} {
		a := w.client.on(t).call(route.Method, routePath(route, id), routeBody(t, route)).want(404, code)
		if !strings.Contains(a.message(), id) {
			t.Errorf("the message does not name %s: %s", id, a.body)
		}
		answers, ids = append(answers, a), append(ids, id)
	}
	if foreign, none := plain(answers[0], ids[0]), plain(answers[1], ids[1]); foreign != none {
		t.Errorf("a foreign id can be told from none:\n%s\n%s", foreign, none)
	}
}

// plain is an answer without what differs from request to request.
func plain(a *answer, id string) string {
	header := a.header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Content-Length"} {
		header.Del(name)
	}
	text := strings.NewReplacer(id, "ID", a.header.Get("X-Request-Id"), "REQUEST").Replace(string(a.body))
	return fmt.Sprint(a.status, header, text)
}

// Every route × every caller that is let in.
func TestMatrixOfSuccesses(t *testing.T) {
	t.Parallel()
	for _, route := range routes() {
		t.Run(name(route), func(t *testing.T) {
			t.Parallel()
			id, _, _, _ := collection(route)
			callers := map[string]func(w *world) client{
				"admin": func(w *world) client { return w.client },
				"its scope": func(w *world) client {
					if route.Scope == auth.Public {
						return w.server.anonymous(t)
					}
					return w.as(string(route.Scope))
				},
				"several scopes": func(w *world) client { return w.as("read", "write", "execute", "admin") },
			}
			if operatorOnly[name(route)] {
				callers = map[string]func(w *world) client{"the operator": func(w *world) client { return w.server.operator(t) }}
			}
			for caller, as := range callers {
				w := newWorld(t)
				furnish(w)
				a := as(w).call(route.Method, w.fill(routePath(route, id)), routeBody(t, route))
				if a.status != route.Status {
					t.Errorf("as %s: got %d %s, want %d", caller, a.status, a.body, route.Status)
				}
			}
		})
	}
}

// The scheme is not case-sensitive, and white space around a key is no harm.
func TestKeyForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, form := range []string{"Bearer %s", "bearer %s", "BEARER %s", "Bearer  %s", "Bearer %s "} {
		w.call("GET", "/v1/workflows", "", "Authorization", fmt.Sprintf(form, w.key)).want(200)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.url+"/v1/workflows", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header["Authorization"] = []string{"Bearer " + w.key, "Bearer " + w.key}
	w.send(request, "").want(401, "unauthorized")
}

// A key of one workspace sees and changes nothing of another.
func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	furnish(other)
	other.workflow("empty")
	other.finish("done", "empty", "")
	for _, path := range []string{"/v1/workflows", "/v1/runs", "/v1/approvals", "/v1/webhooks", "/v1/events", "/v1/secrets", "/v1/variables", "/v1/audit", "/v1/nodes", "/v1/members", "/v1/invitations", "/v1/api-keys", "/v1/workspaces", "/v1/usage"} {
		body := string(w.call("GET", path, "").want(200).body)
		for what, id := range other.names {
			if strings.Contains(body, id) {
				t.Errorf("%s shows the %s of another workspace: %s", path, what, body)
			}
		}
	}
}
