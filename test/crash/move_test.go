package crash_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// export exports the installation of a stopped server to a file.
func export(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.gz")
	if r := harness.Run(t, nil, "export", file, "--data-dir", dir); r.Code != 0 {
		t.Fatalf("export: exit code %d: %s", r.Code, r.Stderr)
	}
	return file
}

// newDirWithKey makes a data directory with the master key of another one.
func newDirWithKey(t *testing.T, was string) string {
	t.Helper()
	dir := t.TempDir()
	copyKey(t, was, dir)
	return dir
}

func copyKey(t *testing.T, from, to string) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(from, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// importInto imports an export into a directory.
func importInto(t *testing.T, file, dir string) {
	t.Helper()
	if r := harness.Run(t, nil, "import", file, "--data-dir", dir); r.Code != 0 {
		t.Fatalf("import: exit code %d: %s", r.Code, r.Stderr)
	}
}

// startReadOnly starts a server in safe mode, which executes nothing.
func startReadOnly(t *testing.T, dir, key string) *harness.Server {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "unready-starts"), []byte("5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startInSafeMode(t, &harness.Server{Dir: dir, Client: harness.NewClient("", key)}, "--public-url", "http://stepmill.example")
}

// gatedReceiver rejects deliveries until it is open.
type gatedReceiver struct {
	*receiver
	open atomic.Bool
}

func (d *gatedReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.open.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d.receiver.ServeHTTP(w, r)
}

// movedInstallation is an installation with ended and unfinished runs, deliveries,
// people and keys, and what the test has to know about them.
type movedInstallation struct {
	*harness.Server
	target *sink.Sink
	hooks  *gatedReceiver

	quick, sealed           string // workflows
	waits, asks, parent     string // waiting runs
	interrupted, queued     string // one executing when the server was killed, one queued behind it
	tenant                  string // the key of another workspace
	limited, revoked        string // other keys
	session, invited        string // a cookie, and the token of an invitation
	once                    harness.Response
	cursor                  string
	followed, followedEvent *streamClient
}

// newMovedInstallation makes the installation and kills its server during a step.
func newMovedInstallation(t *testing.T) *movedInstallation {
	t.Helper()
	l := &movedInstallation{target: sink.New(t), hooks: &gatedReceiver{receiver: newReceiver(t)}}
	front := httptest.NewServer(l.hooks)
	t.Cleanup(front.Close)
	l.hooks.open.Store(true)
	l.Server = harness.Start(t, t.TempDir(), egress)
	c := l.Client
	l.hooks.Server.URL = front.URL
	l.populate(t, c)

	l.waits = startRun(t, c, flow.Define(t, c, flow.Step("wait", "flow.wait", `{"for":"5s"}`), flow.Step("after", "data.set", `{"values":{"n":1}}`)), 1).ID
	l.asks = startRun(t, c, flow.Define(t, c, flow.Step("approve", "flow.approval", `{"message":"continue?"}`), flow.HTTP("after", l.target.URL)), 2).ID
	child := flow.Define(t, c, flow.Step("approve", "flow.approval", `{"message":"child"}`))
	l.parent = startRun(t, c, flow.Define(t, c, flow.Step("child", "flow.run", fmt.Sprintf(`{"workflow_id":%q}`, child))), 3).ID
	for _, id := range []string{l.waits, l.asks, l.parent} {
		harness.Eventually(t, "the run waits", func() bool { return getRun(t, c, id).WaitingFor != nil })
	}
	harness.Eventually(t, "two approvals wait", func() bool { return len(list(t, c, "/v1/approvals").Data) == 2 })

	// From now on nothing is delivered.
	awaitNone(t, l.Dir, "deliveries are pending", "SELECT count(*) FROM deliveries WHERE status = 'pending'")
	l.hooks.open.Store(false)
	one := map[string]any{"concurrency": map[string]any{"key": "one", "limit": 1}}
	slow := flow.DefineWith(t, c, one, flow.HTTP("before", l.target.URL), flow.HTTP("slow", l.target.URL+"?hang"), flow.HTTP("after", l.target.URL))
	l.interrupted, l.queued = startRun(t, c, slow, 4).ID, startRun(t, c, slow, 5).ID
	l.target.Await(t, "the call is in flight", 1, func(c *sink.Call) bool { return c.Key == l.interrupted+"/slow" })
	awaitNone(t, l.Dir, "deliveries were not attempted", "SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 0")

	l.cursor = *firstPage(t, c).NextCursor
	l.followUntilKill(t)
	return l
}

// populateTables makes a table with an index, rows, and keys.
func populateTables(t *testing.T, c *harness.Client) {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, 201, "POST", "/v1/tables", map[string]any{"name": "customers", "key": "email", "columns": []map[string]any{
		{"name": "email", "type": "text"}, {"name": "city", "type": "text", "indexed": true}, {"name": "amount", "type": "number", "indexed": true}, {"name": "extra", "type": "json"},
	}}).Decode(t, &made)
	for n := range 25 {
		c.Expect(t, 201, "POST", "/v1/tables/"+made.ID+"/rows", map[string]any{"values": map[string]any{"email": fmt.Sprint(n), "city": "Zürich 😀", "amount": 9007199254740993, "extra": map[string]any{"n": n}}})
	}
	c.Expect(t, 201, "PUT", "/v1/state/last-alert", map[string]any{"value": map[string]any{"n": 9007199254740993}, "expires_in": "30d"})
}

