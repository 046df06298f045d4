package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
)

// Every route × every role on both mounts: a role allows what its scopes allow,
// and credentials of one mount never work on the other.
func TestRoleMatrix(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, role := range account.Roles() {
		t.Run(string(role), func(t *testing.T) {
			w := s.newTestWorkspace(t)
			createOneOfEach(w)
			w.addUser("owner") // so that no one is the last owner
			p := w.addUser(string(role))
			for _, route := range routes() {
				if !strings.HasPrefix(route.Path, "/v1") {
					continue
				}
				id, _, _, _ := collection(route)
				path := w.expand(routePath(route, id))
				a := p.withT(t).call(route.Method, "/ui"+path, routeBody(t, route))
				allowed := auth.Grants(role.Scopes(), route.Scope)
				switch rejected := a.status == 403 || a.status == 401; {
				case operatorOnly[routeName(route)]:
					a.wantStatus(403, "insufficient_scope") // the workspace is not the first
				case allowed == rejected:
					t.Errorf("%s %s: got %d %s", route.Method, route.Path, a.status, a.body)
				case !allowed && !strings.Contains(a.message(), string(route.Scope)):
					t.Errorf("%s %s: the message does not name %s: %s", route.Method, route.Path, route.Scope, a.body)
				}
				if route.Scope == auth.Public {
					continue
				}
				p.withT(t).call(route.Method, path, routeBody(t, route)).wantStatus(401, "unauthorized")
				w.client.withT(t).call(route.Method, "/ui"+path, routeBody(t, route)).wantStatus(401, "unauthorized")
			}
		})
	}
}

func TestSessionRoutesNeedASession(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	for _, route := range sessionRoutes() {
		if route.Scope == auth.Public || redirects[routeName(route)] {
			continue
		}
		for _, c := range []client{w.client, w.server.anonymous(t), {t: t, server: w.server, token: strings.Repeat("x", 43)}, {t: t, server: w.server, token: w.key}} {
			a := c.call(route.Method, routePath(route, "x"), routeBody(t, route)).wantStatus(401, "unauthorized")
			if a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s asks a browser for a key", routeName(route))
			}
		}
	}
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p := w.addUser("editor")
	c := w.server.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": " %s ", "password": %q}`, strings.ToUpper(p.email), password)).sessionClient(201)
	if contains := c.call("GET", "/ui/v1/session", "").wantStatus(200); contains.str("role") != "editor" || !strings.Contains(string(contains.body), `"scopes":["read","write","execute"]`) {
		t.Errorf("%s", contains.body)
	}
	// The hash had a different cost than new ones.
	if hash := w.server.query(t, `SELECT password FROM users WHERE id = ?`, p.id)[0][0]; !strings.HasPrefix(hash, "$argon2id$v=19$m=16,t=1,p=1$") {
		t.Errorf("the password was not hashed anew: %s", hash)
	}
	wrong := func(email, password string) string {
		a := w.server.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": %q}`, email, password)).wantStatus(401, "invalid_credentials")
		return strings.Replace(string(a.body), a.header.Get("X-Request-Id"), "", 1)
	}
	if a, b := wrong(p.email, "not the password"), wrong("nobody."+p.email, password); a != b {
		t.Errorf("an unknown address can be distinguished from a wrong password:\n%s\n%s", a, b)
	}
	wrong(p.email, strings.Repeat("x", 1000))

	list := c.call("GET", "/ui/v1/sessions", "").wantStatus(200)
	if got := len(list.object()["data"].([]any)); got != 2 {
		t.Errorf("there are %d sessions: %s", got, list.body)
	}
	// Signing in again ends the session of the browser, and no other.
	again := c.call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": %q}`, p.email, password)).sessionClient(201)
	c.call("GET", "/ui/v1/session", "").wantStatus(401, "unauthorized")
	c = again
	out := c.call("DELETE", "/ui/v1/session", "").wantStatus(204)
	if !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("the cookie stays: %v", out.header)
	}
	c.call("GET", "/ui/v1/session", "").wantStatus(401, "unauthorized")
	p.call("GET", "/ui/v1/session", "").wantStatus(200)
	w.session(p).call("DELETE", "/ui/v1/sessions", "").wantStatus(204)
	p.call("GET", "/ui/v1/session", "").wantStatus(401, "unauthorized")
}

