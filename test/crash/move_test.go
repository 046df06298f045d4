package crash_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// export writes the installation of a server that has ended to a file.
func export(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.gz")
	if r := harness.Run(t, nil, "export", file, "--data-dir", dir); r.Code != 0 {
		t.Fatalf("export: exit code %d: %s", r.Code, r.Stderr)
	}
	return file
}

// newHome makes a data directory that holds the master key of another one.
func newHome(t *testing.T, was string) string {
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

// imported imports an export into a directory.
func imported(t *testing.T, file, dir string) {
	t.Helper()
	if r := harness.Run(t, nil, "import", file, "--data-dir", dir); r.Code != 0 {
		t.Fatalf("import: exit code %d: %s", r.Code, r.Stderr)
	}
}

// readOnly starts a server that executes nothing, on a directory where five
// starts have failed.
func readOnly(t *testing.T, dir, key string) *harness.Server {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "unready-starts"), []byte("5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startSafe(t, &harness.Server{Dir: dir, Client: harness.NewClient("", key)}, "--public-url", "http://stepmill.example")
}

// deaf lets deliveries through to a receiver once it hears.
type deaf struct {
	*receiver
	hears atomic.Bool
}

func (d *deaf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.hears.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d.receiver.ServeHTTP(w, r)
}

// lived is an installation in which all kinds of things have happened and are
// happening, with what a test has to know of them.
type lived struct {
	*harness.Server
	outside *sink.Sink
	hooks   *deaf

	quick, sealed           string // workflows
	waits, asks, above      string // runs that wait
	struck, behind          string // one that was executed at the end, one that waits for its place
	tenant                  string // the key of another workspace
	limited, revoked        string // other keys
	session, invited        string // a cookie, and the token of an invitation
	once                    harness.Answer
	cursor                  string
	followed, followedEvent *told
}

// doing is a step of an action.
func doing(id, uses, with string) map[string]any {
	return map[string]any{"id": id, "uses": uses, "with": json.RawMessage(with)}
}

// live makes the installation and kills its server in the middle of a step.
func live(t *testing.T) *lived {
	t.Helper()
	l := &lived{outside: sink.New(t), hooks: &deaf{receiver: newReceiver(t)}}
	front := httptest.NewServer(l.hooks)
	t.Cleanup(front.Close)
	l.hooks.hears.Store(true)
	l.Server = harness.Start(t, t.TempDir(), egress)
	c := l.Client
	l.hooks.Server.URL = front.URL
	l.settle(t, c)

	l.waits = startRun(t, c, define(t, c, nil, doing("wait", "flow.wait", `{"for":"8s"}`), doing("after", "data.set", `{"values":{"n":1}}`)), 1).ID
	l.asks = startRun(t, c, define(t, c, nil, doing("approve", "flow.approval", `{"message":"go on?"}`), calls("after", l.outside.URL)), 2).ID
	child := define(t, c, nil, doing("approve", "flow.approval", `{"message":"below"}`))
	l.above = startRun(t, c, define(t, c, nil, doing("below", "flow.run", fmt.Sprintf(`{"workflow_id":%q}`, child))), 3).ID
	for _, id := range []string{l.waits, l.asks, l.above} {
		sink.Within(t, 10*time.Second, "a run waits", func() bool { return getRun(t, c, id).WaitingFor != nil })
	}
	sink.Within(t, 10*time.Second, "two approvals wait", func() bool { return len(list(t, c, "/v1/approvals").Data) == 2 })

	// From here on nothing is delivered any more.
	awaitNothing(t, l.Dir, "deliveries are pending", "SELECT count(*) FROM deliveries WHERE status = 'pending'")
	l.hooks.hears.Store(false)
	one := map[string]any{"concurrency": map[string]any{"key": "one", "limit": 1}}
	slow := define(t, c, one, calls("before", l.outside.URL), calls("slow", l.outside.URL+"?ms=3000"), calls("after", l.outside.URL))
	l.struck, l.behind = startRun(t, c, slow, 4).ID, startRun(t, c, slow, 5).ID
	l.outside.Await(t, "a step is under way", 1, func(c *sink.Call) bool { return c.Key == l.struck+"/slow" })
	awaitNothing(t, l.Dir, "deliveries were not tried", "SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 0")

	l.cursor = *firstPage(t, c).NextCursor
	l.listen(t)
	return l
}

// settle does what comes to an end.
func (l *lived) settle(t *testing.T, c *harness.Client) {
	t.Helper()
	l.hooks.Subscribe(c, "/all", "run.started", "run.succeeded", "run.failed", "run.cancelled", "workflow.activated")
	c.Expect(t, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "c4n4ry-v4lue"})
	c.Expect(t, 201, "PUT", "/v1/variables/region", map[string]any{"value": map[string]any{"name": "eu-1", "n": 9007199254740993}})
	l.sealed = define(t, c, nil, doing("open", "code.js", `{"code":"return input.length","input":"${{ secrets.token }}"}`))
	l.quick = createWorkflow(t, c, "quick", chain{{"add", 1}})
	for n := range 3 { // versions
		c.Expect(t, 200, "PATCH", "/v1/workflows/"+l.quick, map[string]any{"steps": chain{{"add", int64(n + 2)}}.steps()})
	}
	for n := range int64(30) {
		awaitEnd(t, c, startRun(t, c, l.quick, n).ID, settleTime)
	}
	finish(t, c, l.sealed)
	fails := define(t, c, nil, doing("say", "log.write", `{"message":"<&> \" 😀"}`),
		calls("call", l.outside.URL+"?status=500", "retry", map[string]any{"max_attempts": 2, "initial": "10ms", "max_delay": "20ms"}))
	awaitEnd(t, c, startRun(t, c, fails, 0).ID, settleTime)
	loop := define(t, c, nil, map[string]any{"id": "each", "foreach": "${{ [1,2,3] }}", "steps": []any{doing("say", "log.write", `{"message":"round ${{ item }}"}`)}})
	awaitEnd(t, c, startRun(t, c, loop, 0).ID, settleTime)
	over := startRun(t, c, define(t, c, nil, doing("wait", "flow.wait", `{"for":"1h"}`)), 0).ID
	c.Expect(t, 200, "POST", "/v1/runs/"+over+"/cancel", nil)
	c.Expect(t, 201, "POST", "/v1/runs/"+over+"/retry", nil)

	l.call(t, c)
	l.limited, l.revoked = newKey(t, c, "read"), newKey(t, c, "admin")
	for _, key := range list(t, c, "/v1/api-keys").Data[:1] {
		c.Expect(t, 204, "DELETE", "/v1/api-keys/"+key.ID, nil)
	}
	l.people(t, c)
	other := workspace(t, l.Server, "free")
	l.tenant = other.Key
	other.Expect(t, 201, "PUT", "/v1/secrets/token", map[string]any{"value": "another"})
	awaitEnd(t, other, startRun(t, other, createWorkflow(t, other, "theirs", chain{{"add", 1}}), 1).ID, settleTime)
	l.once = l.startOnce(t, c)
}