// populate makes everything that ends before the move.
func (l *movedInstallation) populate(t *testing.T, c *harness.Client) {
	t.Helper()
	l.hooks.Subscribe(c, "/all", "run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated")
	c.Expect(t, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "c4n4ry-v4lue"})
	c.Expect(t, 201, "PUT", "/v1/variables/region", map[string]any{"value": map[string]any{"name": "eu-1", "n": 9007199254740993}})
	c.Expect(t, 201, "POST", "/v1/connections", map[string]any{
		"name": "shop", "auth": "bearer", "fields": map[string]any{"token": "c4n4ry-v4lue"}, "definition": map[string]any{"hosts": []string{"api.shop.example"}},
	})
	connectOwn(t, c)
	c.Expect(t, 201, "POST", "/v1/oauth-apps", map[string]any{"integration": "github", "client_id": "an id", "client_secret": "c4n4ry-v4lue"})
	populateTables(t, c)
	populateFiles(t, c)
	l.sealed = flow.Define(t, c, flow.Step("open", "code.js", `{"code":"return input.length","input":"${{ secrets.token }}"}`))
	l.quick = createWorkflow(t, c, "quick", chain{{"add", 1}})
	for n := range 3 { // versions
		c.Expect(t, 200, "PATCH", "/v1/workflows/"+l.quick, map[string]any{"steps": chain{{"add", int64(n + 2)}}.steps()})
	}
	for n := range int64(30) {
		awaitEnd(t, c, startRun(t, c, l.quick, n).ID)
	}
	execute(t, c, l.sealed)
	fails := flow.Define(t, c, flow.Step("say", "log.write", `{"message":"<&> \" 😀"}`),
		flow.HTTP("call", l.target.URL+"?status=500", "retry", map[string]any{"max_attempts": 2, "initial": "10ms", "max_delay": "20ms"}))
	awaitEnd(t, c, startRun(t, c, fails, 0).ID)
	loop := flow.Define(t, c, map[string]any{"id": "each", "foreach": "${{ [1,2,3] }}", "steps": []any{flow.Step("say", "log.write", `{"message":"round ${{ item }}"}`)}})
	awaitEnd(t, c, startRun(t, c, loop, 0).ID)
	over := startRun(t, c, flow.Define(t, c, flow.Step("wait", "flow.wait", `{"for":"1h"}`)), 0).ID
	c.Expect(t, 200, "POST", "/v1/runs/"+over+"/cancel", nil)
	c.Expect(t, 201, "POST", "/v1/runs/"+over+"/retry", nil)

	l.call(t, c)
	l.limited, l.revoked = newKey(t, c, "read"), newKey(t, c, "admin")
	for _, key := range list(t, c, "/v1/api-keys").Data[:1] {
		c.Expect(t, 204, "DELETE", "/v1/api-keys/"+key.ID, nil)
	}
	l.people(t, c)
	other := flow.NewWorkspace(t, l.Server.Client, "pro")
	l.tenant = other.Key
	connectOwn(t, other)
	other.Expect(t, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "another"})
	awaitEnd(t, other, startRun(t, other, createWorkflow(t, other, "theirs", chain{{"add", 1}}), 1).ID)
	l.once = l.startOnce(t, c)
}

// call calls the webhook trigger of a workflow and waits until the call is recorded.
func (l *movedInstallation) call(t *testing.T, c *harness.Client) {
	t.Helper()
	id := flow.Define(t, c, flow.Step("note", "log.write", `{"message":"called"}`))
	c.Expect(t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"triggers": []any{map[string]any{"id": "hook", "type": "webhook"}}})
	c.Expect(t, 202, "POST", flow.HookPath(t, c, id), payload(6))
	harness.Eventually(t, "the call is recorded", func() bool {
		return number(t, l.Dir, "SELECT count(*) FROM hook_requests") > 0
	})
}