// A wrong password appears in the audit log, with the address of the client.
func TestFailedSignInIsAudited(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p := w.addUser("owner")
	a := w.server.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": "wrong"}`, p.email)).wantStatus(401, "invalid_credentials")
	want := fmt.Sprintf(`"actor":{"type":"system","id":null,"name":null},"action":"session.failed","target_type":"user","target_id":%q,"target_name":"P. Erson","details":{"address":"127.0.0.1"},"request_id":%q`,
		p.id, a.header.Get("X-Request-Id"))
	eventually(t, "the failure is in the audit log", func() bool {
		return strings.Contains(string(p.call("GET", "/ui/v1/audit?action=session.failed", "").wantStatus(200).body), want)
	})
}

func TestEndingAnotherSession(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p, other := w.addUser("viewer"), w.addUser("viewer")
	second := w.session(p)
	var ids []string
	for _, item := range p.call("GET", "/ui/v1/sessions", "").wantStatus(200).object()["data"].([]any) {
		if session := item.(map[string]any); session["current"] == false {
			ids = append(ids, session["id"].(string))
		}
	}
	if len(ids) != 1 {
		t.Fatalf("other sessions: %v", ids)
	}
	other.call("DELETE", "/ui/v1/sessions/"+ids[0], "").wantStatus(404, "session_not_found")
	second.call("GET", "/ui/v1/workflows", "").wantStatus(200)
	p.call("DELETE", "/ui/v1/sessions/"+ids[0], "").wantStatus(204)
	second.call("GET", "/ui/v1/workflows", "").wantStatus(401, "unauthorized")
}

// The last use of a session is written with a delay.
func TestSessionLastSeen(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p := w.addUser("viewer")
	was := time.Now().Add(-time.Hour).UnixMicro()
	w.server.query(t, `UPDATE sessions SET seen_at = ? WHERE user_id = ?`, was, p.id)
	p.call("GET", "/ui/v1/session", "").wantStatus(200)
	eventually(t, "the use is written", func() bool {
		return w.server.query(t, `SELECT seen_at FROM sessions WHERE user_id = ?`, p.id)[0][0] > fmt.Sprint(was)
	})
}

// Changes by another process are noticed, by open streams too.
func TestSessionChangesOfOtherProcesses(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p := w.addUser("viewer")
	streams := p.client.follow("/ui/v1/events/stream")
	p.call("GET", "/ui/v1/session", "").wantStatus(200)
	w.server.query(t, `DELETE FROM sessions WHERE user_id = ?`, p.id)
	if _, err := streams.lines.ReadString(0); err == nil {
		t.Error("the stream goes on")
	}
	p.call("GET", "/ui/v1/session", "").wantStatus(401, "unauthorized")
}

