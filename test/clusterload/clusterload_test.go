// Package clusterload_test puts load on several nodes of the real binary that
// share a PostgreSQL database: nobody starves another, limits hold across nodes,
// nodes come and go, and the database may be reached in awkward ways.
package clusterload_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	// egress lets steps call this machine.
	egress = "--egress-allow=127.0.0.0/8"
	// lease is short, and long enough for a busy machine.
	lease = "--node-lease=3s"
	// settleTime is how soon everything has ended when nothing disturbs it.
	settleTime = 2 * time.Minute
)

// cluster is a database with the nodes on it.
type cluster struct {
	t *testing.T
	// url is that of the database, also where the nodes use another way to it.
	url string
	// reach is how nodes reach it.
	reach string
	dir   string
	args  []string
	nodes []*harness.Server
	admin string
}

// empty makes a database without nodes.
func empty(t *testing.T, args ...string) *cluster {
	t.Helper()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, url: server.NewDatabase(t), dir: t.TempDir(), args: append([]string{egress, lease}, args...)}
	c.reach = c.url
	if err := harness.WriteMasterKey(filepath.Join(c.dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	return c
}

// start makes a database with that many nodes.
func start(t *testing.T, nodes int, args ...string) *cluster {
	t.Helper()
	c := empty(t, args...)
	for range nodes {
		c.add()
	}
	return c
}

func (c *cluster) options(args []string) harness.Options {
	return harness.Options{Dir: c.dir, Database: c.reach, Args: append(append([]string{}, c.args...), args...)}
}

// add starts one more node. Its client has the key of the first workspace.
func (c *cluster) add(args ...string) *harness.Server {
	c.t.Helper()
	node := harness.StartWith(c.t, c.options(args))
	if c.admin == "" {
		c.admin = node.AwaitKey(c.t)
	}
	node.Key = c.admin
	c.nodes = append(c.nodes, node)
	return node
}

// worker starts a node that serves no requests.
func (c *cluster) worker(args ...string) *harness.Server {
	c.t.Helper()
	o := c.options(args)
	o.Worker = true
	before := c.number(`SELECT count(*) FROM nodes`)
	node, err := harness.Spawn(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { node.Close(c.t) })
	within(c.t, 20*time.Second, "the worker is known", func() bool { return c.number(`SELECT count(*) FROM nodes`) > before })
	return node
}

// tenant makes a workspace whose rate nobody reaches and answers with its key.
func (c *cluster) tenant(plan string) string {
	c.t.Helper()
	var made struct {
		APIKey string `json:"api_key"`
	}
	body := map[string]any{"name": "tenant", "plan": plan}
	if plan == "enterprise" {
		body["requests_per_minute"] = 1_000_000
	}
	c.nodes[0].Expect(c.t, 201, "POST", "/v1/workspaces", body).Decode(c.t, &made)
	c.exec(`UPDATE workspaces SET requests_per_minute = 1000000`)
	return made.APIKey
}

// exec runs a statement.
func (c *cluster) exec(sql string, args ...any) {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(c.t.Context())
	if _, err := conn.Exec(c.t.Context(), sql, args...); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

// number is the only value of a query.
func (c *cluster) number(sql string, args ...any) int {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(c.t.Context())
	var n int
	if err := conn.QueryRow(c.t.Context(), sql, args...).Scan(&n); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// texts is the first column of a query.
func (c *cluster) texts(sql string, args ...any) []string {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(c.t.Context())
	rows, err := conn.Query(c.t.Context(), sql, args...)
	if err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// settle waits until no run is under way, and looks at what is left.
func (c *cluster) settle() {
	c.t.Helper()
	begun := time.Now()
	for c.number(`SELECT count(*) FROM run_queue`) > 0 {
		if time.Since(begun) > settleTime {
			c.t.Fatalf("runs are under way after %v:\n%s", settleTime, c.queued())
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.check()
}

// invariants hold at any time.
var invariants = map[string]string{
	"the load of a workspace is what its runs say": `
		SELECT w.id FROM workspaces w LEFT JOIN workspace_load l ON l.workspace_id = w.id
		LEFT JOIN (SELECT workspace_id, count(CASE WHEN slot THEN 1 END) AS running, count(CASE WHEN parked THEN 1 END) AS parked
			FROM run_queue GROUP BY workspace_id) q ON q.workspace_id = w.id
		WHERE COALESCE(l.running, 0) <> COALESCE(q.running, 0) OR COALESCE(l.parked, 0) <> COALESCE(q.parked, 0)`,
	"a run is queued exactly while it has not ended": `
		SELECT r.id FROM runs r LEFT JOIN run_queue q ON q.run_id = r.id WHERE (q.run_id IS NULL) <> (r.status <> 'running')`,
	"a run has one event of its start, and one of its end once it has ended": `
		SELECT r.id FROM runs r LEFT JOIN events e ON e.run_id = r.id GROUP BY r.id, r.status
		HAVING count(*) FILTER (WHERE e.type = 'run.started') <> 1 OR count(*) FILTER (WHERE e.type <> 'run.started') <> CASE WHEN r.status = 'running' THEN 0 ELSE 1 END`,
	"a run that has ended has no open steps": `
		SELECT s.run_id FROM steps s JOIN runs r ON r.id = s.run_id WHERE r.status <> 'running' AND s.status IN ('running', 'waiting')`,
	"a step belongs to a run, or is what remains of one": `SELECT s.run_id FROM steps s LEFT JOIN runs r ON r.id = s.run_id WHERE r.id IS NULL AND s.run_id NOT IN (SELECT run_id FROM run_remains)`,
}

// check holds the tables against the invariants.
func (c *cluster) check() {
	c.t.Helper()
	for rule, query := range invariants {
		if got := c.texts(query + ` LIMIT 5`); len(got) != 0 {
			c.t.Errorf("%s; not so: %s", rule, strings.Join(got, ", "))
		}
	}
}

// queued shows what is in the queue, for a test that failed because something is.
func (c *cluster) queued() string {
	c.t.Helper()
	var out []string
	for _, query := range []string{
		`SELECT concat_ws(' ', 'queue', run_id, 'epoch', epoch, 'node', node, 'wake', to_timestamp(wake_at / 1000000), 'executing', executing, 'crashes', crashes,
			CASE WHEN turn THEN 'turn' END, CASE WHEN slot THEN 'slot' END, CASE WHEN parked THEN 'parked' END) FROM run_queue ORDER BY run_id LIMIT 10`,
		`SELECT concat_ws(' ', 'load', workspace_id, running, parked) FROM workspace_load`,
		`SELECT concat_ws(' ', 'node', id, to_timestamp(expires_at / 1000000), dead) FROM nodes`,
		`SELECT concat_ws(' ', 'job', id, state, args, scheduled_at, attempt, attempted_by) FROM stepmill_river.river_job WHERE state <> 'completed' ORDER BY id LIMIT 10`,
		`SELECT concat_ws(' ', 'leader', leader_id, expires_at) FROM stepmill_river.river_leader`,
		`SELECT 'now ' || now()`,
	} {
		out = append(out, c.texts(query)...)
	}
	return strings.Join(out, "\n")
}

// define makes an active workflow.
func define(t *testing.T, c *harness.Client, steps ...map[string]any) string {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "defined"}).Decode(t, &made)
	c.Expect(t, 200, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active", "steps": steps})
	return made.ID
}

// calls is a step that calls a URL.
func calls(id, url string) map[string]any {
	return map[string]any{"id": id, "uses": "http.request", "with": map[string]any{"url": url, "method": "POST", "body": "${{ trigger.payload }}"}}
}

// sets is a step without effects.
func sets(id string) map[string]any {
	return map[string]any{"id": id, "uses": "data.set", "with": map[string]any{"values": map[string]any{"n": 1}}}
}

// run is one as the API shows it.
type run struct {
	ID              string
	Status          string
	WorkflowVersion int        `json:"workflow_version"`
	StartedAt       time.Time  `json:"started_at"`
	FinishedAt      *time.Time `json:"finished_at"`
	Error           *struct{ Code, Message string }
	Steps           []struct {
		StepID    string `json:"step_id"`
		Status    string
		Attempt   int
		StartedAt time.Time `json:"started_at"`
	}
}

func begin(t *testing.T, c *harness.Client, workflow string) run {
	t.Helper()
	var r run
	c.Expect(t, 201, "POST", "/v1/workflows/"+workflow+"/runs", nil).Decode(t, &r)
	return r
}

func look(t *testing.T, c *harness.Client, id string) run {
	t.Helper()
	var r run
	c.Expect(t, 200, "GET", "/v1/runs/"+id, nil).Decode(t, &r)
	return r
}

// ended waits for the end of a run.
func ended(t *testing.T, c *harness.Client, id string, atMost time.Duration) run {
	t.Helper()
	var r run
	within(t, atMost, "run "+id+" has ended", func() bool {
		r = look(t, c, id)
		return r.Status != "running"
	})
	return r
}

// flood starts many runs over the nodes, by that many clients, and answers with
// their ids.
func (c *cluster) flood(key, workflow string, runs, clients int) []string {
	c.t.Helper()
	var (
		mu    sync.Mutex
		ids   []string
		group sync.WaitGroup
	)
	for i := range clients {
		client := c.nodes[i%len(c.nodes)].With(key)
		group.Go(func() {
			for n := i; n < runs && !c.t.Failed(); n += clients {
				var r run
				answer, err := client.Do(c.t.Context(), "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": map[string]any{"n": n}})
				if err != nil || answer.Status != 201 {
					c.t.Errorf("start: %v %d %s", err, answer.Status, answer.Body)
					return
				}
				if err := json.Unmarshal(answer.Body, &r); err != nil {
					c.t.Error(err)
				}
				mu.Lock()
				ids = append(ids, r.ID)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(ids) != runs {
		c.t.Fatalf("%d of %d runs were started", len(ids), runs)
	}
	return ids
}

// within waits for something to become true.
func within(t *testing.T, atMost time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(atMost); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is not true that %s", atMost, what)
		}
	}
}

func ms(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }

// nth is the value below which that many of a hundred are.
func nth(took []time.Duration, percent int) time.Duration {
	slices.Sort(took)
	return took[len(took)*percent/100]
}

// sorted is largest first.
func sorted(lines []string) []string {
	slices.Sort(lines)
	slices.Reverse(lines)
	return lines
}
