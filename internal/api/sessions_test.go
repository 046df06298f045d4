package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
)

// Every route × every role, on both mounts: what a role allows is what its
// scopes do, and what counts on one mount never counts on the other.
func TestMatrixOfRoles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, role := range account.Roles() {
		t.Run(string(role), func(t *testing.T) {
			w := s.newWorld(t)
			furnish(w)
			w.person("owner") // so that nobody is the last one
			p := w.person(string(role))
			for _, route := range routes() {
				if !strings.HasPrefix(route.Path, "/v1") {
					continue
				}
				id, _, _, _ := collection(route)
				path := w.fill(routePath(route, id))
				a := p.on(t).call(route.Method, "/ui"+path, routeBody(t, route))
				allowed := auth.Grants(role.Scopes(), route.Scope)
				switch refused := a.status == 403 || a.status == 401; {
				case operatorOnly[name(route)]:
					a.want(403, "insufficient_scope") // the workspace is not the first
				case allowed == refused:
					t.Errorf("%s %s: got %d %s", route.Method, route.Path, a.status, a.body)
				case !allowed && !strings.Contains(a.message(), string(route.Scope)):
					t.Errorf("%s %s: the message does not name %s: %s", route.Method, route.Path, route.Scope, a.body)
				}
				if route.Scope == auth.Public {
					continue
				}
				p.on(t).call(route.Method, path, routeBody(t, route)).want(401, "unauthorized")
				w.client.on(t).call(route.Method, "/ui"+path, routeBody(t, route)).want(401, "unauthorized")
			}
		})
	}
}

func TestSessionRoutesNeedASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, route := range sessionRoutes() {
		if route.Scope == auth.Public {
			continue
		}
		for _, c := range []client{w.client, w.server.anonymous(t), {t: t, server: w.server, token: strings.Repeat("x", 43)}, {t: t, server: w.server, token: w.key}} {
			a := c.call(route.Method, routePath(route, "x"), routeBody(t, route)).want(401, "unauthorized")
			if a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s asks a browser for a key", name(route))
			}
		}
	}
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("editor")
	c := w.server.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": " %s ", "password": %q}`, strings.ToUpper(p.email), password)).signedIn(201)
	if contains := c.call("GET", "/ui/v1/session", "").want(200); contains.text("role") != "editor" || !strings.Contains(string(contains.body), `"scopes":["read","write","execute"]`) {
		t.Errorf("%s", contains.body)
	}
	// The hash had another cost than new ones have.
	if hash := w.server.rows(t, `SELECT password FROM users WHERE id = ?`, p.id)[0][0]; hash == cheap || !strings.HasPrefix(hash, "$argon2id$v=19$m=65536,t=2,p=1$") {
		t.Errorf("the password was not hashed anew: %s", hash)
	}
	wrong := func(email, password string) string {
		a := w.server.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": %q}`, email, password)).want(401, "invalid_credentials")
		return strings.Replace(string(a.body), a.header.Get("X-Request-Id"), "", 1)
	}
	if a, b := wrong(p.email, "not the password"), wrong("nobody."+p.email, password); a != b {
		t.Errorf("an unknown address can be told from a wrong password:\n%s\n%s", a, b)
	}
	wrong(p.email, strings.Repeat("x", 1000))

	list := c.call("GET", "/ui/v1/sessions", "").want(200)
	if got := len(list.object()["data"].([]any)); got != 2 {
		t.Errorf("there are %d sessions: %s", got, list.body)
	}
	out := c.call("DELETE", "/ui/v1/session", "").want(204)
	if !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("the cookie stays: %v", out.header)
	}
	c.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
	p.call("GET", "/ui/v1/session", "").want(200)
	w.session(p).call("DELETE", "/ui/v1/sessions", "").want(204)
	p.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
}

func TestEndingAnotherSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, other := w.person("viewer"), w.person("viewer")
	second := w.session(p)
	var ids []string
	for _, item := range p.call("GET", "/ui/v1/sessions", "").want(200).object()["data"].([]any) {
		if session := item.(map[string]any); session["current"] == false {
			ids = append(ids, session["id"].(string))
		}
	}
	if len(ids) != 1 {
		t.Fatalf("other sessions: %v", ids)
	}
	other.call("DELETE", "/ui/v1/sessions/"+ids[0], "").want(404, "session_not_found")
	second.call("GET", "/ui/v1/workflows", "").want(200)
	p.call("DELETE", "/ui/v1/sessions/"+ids[0], "").want(204)
	second.call("GET", "/ui/v1/workflows", "").want(401, "unauthorized")
}