func TestPasswordChange(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p := w.addUser("viewer")
	other := w.session(p)
	change := func(body string) *response { return p.call("PATCH", "/ui/v1/account", body) }
	for body, pointer := range map[string]string{
		`{"password": "another long one"}`: "/current_password",
		`{"current_password": "wrong"}`:    "/password",
		`{"name": ""}`:                     "/name",
	} {
		if a := change(body).wantStatus(400, "invalid_request"); !strings.Contains(string(a.body), `"pointer":"`+pointer+`"`) {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	other.call("GET", "/ui/v1/session", "").wantStatus(200)
	a := change(fmt.Sprintf(`{"name": "New", "password": "another long one", "current_password": %q}`, password)).wantStatus(200)
	if !strings.Contains(string(a.body), `"name":"New"`) {
		t.Errorf("%s", a.body)
	}
	p.call("GET", "/ui/v1/session", "").wantStatus(200)
	other.call("GET", "/ui/v1/session", "").wantStatus(401, "unauthorized")
	anonymous := w.server.anonymous(t)
	anonymous.call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": %q}`, p.email, password)).wantStatus(401, "invalid_credentials")
	anonymous.call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": "another long one"}`, p.email)).wantStatus(201)
}

func TestCrossSiteRequests(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	p := w.addUser("owner")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site", "Origin", w.server.url},
	} {
		p.call("POST", "/ui/v1/workflows", `{"name": "x"}`, headers...).wantStatus(403, "cross_origin")
		p.call("DELETE", "/ui/v1/session", "", headers...).wantStatus(403, "cross_origin")
		w.server.anonymous(t).call("POST", "/ui/v1/session", `{"email": "a@b.c", "password": "x"}`, headers...).wantStatus(403, "cross_origin")
		// Browsers do not send keys on their own.
		w.call("POST", "/v1/workflows", `{"name": "x"}`, headers...).wantStatus(201)
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", w.server.url}, nil} {
		p.call("POST", "/ui/v1/workflows", `{"name": "x"}`, headers...).wantStatus(201)
	}
	p.call("POST", "/ui/v1/workflows", `{"name": "x"}`, "Content-Type", "text/plain").wantStatus(415, "unsupported_media_type")
}

func TestSessionRequests(t *testing.T) {
	t.Parallel()
	w := newWorkspaceWithLimit(t, 3)
	p := w.addUser("owner")
	a := p.call("POST", "/ui/v1/workflows", `{"name": "Mine"}`, "Idempotency-Key", "k").wantStatus(201)
	if at := a.header.Get("Location"); !strings.HasPrefix(at, "/ui/v1/workflows/wf_") {
		t.Errorf("it is at %s", at)
	} else {
		p.call("GET", at, "").wantStatus(200)
	}
	for _, path := range []string{"/ui/v1/session", "/ui/v1/welcome"} {
		p.call("GET", path+"?limit=1", "").wantStatus(400, "invalid_request")
	}
	again := p.call("POST", "/ui/v1/workflows", `{"name": "Mine"}`, "Idempotency-Key", "k").wantStatus(201)
	if again.str("id") != a.str("id") || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != a.header.Get("Location") {
		t.Errorf("%v %s", again.header, again.body)
	}
	entry := p.call("GET", "/ui/v1/audit?action=workflow.created", "").wantStatus(200)
	if !strings.Contains(string(entry.body), fmt.Sprintf(`"actor":{"type":"user","id":%q,"name":"P. Erson"}`, p.id)) {
		t.Errorf("%s", entry.body)
	}
	// The limit of three requests a minute for keys does not apply to sessions.
	for range 10 {
		p.call("GET", "/ui/v1/workflows", "", "Authorization", "Bearer "+w.key).wantStatus(200)
	}
	if got := p.call("GET", "/ui/v1/workflows", "").wantStatus(200).header.Get("X-RateLimit-Limit"); got != "3000" {
		t.Errorf("the limit is %s", got)
	}
	// The log has the user, not a key.
	if !strings.Contains(w.server.log.String(), fmt.Sprintf(`"user_id":%q`, p.id)) {
		t.Error("the log does not name the user")
	}
}

func newWorkspaceWithLimit(t *testing.T, perMinute int) *testWorkspace {
	t.Helper()
	return sharedServer(t).newTestWorkspaceWith(t, fmt.Sprintf(`{"name": "Few", "plan": "enterprise", "requests_per_minute": %d}`, perMinute))
}

func TestActingInAnotherWorkspace(t *testing.T) {
	t.Parallel()
	w, other, foreign := newTestWorkspace(t), newTestWorkspace(t), newTestWorkspace(t)
	p := w.addUser("viewer")
	other.addMember(p, "owner")
	p.call("POST", "/ui/v1/workflows", `{"name": "x"}`).wantStatus(403, "insufficient_scope")
	streams := p.client.follow("/ui/v1/events/stream")
	p.call("PATCH", "/ui/v1/session", fmt.Sprintf(`{"workspace_id": %q}`, foreign.id)).wantStatus(404, "workspace_not_found")
	moved := p.call("PATCH", "/ui/v1/session", fmt.Sprintf(`{"workspace_id": %q}`, other.id)).wantStatus(200)
	if moved.str("role") != "owner" || len(moved.object()["workspaces"].([]any)) != 2 {
		t.Errorf("%s", moved.body)
	}
	id := p.call("POST", "/ui/v1/workflows", `{"name": "x"}`).wantStatus(201).str("id")
	other.call("GET", "/v1/workflows/"+id, "").wantStatus(200)
	w.call("GET", "/v1/workflows/"+id, "").wantStatus(404, "workflow_not_found")
	if _, err := streams.lines.ReadString(0); err == nil {
		t.Error("the stream of the first workspace goes on")
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	anonymous := s.anonymous(t)
	if a := anonymous.call("GET", "/ui/v1/welcome", "").wantStatus(200); string(a.body) != `{"needed":true,"oidc":false}`+"\n" {
		t.Errorf("%s", a.body)
	}
	token := linkToken(t, s.setupLink)
	for body, pointers := range map[string][]string{
		`{"token": %q, "email": "no address", "name": "A", "password": "correct horse"}`:   {"/email"},
		`{"token": %q, "email": "a@example.com", "name": "", "password": "correct horse"}`: {"/name"},
		`{"token": %q, "email": "a@example.com", "name": "A", "password": "short"}`:        {"/password"},
		`{"token": %q, "email": "a@example.com", "name": "A"}`:                             {"/password"},
		`{"token": %q, "email": "no address", "name": " ", "password": "short"}`:           {"/email", "/name", "/password"},
		`{"token": %q, "email": "a@example.com"}`:                                          {"/name", "/password"},
	} {
		a := anonymous.call("POST", "/ui/v1/welcome", fmt.Sprintf(body, token)).wantStatus(400, "invalid_request")
		if got := a.pointers(); !slices.Equal(got, pointers) {
			t.Errorf("%s: the problems are at %v, want %v: %s", body, got, pointers, a.body)
		}
	}
	anonymous.call("POST", "/ui/v1/welcome", `{"token": "`+strings.Repeat("x", 43)+`", "email": "a@example.com", "name": "A", "password": "correct horse"}`).wantStatus(404, "link_not_found")

	body := fmt.Sprintf(`{"token": %q, "email": "p@example.com", "name": "P", "password": "correct horse"}`, token)
	owner := anonymous.call("POST", "/ui/v1/welcome", body).sessionClient(201)
	anonymous.call("POST", "/ui/v1/welcome", body).wantStatus(404, "link_not_found")
	if session := owner.call("GET", "/ui/v1/session", "").wantStatus(200); session.str("role") != "owner" || session.object()["operator"] != true {
		t.Errorf("%s", session.body)
	}
	if a := anonymous.call("GET", "/ui/v1/welcome", "").wantStatus(200); !strings.Contains(string(a.body), `"needed":false`) {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the token is in the log")
	}
}

// A start without users prints a new link; one with users prints none.
func TestSetupLink(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first := s.setupLink
	s.restart(t)
	if s.setupLink == "" || s.setupLink == first {
		t.Fatalf("the links are %q and %q", first, s.setupLink)
	}
	for _, link := range []string{first, s.setupLink} {
		body := fmt.Sprintf(`{"token": %q, "email": "a@example.com", "name": "A", "password": "correct horse"}`, linkToken(t, link))
		if link == first {
			s.anonymous(t).call("POST", "/ui/v1/welcome", body).wantStatus(201)
		} else {
			s.anonymous(t).call("POST", "/ui/v1/welcome", body).wantStatus(404, "link_not_found")
		}
	}
	s.restart(t)
	if s.setupLink != "" {
		t.Errorf("a start with users prints %q", s.setupLink)
	}
}