// call calls a workflow by its own address, and waits until that is on record.
func (l *lived) call(t *testing.T, c *harness.Client) {
	t.Helper()
	id := define(t, c, nil, doing("note", "log.write", `{"message":"called"}`))
	c.Expect(t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"triggers": []any{map[string]any{"id": "hook", "type": "webhook"}}})
	var triggers struct{ Data []struct{ URL string } }
	c.Expect(t, 200, "GET", "/v1/workflows/"+id+"/triggers", nil).Decode(t, &triggers)
	address, err := url.Parse(triggers.Data[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	c.Expect(t, 202, "POST", address.Path, payload(6))
	sink.Within(t, 20*time.Second, "the call is on record", func() bool {
		return number(t, openTables(t, l.Dir), "SELECT count(*) FROM hook_requests") > 0
	})
}

// people makes a member, who is signed in, and somebody who is invited.
func (l *lived) people(t *testing.T, c *harness.Client) {
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

func (l *lived) startOnce(t *testing.T, c *harness.Client) harness.Answer {
	t.Helper()
	return c.Expect(t, 201, "POST", "/v1/workflows/"+l.quick+"/runs", payload(77), "Idempotency-Key", "only-once")
}

func firstPage(t *testing.T, c *harness.Client) (p page) {
	t.Helper()
	c.Expect(t, 200, "GET", "/v1/runs?limit=10", nil).Decode(t, &p)
	return p
}

// listen follows the struck run and the events until the server is killed.
func (l *lived) listen(t *testing.T) {
	t.Helper()
	l.followed, l.followedEvent = &told{steps: map[string]any{}}, &told{lastID: "0"}
	var both sync.WaitGroup
	both.Go(func() { l.followed.follow(t, l.Server, "/v1/runs/"+l.struck+"/events") })
	both.Go(func() { l.followedEvent.follow(t, l.Server, "/v1/events/stream") })
	want := number(t, openTables(t, l.Dir), "SELECT count(*) FROM events e JOIN installation i ON i.first_workspace_id = e.workspace_id")
	sink.Within(t, 10*time.Second, "all events so far are told", func() bool {
		heard, _ := l.followedEvent.progress()
		steps, _ := l.followed.progress()
		return heard == want && steps > 0
	})
	l.Kill(t)
	both.Wait()
	l.outside.Quiet(t)
}

// An installation moves while everything is under way, out of one that was
// killed. What could be read before can be read after, and all of it goes on.
func TestMove(t *testing.T) {
	harness.EmbeddedOnly(t, "it moves from one directory to another; TestMoveToPostgresAndBack does the rest")
	t.Parallel()
	l := live(t)
	file := export(t, l.Dir)
	home := newHome(t, l.Dir)
	imported(t, file, home)
	checkTables(t, checkFile(t, home), "")

	deliveries := l.compare(t, home)
	l.hooks.hears.Store(true)
	s := harness.Start(t, home, egress, "--leave-safe-mode")
	s.Key = l.Key
	l.goesOn(t, s, deliveries, openTables(t, home))
	checkTables(t, checkFile(t, home), "")
}

// compare holds what a directory answers, while nothing is executed, against
// what the installation did when it was killed. It returns what had still to be
// delivered then.
func (l *lived) compare(t *testing.T, home string) map[string]string {
	t.Helper()
	copied := copyData(t, l.Dir)
	copyKey(t, l.Dir, copied)
	for _, key := range []string{l.Key, l.tenant} {
		before, after := readOnly(t, copied, key), readOnly(t, home, key)
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
		t.Errorf("only %d deliveries are pending", len(deliveries))
	}
	return deliveries
}

// An import is killed again and again. Until one has come to its end no server
// starts on what is there; the next one replaces it.
func TestImportCutShort(t *testing.T) {
	harness.EmbeddedOnly(t, "the same code marks both databases, and the tests of the store hold it")
	t.Parallel()
	dir, file, key := many(t)
	home := newHome(t, dir)
	for _, moment := range []string{"mid_import:kill:#1", "mid_import@run_queue:kill:#2", "mid_import@events:kill", "before_import_end:kill"} {
		if r := harness.RunFailing(t, moment, "import", file, "--data-dir", home); r.Code == 0 {
			t.Fatalf("%s: the import went through", moment)
		}
		checkHalf(t, home)
	}
	imported(t, file, home)
	again := newHome(t, dir)
	imported(t, file, again)
	was, is := readOnly(t, again, key), readOnly(t, home, key)
	walkAll(t, is.Client).compare(walkAll(t, was.Client))
	checkTables(t, checkFile(t, home), "")
}

// many is an installation that no longer runs, with more runs than an import
// writes at once, its export and its key.
func many(t *testing.T) (dir, file, key string) {
	t.Helper()
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "many", chain{{"add", 1}, {"wait", 3_600_000}})
	for n := range int64(600) {
		startRun(t, s.Client, id, n)
	}
	s.Stop(t)
	return s.Dir, export(t, s.Dir), s.Key
}

// checkHalf checks that nothing works on an installation that is not whole.
func checkHalf(t *testing.T, dir string) {
	t.Helper()
	expectRefusal(t, dir, nil, "import", "cut short", "stepmill import FILE")
	for _, args := range [][]string{{"keys", "list"}, {"export", filepath.Join(t.TempDir(), "file")}, {"master-key", "rotate"}} {
		if r := harness.Run(t, nil, append(args, "--data-dir", dir)...); r.Code == 0 || !strings.Contains(r.Stderr, "cut short") {
			t.Errorf("stepmill %s: exit code %d: %s", args[0], r.Code, r.Stderr)
		}
	}
}

// An import that cannot write any more, and cannot take back what it has written
// either, leaves nothing that a server starts on.
func TestImportOnAFailingDisk(t *testing.T) {
	harness.EmbeddedOnly(t, "the disk is that of the data directory")
	t.Parallel()
	dir, file, key := many(t)
	home := newHome(t, dir)
	r := limitedTo(t, 1000, "import", file, "--data-dir", home)
	if r.Code != 1 || !strings.Contains(r.Stderr, "import") {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	checkHalf(t, home)
	imported(t, file, home)
	s := harness.Start(t, home)
	s.Key = key
	if got := len(list(t, s.Client, "/v1/runs").Data); got != 600 {
		t.Errorf("%d runs, want 600", got)
	}
	s.Stop(t)

	// An export that cannot be written to its end leaves no file.
	target := filepath.Join(t.TempDir(), "export.gz")
	if r := limitedTo(t, 10, "export", target, "--data-dir", home); r.Code != 1 {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	for _, name := range []string{target, target + ".partial"} {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// limitedTo runs a command that may write no file beyond so many KiB.
func limitedTo(t *testing.T, kib int, args ...string) harness.Result {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", fmt.Sprintf(`ulimit -f %d && exec "$0" "$@"`, kib), binary}, args...)...)
	cmd.Env, cmd.Stderr = harness.Environ(), &stderr
	_ = cmd.Run() // its state tells
	return harness.Result{Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// pending are the bodies of what is still to be delivered, by id.
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

// goesOn checks that nothing has been lost on the way.
func (l *lived) goesOn(t *testing.T, s *harness.Server, deliveries map[string]string, tables *sql.DB) {
	t.Helper()
	// Keys, secrets, saved answers, cursors.
	s.With(l.limited).Expect(t, 200, "GET", "/v1/workflows", nil)
	s.With(l.limited).Expect(t, 403, "POST", "/v1/workflows", map[string]any{"name": "x"})
	s.With(l.revoked).Expect(t, 401, "GET", "/v1/workflows", nil)
	// People, but for where they are signed in.
	s.Expect(t, 401, "GET", "/ui/v1/session", nil, "Cookie", l.session)
	s.Expect(t, 201, "POST", "/ui/v1/session", map[string]any{"email": "ada@example.com", "password": "correct horse"})
	s.Expect(t, 201, "POST", "/ui/v1/invitations/accept", map[string]any{"token": l.invited, "name": "L", "password": "correct horse"})
	if end := finish(t, s.Client, l.sealed); end.Status != succeeded {
		t.Errorf("the secret does not open: %+v", end)
	}
	if again := l.startOnce(t, s.Client); string(again.Body) != string(l.once.Body) {
		t.Errorf("what was done once is done again: %s, then %s", l.once.Body, again.Body)
	}
	var next page
	s.Expect(t, 200, "GET", "/v1/runs?limit=10&cursor="+l.cursor, nil).Decode(t, &next)
	if len(next.Data) != 10 {
		t.Errorf("the cursor leads to %d runs", len(next.Data))
	}

	// Runs that wait, and the one that was struck.
	for _, waiting := range list(t, s.Client, "/v1/approvals").Data {
		s.Expect(t, 200, "POST", "/v1/runs/"+waiting.RunID+"/steps/approve/resume", map[string]any{"approved": true})
	}
	for _, id := range []string{l.waits, l.asks, l.above, l.struck, l.behind} {
		if end := awaitEnd(t, s.Client, id, settleTime); end.Status != succeeded {
			t.Errorf("run %s is %s: %+v", id, end.Status, end)
		}
	}
	counted := l.outside.Counted()
	for key, want := range map[string]int{"/before": 1, "/slow": 2, "/after": 1} {
		if got := counted[l.struck+key]; got != want {
			t.Errorf("%s was called %d times, want %d", key, got, want)
		}
	}

	// Deliveries and streams.
	sink.Within(t, settleTime, "everything is delivered", func() bool {
		for id := range deliveries {
			if len(l.hooks.Letters(id)) == 0 {
				return false
			}
		}
		return true
	})
	for id, body := range deliveries {
		for _, letter := range l.hooks.Letters(id) {
			if letter.Body != body {
				t.Errorf("%s arrived as %s, not as %s", id, letter.Body, body)
			}
		}
	}
	l.followed.follow(t, s, "/v1/runs/"+l.struck+"/events")
	if _, over := l.followed.progress(); !over || len(l.followed.steps) != 3 {
		t.Errorf("the stream of the run told %d steps, over: %t", len(l.followed.steps), over)
	}
	l.catchUp(t, s, tables)
}

// catchUp follows the events after what was heard before the move, and compares
// with what one hears who begins anew.
func (l *lived) catchUp(t *testing.T, s *harness.Server, tables *sql.DB) {
	t.Helper()
	all := &told{lastID: "0"}
	var both sync.WaitGroup
	both.Go(func() { l.followedEvent.follow(t, s, "/v1/events/stream") })
	both.Go(func() { all.follow(t, s, "/v1/events/stream") })
	want := number(t, tables, "SELECT count(*) FROM events e JOIN installation i ON i.first_workspace_id = e.workspace_id")
	sink.Within(t, 20*time.Second, "all events are told", func() bool {
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