func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, column := range []string{
		`expires_at = 1`,
		fmt.Sprintf(`seen_at = %d`, time.Now().Add(-account.IdleLife).UnixMicro()),
	} {
		p := w.person("viewer")
		w.server.rows(t, `UPDATE sessions SET `+column+` WHERE user_id = ?`, p.id)
		p.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
	}
	// What is used is noted, and so goes on.
	p := w.person("viewer")
	was := time.Now().Add(-time.Hour).UnixMicro()
	w.server.rows(t, `UPDATE sessions SET seen_at = ? WHERE user_id = ?`, was, p.id)
	p.call("GET", "/ui/v1/session", "").want(200)
	eventually(t, "the use is written", func() bool {
		return w.server.rows(t, `SELECT seen_at FROM sessions WHERE user_id = ?`, p.id)[0][0] > fmt.Sprint(was)
	})
}

// A change that another process made is seen within 5 seconds, by streams too.
func TestEndsAreSeenEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("viewer")
	streams := p.client.follow("/ui/v1/events/stream")
	p.call("GET", "/ui/v1/session", "").want(200)
	begun := time.Now()
	w.server.rows(t, `DELETE FROM sessions WHERE user_id = ?`, p.id)
	if _, err := streams.lines.ReadString(0); err == nil {
		t.Error("the stream goes on")
	}
	p.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
	if took := time.Since(begun); took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestPasswordChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("viewer")
	other := w.session(p)
	change := func(body string) *answer { return p.call("PATCH", "/ui/v1/account", body) }
	for body, pointer := range map[string]string{
		`{"password": "another long one"}`:                                                            "/current_password",
		`{"password": "another long one", "current_password": "wrong"}`:                               "/current_password",
		`{"current_password": "wrong"}`:                                                               "/password",
		fmt.Sprintf(`{"password": %q, "current_password": %q}`, p.email, password):                    "/password",
		fmt.Sprintf(`{"password": "aaaaaaaaaaaa", "current_password": %q}`, password):                 "/password",
		fmt.Sprintf(`{"password": %q, "current_password": %q}`, strings.Repeat("pass", 60), password): "/password",
		fmt.Sprintf(`{"password": "too short", "current_password": %q}`, password):                    "/password",
		fmt.Sprintf(`{"name": "", "password": "another long one", "current_password": %q}`, password): "/name",
		`{"name": "` + strings.Repeat("n", 101) + `"}`:                                                "/name",
	} {
		if a := change(body).want(400, "invalid_request"); !strings.Contains(string(a.body), `"pointer":"`+pointer+`"`) {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	other.call("GET", "/ui/v1/session", "").want(200)
	a := change(fmt.Sprintf(`{"name": "New", "password": "another long one", "current_password": %q}`, password)).want(200)
	if !strings.Contains(string(a.body), `"name":"New"`) {
		t.Errorf("%s", a.body)
	}
	p.call("GET", "/ui/v1/session", "").want(200)
	other.call("GET", "/ui/v1/session", "").want(401, "unauthorized")
	anonymous := w.server.anonymous(t)
	anonymous.call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": %q}`, p.email, password)).want(401, "invalid_credentials")
	anonymous.call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": "another long one"}`, p.email)).want(201)
}

// Ten attempts a minute for one address, whether there is such a user or not.
func TestAttemptsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("viewer")
	for _, email := range []string{p.email, "nobody" + p.email} {
		limited := 0
		for range 24 { // a minute may end in between
			if a := w.server.anonymous(t).call("POST", "/ui/v1/session", fmt.Sprintf(`{"email": %q, "password": "wrong"}`, email)); a.status == 429 {
				a.want(429, "rate_limited")
				limited++
			} else {
				a.want(401, "invalid_credentials")
			}
		}
		if limited < 4 {
			t.Errorf("%s: %d attempts were refused", email, limited)
		}
	}
}

func TestRequestsFromOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("owner")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site", "Origin", w.server.url},
	} {
		p.call("POST", "/ui/v1/workflows", `{"name": "x"}`, headers...).want(403, "cross_origin")
		p.call("DELETE", "/ui/v1/session", "", headers...).want(403, "cross_origin")
		w.server.anonymous(t).call("POST", "/ui/v1/session", `{"email": "a@b.c", "password": "x"}`, headers...).want(403, "cross_origin")
		// A key is not something that a browser sends by itself.
		w.call("POST", "/v1/workflows", `{"name": "x"}`, headers...).want(201)
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", w.server.url}, nil} {
		p.call("POST", "/ui/v1/workflows", `{"name": "x"}`, headers...).want(201)
	}
	p.call("POST", "/ui/v1/workflows", `{"name": "x"}`, "Content-Type", "text/plain").want(415, "unsupported_media_type")
}

func TestWorkWithASession(t *testing.T) {
	t.Parallel()
	w := newWorldWithLimit(t, 3)
	p := w.person("owner")
	a := p.call("POST", "/ui/v1/workflows", `{"name": "Mine"}`, "Idempotency-Key", "k").want(201)
	if at := a.header.Get("Location"); !strings.HasPrefix(at, "/ui/v1/workflows/wf_") {
		t.Errorf("it is at %s", at)
	} else {
		p.call("GET", at, "").want(200)
	}
	again := p.call("POST", "/ui/v1/workflows", `{"name": "Mine"}`, "Idempotency-Key", "k").want(201)
	if again.text("id") != a.text("id") || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != a.header.Get("Location") {
		t.Errorf("%v %s", again.header, again.body)
	}
	entry := p.call("GET", "/ui/v1/audit?action=workflow.created", "").want(200)
	if !strings.Contains(string(entry.body), fmt.Sprintf(`"actor":{"type":"user","id":%q}`, p.id)) {
		t.Errorf("%s", entry.body)
	}
	// The plan allows three requests a minute, which do not count here.
	for range 10 {
		p.call("GET", "/ui/v1/workflows", "", "Authorization", "Bearer "+w.key).want(200)
	}
	if got := p.call("GET", "/ui/v1/workflows", "").want(200).header.Get("X-RateLimit-Limit"); got != "3000" {
		t.Errorf("the limit is %s", got)
	}
	// The name of the user in the log, not the key.
	if !strings.Contains(w.server.log.String(), fmt.Sprintf(`"user_id":%q`, p.id)) {
		t.Error("the log does not name the user")
	}
}

func newWorldWithLimit(t *testing.T, perMinute int) *world {
	t.Helper()
	return sharedServer(t).newWorldOn(t, fmt.Sprintf(`{"name": "Few", "plan": "enterprise", "requests_per_minute": %d}`, perMinute))
}

func TestActingInAnotherWorkspace(t *testing.T) {
	t.Parallel()
	w, other, foreign := newWorld(t), newWorld(t), newWorld(t)
	p := w.person("viewer")
	other.join(p, "owner")
	p.call("POST", "/ui/v1/workflows", `{"name": "x"}`).want(403, "insufficient_scope")
	streams := p.client.follow("/ui/v1/events/stream")
	p.call("PATCH", "/ui/v1/session", fmt.Sprintf(`{"workspace_id": %q}`, foreign.id)).want(404, "workspace_not_found")
	moved := p.call("PATCH", "/ui/v1/session", fmt.Sprintf(`{"workspace_id": %q}`, other.id)).want(200)
	if moved.text("role") != "owner" || len(moved.object()["workspaces"].([]any)) != 2 {
		t.Errorf("%s", moved.body)
	}
	id := p.call("POST", "/ui/v1/workflows", `{"name": "x"}`).want(201).text("id")
	other.call("GET", "/v1/workflows/"+id, "").want(200)
	w.call("GET", "/v1/workflows/"+id, "").want(404, "workflow_not_found")
	if _, err := streams.lines.ReadString(0); err == nil {
		t.Error("the stream of the first workspace goes on")
	}
}

