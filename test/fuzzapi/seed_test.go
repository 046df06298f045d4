package fuzzapi_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/fuzzapi"
	"github.com/stepmill/stepmill/test/harness"
)

const (
	canary = "canary-2f6c1d1a9b"
	// password is in no generated request, so that none changes it.
	password = "a password of the fuzzer"
	// victimPassword is in some.
	victimPassword = "correct horse battery"
)

// world is a service with something of every kind in two workspaces.
type world struct {
	t      *testing.T
	server *harness.Server
	known  *fuzzapi.Known
	// secrets must not appear in responses.
	secrets    []string
	identities []*fuzzapi.Identity
	sessions   []*session
}

func newWorld(t *testing.T, server *harness.Server) *world {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(receive))
	t.Cleanup(receiver.Close)
	w := &world{t: t, server: server, known: fuzzapi.NewKnown(receiver.URL), secrets: []string{canary}}
	other := flow.NewWorkspace(t, server.Client, "enterprise")
	w.seedWorkspace(server.Client, "first")
	w.seedWorkspace(other, "other")
	for _, scopes := range [][]string{{"read"}, {"write"}, {"execute"}, {"read", "write", "execute"}} {
		w.addKey(server.Client, strings.Join(scopes, "+"), scopes)
	}
	w.addAnonymous()
	w.addUsers()
	var victim struct{ ID string }
	server.Expect(t, http.StatusCreated, "POST", "/v1/workspaces", map[string]any{"name": "victim", "plan": "free"}).Decode(t, &victim)
	w.known.Add("workspaces", victim.ID)
	return w
}