// people makes a signed-in member and an invitation.
func (l *movedInstallation) people(t *testing.T, c *harness.Client) {
	t.Helper()
	var made struct {
		Link string `json:"link"`
	}
	c.Expect(t, 201, "POST", "/v1/invitations", map[string]any{"email": "later@example.com", "role": "viewer"}).Decode(t, &made)
	l.invited = made.Link[strings.Index(made.Link, "#token=")+len("#token="):]
	c.Expect(t, 201, "POST", "/v1/invitations", map[string]any{"email": "ada@example.com", "role": "owner"}).Decode(t, &made)
	token := made.Link[strings.Index(made.Link, "#token=")+len("#token="):]
	accepted := c.Expect(t, 201, "POST", "/ui/v1/invitations/accept", map[string]any{"token": token, "name": "Ada", "password": "correct horse"})
	l.session, _, _ = strings.Cut(accepted.Header.Get("Set-Cookie"), ";")
	c.Expect(t, 200, "GET", "/ui/v1/session", nil, "Cookie", l.session)
}

func newKey(t *testing.T, c *harness.Client, scope string) string {
	t.Helper()
	var made struct {
		Key string `json:"key"`
	}
	c.Expect(t, 201, "POST", "/v1/api-keys", map[string]any{"name": scope, "scopes": []string{scope}}).Decode(t, &made)
	return made.Key
}

func (l *movedInstallation) startOnce(t *testing.T, c *harness.Client) harness.Response {
	t.Helper()
	return c.Expect(t, 201, "POST", "/v1/workflows/"+l.quick+"/runs", payload(77), "Idempotency-Key", "only-once")
}

func firstPage(t *testing.T, c *harness.Client) (p page) {
	t.Helper()
	c.Expect(t, 200, "GET", "/v1/runs?limit=10", nil).Decode(t, &p)
	return p
}

// followUntilKill follows the interrupted run and the events, and kills the server.
func (l *movedInstallation) followUntilKill(t *testing.T) {
	t.Helper()
	l.followed, l.followedEvent = &streamClient{steps: map[string]any{}}, &streamClient{lastID: "0"}
	var both sync.WaitGroup
	both.Go(func() { l.followed.follow(t, l.Server, "/v1/runs/"+l.interrupted+"/events") })
	both.Go(func() { l.followedEvent.follow(t, l.Server, "/v1/events/stream") })
	want := number(t, l.Dir, "SELECT count(*) FROM events e JOIN installation i ON i.first_workspace_id = e.workspace_id")
	harness.Eventually(t, "all events so far are received", func() bool {
		received, _ := l.followedEvent.progress()
		steps, _ := l.followed.progress()
		return received >= want && steps > 0
	})
	l.Kill(t)
	both.Wait()
	l.target.AwaitClosed(t)
	l.target.Release()
}

// connectOwn adds an integration of a workspace, and a connection to it.
func connectOwn(t *testing.T, c *harness.Client) {
	t.Helper()
	c.Expect(t, 201, "POST", "/v1/integrations", json.RawMessage(`{
		"id": "x_acme", "name": "Acme", "category": "support", "docs": "https://docs.acme.example", "base_url": "https://api.acme.example",
		"connection": {"hosts": ["api.acme.example"], "auth": [{"kind": "bearer", "label": "Token"}], "test": {"path": "/me"}, "learn": {"label": "${{ test.name }}"}}
	}`))
	c.Expect(t, 201, "POST", "/v1/connections", map[string]any{
		"name": "acme", "integration": "x_acme", "auth": "bearer", "fields": map[string]any{"token": "c4n4ry-v4lue"}, "hosts": []string{"api.acme.example"},
	})
}

// compare compares the responses of a server on a directory with those of the killed
// installation. It returns the deliveries that were pending.
func (l *movedInstallation) compare(t *testing.T, home string) map[string]string {
	t.Helper()
	copied := copyData(t, l.Dir)
	if err := os.CopyFS(filepath.Join(copied, "files"), os.DirFS(filepath.Join(l.Dir, "files"))); err != nil {
		t.Fatal(err)
	}
	copyKey(t, l.Dir, copied)
	for _, key := range []string{l.Key, l.tenant} {
		before, after := startReadOnly(t, copied, key), startReadOnly(t, home, key)
		had := walkAll(t, before.Client)
		if key == l.Key {
			had.checkCovered()
		}
		walkAll(t, after.Client).compare(had)
		before.Kill(t)
		after.Kill(t)
	}
	deliveries := pending(t, copied)
	if len(deliveries) < 3 {
		t.Errorf("%d deliveries are pending, want at least 3", len(deliveries))
	}
	return deliveries
}