// However many come with the link of the first start, one becomes the owner.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	anonymous := s.anonymous(t)
	if a := anonymous.call("GET", "/ui/v1/welcome", "").want(200); string(a.body) != `{"needed":true,"oidc":false}`+"\n" {
		t.Errorf("%s", a.body)
	}
	token := tokenOf(t, s.welcome)
	for body, pointer := range map[string]string{
		`{"token": %q, "email": "no address", "name": "A", "password": "correct horse"}`:   "/email",
		`{"token": %q, "email": "a@example.com", "name": "", "password": "correct horse"}`: "/name",
		`{"token": %q, "email": "a@example.com", "name": "A", "password": "short"}`:        "/password",
		`{"token": %q, "email": "a@example.com", "name": "A"}`:                             "/password",
	} {
		if a := anonymous.call("POST", "/ui/v1/welcome", fmt.Sprintf(body, token)).want(400, "invalid_request"); !strings.Contains(string(a.body), `"pointer":"`+pointer+`"`) {
			t.Errorf("%s", a.body)
		}
	}
	anonymous.call("POST", "/ui/v1/welcome", `{"token": "`+strings.Repeat("x", 43)+`", "email": "a@example.com", "name": "A", "password": "correct horse"}`).want(404, "link_not_found")

	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		won   []*answer
		codes = map[int]int{}
	)
	for n := range 64 {
		all.Go(func() {
			body := fmt.Sprintf(`{"token": %q, "email": "p%d@example.com", "name": "P", "password": "correct horse"}`, token, n)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/ui/v1/welcome", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/json")
			a, err := anonymous.exchange(request, body)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if codes[a.status]++; a.status == 201 {
				won = append(won, a)
			}
		})
	}
	all.Wait()
	if len(won) != 1 || codes[201]+codes[404]+codes[429] != 64 {
		t.Fatalf("the answers were %v", codes)
	}
	owner := won[0].signedIn(201)
	if who := owner.call("GET", "/ui/v1/session", "").want(200); who.text("role") != "owner" || who.object()["operator"] != true {
		t.Errorf("%s", who.body)
	}
	if rows := s.rows(t, `SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM members), (SELECT count(*) FROM tickets)`); fmt.Sprint(rows) != "[[1 1 0]]" {
		t.Errorf("users, members, tickets: %v", rows)
	}
	if a := anonymous.call("GET", "/ui/v1/welcome", "").want(200); !strings.Contains(string(a.body), `"needed":false`) {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the token is in the log")
	}
}

// A start without users prints a new link; one with users prints none.
func TestEachStartWithoutUsersHasALink(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first := s.welcome
	s.restart(t)
	if s.welcome == "" || s.welcome == first {
		t.Fatalf("the links are %q and %q", first, s.welcome)
	}
	for _, link := range []string{first, s.welcome} {
		body := fmt.Sprintf(`{"token": %q, "email": "a@example.com", "name": "A", "password": "correct horse"}`, tokenOf(t, link))
		if link == first {
			s.anonymous(t).call("POST", "/ui/v1/welcome", body).want(201)
		} else {
			s.anonymous(t).call("POST", "/ui/v1/welcome", body).want(404, "link_not_found")
		}
	}
	s.restart(t)
	if s.welcome != "" {
		t.Errorf("a start with users prints %q", s.welcome)
	}
}

// Users alone do not run an installation: whoever came before the first owner,
// invited with a key, does not take the link away.
func TestUsersBeforeTheFirstOwner(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	admin := client{t: t, server: s, key: s.firstKey}
	link := admin.call("POST", "/v1/invitations", `{"email": "v@example.com", "role": "viewer"}`).want(201).text("link")
	accept := fmt.Sprintf(`{"token": %q, "name": "V", "password": "correct horse"}`, tokenOf(t, link))
	s.anonymous(t).call("POST", "/ui/v1/invitations/accept", accept).want(201)
	s.restart(t)
	if s.welcome == "" {
		t.Fatal("there is no link")
	}
	found := fmt.Sprintf(`{"token": %q, "email": "o@example.com", "name": "O", "password": "correct horse"}`, tokenOf(t, s.welcome))
	if a := s.anonymous(t).call("POST", "/ui/v1/welcome", found).want(201); a.text("role") != "owner" {
		t.Errorf("%s", a.body)
	}
	s.restart(t)
	if s.welcome != "" {
		t.Errorf("a start with an owner prints %q", s.welcome)
	}
}