// receive is the server that webhooks and steps call.
func receive(out http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	switch {
	case strings.Contains(r.URL.Path, "fail"):
		status = http.StatusBadGateway
	case strings.Contains(r.URL.Path, "gone"):
		status = http.StatusGone
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	_, _ = out.Write([]byte(`{"items": [{"id": 1}], "next": 2}`)) // the caller may be gone
}

// seedWorkspace fills a workspace and adds its admin key as an identity. Nothing
// changes the key and the workspace later.
func (w *world) seedWorkspace(admin *harness.Client, name string) {
	w.t.Helper()
	var keys struct{ Data []struct{ ID string } }
	admin.Expect(w.t, http.StatusOK, "GET", "/v1/api-keys", nil).Decode(w.t, &keys)
	for _, key := range keys.Data {
		w.known.Protect(key.ID)
	}
	var workspaces struct{ Data []struct{ ID string } }
	admin.Expect(w.t, http.StatusOK, "GET", "/v1/workspaces", nil).Decode(w.t, &workspaces)
	for _, workspace := range workspaces.Data {
		w.known.Protect(workspace.ID)
	}
	w.identities = append(w.identities, identity("admin of "+name, name, "Bearer "+admin.Key))
	w.secrets = append(w.secrets, admin.Key)

	w.post(admin, name, "PUT", "/v1/secrets/canary", map[string]any{"value": canary})
	w.post(admin, name, "PUT", "/v1/secrets/shop_token", map[string]any{"value": canary})
	w.post(admin, name, "PUT", "/v1/variables/region", map[string]any{"value": "eu"})
	w.post(admin, name, "PUT", "/v1/variables/limits", map[string]any{"value": map[string]any{"n": 3}})
	w.post(admin, name, "PUT", "/v1/state/counter", map[string]any{"value": 1})
	w.seedTable(admin, name)
	w.post(admin, name, "POST", "/v1/api-keys", map[string]any{"name": "spare", "scopes": []string{"read"}})
	w.post(admin, name, "POST", "/v1/invitations", map[string]any{"email": name + "@example.com", "role": "viewer"})
	w.post(admin, name, "POST", "/v1/webhooks", map[string]any{"url": w.known.Receiver + "/ok", "events": []string{"run.started", "run.failed", "workflow.activated"}})
	w.seedWorkflows(admin, name)
	w.seedHooks(admin)
	for _, path := range []string{"/v1/approvals", "/v1/runs?limit=1", "/v1/events?limit=1", "/v1/templates", "/v1/workflows?limit=1"} {
		w.learn(name, admin.Expect(w.t, http.StatusOK, "GET", path, nil))
	}
	var templates struct{ Data []struct{ Name string } }
	admin.Expect(w.t, http.StatusOK, "GET", "/v1/templates", nil).Decode(w.t, &templates)
	for _, template := range templates.Data {
		w.known.Add("templates", template.Name)
	}
}

// seedTable makes a table with rows.
func (w *world) seedTable(admin *harness.Client, name string) {
	w.t.Helper()
	columns := []map[string]any{{"name": "email", "type": "text"}, {"name": "amount", "type": "number", "indexed": true}}
	var made struct{ ID string }
	admin.Expect(w.t, http.StatusCreated, "POST", "/v1/tables", map[string]any{"name": "customers", "key": "email", "columns": columns}).Decode(w.t, &made)
	w.post(admin, name, "POST", "/v1/tables/"+made.ID+"/rows", map[string]any{"values": map[string]any{"email": "ada@example.com", "amount": 5}})
	w.learn(name, admin.Expect(w.t, http.StatusOK, "GET", "/v1/tables", nil))
}

// seedWorkflows makes workflows that use every kind of step, and runs of them.
func (w *world) seedWorkflows(admin *harness.Client, name string) {
	w.t.Helper()
	triggers := []map[string]any{
		{"id": "by_hand", "type": "manual"}, {"id": "call", "type": "webhook"},
		{"id": "nightly", "type": "schedule", "cron": "0 3 * * *"},
	}
	inner := flow.Set("inner", "${{ item }}")
	steps := []map[string]any{
		flow.Set("greet", "${{ trigger.payload.name }}"),
		{"id": "each", "foreach": "[1, 2]", "steps": []any{inner}},
		flow.Step("call_out", "http.request", `{"url": "`+w.known.Receiver+`/ok"}`),
		flow.Step("note", "log.write", `{"message": "hello"}`),
	}
	approval := flow.Step("ask", "flow.approval", `{"message": "May I?"}`)
	failing := flow.Step("bad", "flow.stop", `{"status": "failed", "message": "no"}`)
	withSecret := flow.Step("greet", "http.request", `{"url": "`+w.known.Receiver+`/ok", "headers": {"X-Token": "${{ secrets.canary }}"}}`)
	for _, list := range [][]map[string]any{steps, {flow.Set("greet", 1), approval}, {failing}, {withSecret}} {
		var made struct{ ID string }
		created := admin.Expect(w.t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "Seed"})
		created.Decode(w.t, &made)
		w.learn(name, created)
		admin.Expect(w.t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active", "steps": list, "triggers": triggers})
		for range 3 {
			w.learn(name, admin.Expect(w.t, http.StatusCreated, "POST", "/v1/workflows/"+made.ID+"/runs", map[string]any{"payload": map[string]any{"name": "Ada"}}))
		}
	}
}

// seedHooks makes two hooks whose workflows nothing changes later: one that responds
// at once, and one that responds with the result of its run.
func (w *world) seedHooks(admin *harness.Client) {
	w.t.Helper()
	for _, respond := range []string{"now", "result"} {
		id := flow.Define(w.t, admin, flow.Set("greet", 1))
		w.known.Protect(id)
		admin.Expect(w.t, http.StatusOK, "PATCH", "/v1/workflows/"+id, map[string]any{"triggers": []any{
			map[string]any{"id": "call", "type": "webhook", "respond": respond, "methods": []string{"POST", "PUT", "GET"}, "rate": 1_000_000},
		}})
		w.known.Add("hooks", strings.TrimPrefix(flow.HookPath(w.t, admin, id), "/hooks/"))
	}
}

func (w *world) post(admin *harness.Client, workspace, method, path string, body any) {
	w.t.Helper()
	w.learn(workspace, admin.Expect(w.t, http.StatusCreated, method, path, body))
}

func (w *world) learn(workspace string, response harness.Response) {
	w.known.Learn(workspace, response.Body)
}

func identity(name, workspace, authorization string) *fuzzapi.Identity {
	return &fuzzapi.Identity{Name: name, Workspace: workspace, Sees: workspace, Credential: func() fuzzapi.Field { return fuzzapi.Field{Name: "Authorization", Value: authorization} }}
}

func (w *world) addKey(admin *harness.Client, name string, scopes []string) {
	w.t.Helper()
	var made struct{ ID, Key string }
	admin.Expect(w.t, http.StatusCreated, "POST", "/v1/api-keys", map[string]any{"name": name, "scopes": scopes}).Decode(w.t, &made)
	w.known.Protect(made.ID)
	w.secrets = append(w.secrets, made.Key)
	w.identities = append(w.identities, identity(name+" of first", "first", "Bearer "+made.Key))
}

func (w *world) addAnonymous() {
	w.identities = append(w.identities,
		identity("unknown key", "nobody", "Bearer smk_12345678_"+strings.Repeat("0", 46)),
		&fuzzapi.Identity{Name: "anonymous", Workspace: "nobody", Sees: "first", Credential: func() fuzzapi.Field { return fuzzapi.Field{} }},
	)
}

// session is the session of a user, who signs in again when it has ended.
type session struct {
	w     *world
	email string
	mu    sync.Mutex
	token string
	tried time.Time
}

// addUsers creates the owner, a viewer, and members that requests may change and remove.
func (w *world) addUsers() {
	w.t.Helper()
	setup := map[string]any{"token": w.server.AwaitSetupToken(w.t), "email": "owner@example.com", "name": "Owner", "password": password}
	w.addSession("owner@example.com", w.server.Expect(w.t, http.StatusCreated, "POST", "/ui/v1/welcome", setup))
	w.addSession("viewer@example.com", w.invite("viewer@example.com", "viewer", password))
	for _, name := range []string{"victim", "second", "third", "fourth"} {
		w.invite(name+"@example.com", "editor", victimPassword)
	}
	var members struct {
		Data []struct{ ID, Email string }
	}
	listed := w.server.Expect(w.t, http.StatusOK, "GET", "/v1/members", nil)
	listed.Decode(w.t, &members)
	for _, member := range members.Data {
		if strings.HasPrefix(member.Email, "owner@") || strings.HasPrefix(member.Email, "viewer@") {
			w.known.Protect(member.ID)
		}
	}
	w.learn("first", listed)
}

// invite creates a member of the first workspace and returns the response to its sign-in.
func (w *world) invite(email, role, password string) harness.Response {
	w.t.Helper()
	var made struct{ Link string }
	w.server.Expect(w.t, http.StatusCreated, "POST", "/v1/invitations", map[string]any{"email": email, "role": role}).Decode(w.t, &made)
	_, token, _ := strings.Cut(made.Link, "#token=")
	return w.server.Expect(w.t, http.StatusCreated, "POST", "/ui/v1/invitations/accept", map[string]any{"token": token, "name": role, "password": password})
}

func (w *world) addSession(email string, signedIn harness.Response) {
	s := &session{w: w, email: email, token: sessionCookie(signedIn.Header)}
	w.sessions = append(w.sessions, s)
	w.identities = append(w.identities, &fuzzapi.Identity{Name: email, Session: true, Sees: "first", Credential: s.credential})
}

func sessionCookie(header http.Header) string {
	for _, cookie := range (&http.Response{Header: header}).Cookies() {
		return cookie.Name + "=" + cookie.Value
	}
	return ""
}

func (s *session) credential() fuzzapi.Field {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fuzzapi.Field{Name: "Cookie", Value: s.token}
}

// signInPause is the time between two attempts to sign in, which the service limits.
const signInPause = 10 * time.Second

// renew signs in again if the response shows that the session has ended.
func (s *session) renew(q *fuzzapi.Request, a *fuzzapi.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := slices.Contains(q.Header, fuzzapi.Field{Name: "Cookie", Value: s.token})
	if a.Status != http.StatusUnauthorized || !sent || time.Since(s.tried) < signInPause {
		return
	}
	s.tried = time.Now()
	response, err := s.w.server.With("").Do(s.w.t.Context(), "POST", "/ui/v1/session", map[string]string{"email": s.email, "password": password})
	if err == nil && response.Status == http.StatusCreated {
		s.token = sessionCookie(response.Header)
	}
}