// pending returns the bodies of pending deliveries by id.
func pending(t *testing.T, dir string) map[string]string {
	t.Helper()
	db := openTables(t, dir)
	rows, err := db.QueryContext(t.Context(), `SELECT d.id, e.body FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.status = 'pending'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var id, body string
		if err := rows.Scan(&id, &body); err != nil {
			t.Fatal(err)
		}
		out[id] = body
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// makeDeliveriesDue makes every pending delivery due at once. How long the next attempt
// would wait depends on how often the receiver rejected it before the server was killed.
func makeDeliveriesDue(t *testing.T, db *sql.DB) {
	t.Helper()
	tables.Exec(t, db, "UPDATE deliveries SET next_at = (SELECT min(at) FROM events) WHERE next_at IS NOT NULL")
}

// checkContinues checks that nothing was lost in the move and that runs continue.
func (l *movedInstallation) checkContinues(t *testing.T, s *harness.Server, deliveries map[string]string, open func() *sql.DB) {
	t.Helper()
	// Keys, secrets, idempotent responses, cursors.
	s.With(l.limited).Expect(t, 200, "GET", "/v1/workflows", nil)
	s.With(l.limited).Expect(t, 403, "POST", "/v1/workflows", map[string]any{"name": "x"})
	s.With(l.revoked).Expect(t, 401, "GET", "/v1/workflows", nil)
	// People, but not their sessions.
	s.Expect(t, 401, "GET", "/ui/v1/session", nil, "Cookie", l.session)
	s.Expect(t, 201, "POST", "/ui/v1/session", map[string]any{"email": "ada@example.com", "password": "correct horse"})
	s.Expect(t, 201, "POST", "/ui/v1/invitations/accept", map[string]any{"token": l.invited, "name": "L", "password": "correct horse"})
	if end := execute(t, s.Client, l.sealed); end.Status != succeeded {
		t.Errorf("the secret cannot be read: %+v", end)
	}
	if again := l.startOnce(t, s.Client); string(again.Body) != string(l.once.Body) {
		t.Errorf("replay returned %[2]s, want %[1]s", l.once.Body, again.Body)
	}
	var next page
	s.Expect(t, 200, "GET", "/v1/runs?limit=10&cursor="+l.cursor, nil).Decode(t, &next)
	if len(next.Data) != 10 {
		t.Errorf("the cursor returned %d runs, want 10", len(next.Data))
	}

	// Waiting runs and the interrupted one.
	for _, waiting := range list(t, s.Client, "/v1/approvals").Data {
		s.Expect(t, 200, "POST", "/v1/runs/"+waiting.RunID+"/steps/approve/resume", map[string]any{"approved": true})
	}
	for _, id := range []string{l.waits, l.asks, l.parent, l.interrupted, l.queued} {
		if end := awaitEnd(t, s.Client, id); end.Status != succeeded {
			t.Errorf("run %s is %s: %+v", id, end.Status, end)
		}
	}
	counted := l.target.Counts()
	for key, want := range map[string]int{"/before": 1, "/slow": 2, "/after": 1} {
		if got := counted[l.interrupted+key]; got != want {
			t.Errorf("%s was called %d times, want %d", key, got, want)
		}
	}

	// Deliveries and streams.
	harness.Eventually(t, "every pending delivery arrives", func() bool {
		for id := range deliveries {
			if len(l.hooks.Attempts(id)) == 0 {
				return false
			}
		}
		return true
	})
	for id, body := range deliveries {
		for _, attempt := range l.hooks.Attempts(id) {
			if attempt.Body != body {
				t.Errorf("delivery %s arrived as %s, want %s", id, attempt.Body, body)
			}
		}
	}
	l.followed.follow(t, s, "/v1/runs/"+l.interrupted+"/events")
	if _, over := l.followed.progress(); !over || len(l.followed.steps) != 3 {
		t.Errorf("the stream of the run has %d steps, ended: %t; want 3 and the end", len(l.followed.steps), over)
	}
	l.catchUp(t, s, open)
}

// catchUp follows the events after those received before the move, and compares them with
// a stream from the beginning.
func (l *movedInstallation) catchUp(t *testing.T, s *harness.Server, open func() *sql.DB) {
	t.Helper()
	all := &streamClient{lastID: "0"}
	var both sync.WaitGroup
	both.Go(func() { l.followedEvent.follow(t, s, "/v1/events/stream") })
	both.Go(func() { all.follow(t, s, "/v1/events/stream") })
	harness.Eventually(t, "all events are received", func() bool {
		want := tables.Number(t, open(), "SELECT count(*) FROM events e JOIN installation i ON i.first_workspace_id = e.workspace_id")
		a, _ := l.followedEvent.progress()
		b, _ := all.progress()
		return a == want && b == want
	})
	s.Stop(t) // while both are connected
	both.Wait()
	if diff := cmp.Diff(all.events, l.followedEvent.events); diff != "" {
		t.Errorf("events (-from the beginning +across the move):\n%s", diff)
	}
}
