// Package clusterload_test puts load on several nodes of the real binary that
// share a PostgreSQL database: no workspace starves another, limits hold across
// nodes, nodes join and leave, and nodes may connect through a pooler.
package clusterload_test

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/installation"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/tables"
)

func TestMain(m *testing.M) {
	if !lane.Long() {
		fmt.Println("load on several nodes runs in make test-long")
		return
	}
	// Most of these tests mostly wait.
	harness.SetParallel(4)
	harness.Main(m)
}

const (
	// egress lets steps call this machine.
	egress = "--egress-allow=127.0.0.0/8"
	// longLease is the default: even on a busy machine no node loses its lease and
	// repeats a step. shortLease is for tests in which nodes die.
	longLease, shortLease = "--node-lease=1m", "--node-lease=3s"
)

// patience lets transactions take as long as they need on a busy machine.
var patience = "--database-timeout=" + harness.Timeout.String()

// cluster is a database with its nodes.
type cluster struct {
	t *testing.T
	// url leads straight to the database.
	url string
	// nodeURL is the database URL that the nodes get.
	nodeURL  string
	db       *sql.DB
	dir      string
	args     []string
	nodes    []*harness.Server
	adminKey string
}

// newEmptyCluster makes a database without tables and nodes.
func newEmptyCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, server.NewDatabase(t), t.TempDir(), args)
	if err := harness.WriteMasterKey(filepath.Join(c.dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	return c
}

// newInstalledCluster makes a database with tables and the first workspace, without
// nodes.
func newInstalledCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	made := installation.New(t)
	c := newCluster(t, made.URL, made.Dir, args)
	c.adminKey = made.AdminKey
	return c
}

func newCluster(t *testing.T, url, dir string, args []string) *cluster {
	t.Helper()
	return &cluster{t: t, url: url, nodeURL: url, db: tables.OpenPostgres(t, url), dir: dir, args: append([]string{egress, longLease, patience}, args...)}
}

// startCluster makes an installed database and starts nodes on it.
func startCluster(t *testing.T, nodes int, args ...string) *cluster {
	t.Helper()
	c := newInstalledCluster(t, args...)
	for range nodes {
		c.addNode()
	}
	return c
}

func (c *cluster) options(args []string) harness.Options {
	return harness.Options{Dir: c.dir, Database: c.nodeURL, Args: append(append([]string{}, c.args...), args...)}
}

// addNode starts another node. Its client has the key of the first workspace.
func (c *cluster) addNode(args ...string) *harness.Server {
	c.t.Helper()
	node := harness.StartWith(c.t, c.options(args))
	if c.adminKey == "" {
		c.adminKey = node.AwaitKey(c.t)
	}
	node.Key = c.adminKey
	c.nodes = append(c.nodes, node)
	return node
}

// addWorker starts a node that serves no requests.
func (c *cluster) addWorker(args ...string) *harness.Server {
	c.t.Helper()
	o := c.options(args)
	o.Worker = true
	before := c.number(`SELECT count(*) FROM nodes`)
	node := harness.StartProcess(c.t, o)
	harness.Eventually(c.t, "the worker has joined", func() bool { return c.number(`SELECT count(*) FROM nodes`) > before })
	return node
}

// newTenant makes a workspace whose rate limit no test reaches and returns its key.
func (c *cluster) newTenant(plan string) string {
	c.t.Helper()
	key := flow.NewWorkspace(c.t, c.nodes[0].Client, plan).Key
	c.exec(`UPDATE workspaces SET requests_per_minute = 1000000`)
	return key
}

func (c *cluster) exec(statement string, args ...any) {
	c.t.Helper()
	tables.Exec(c.t, c.db, statement, args...)
}

func (c *cluster) number(query string, args ...any) int {
	c.t.Helper()
	return tables.Number(c.t, c.db, query, args...)
}

func (c *cluster) texts(query string, args ...any) []string {
	c.t.Helper()
	return tables.Texts(c.t, c.db, query, args...)
}

// awaitIdle waits until the queue is empty and checks the tables.
func (c *cluster) awaitIdle() {
	c.t.Helper()
	if n := harness.AwaitZero(func() int { return c.number(`SELECT count(*) FROM run_queue`) }); n > 0 {
		c.t.Fatalf("%d runs are queued, unchanged for %v:\n%s", n, harness.Timeout, tables.Queue(c.t, c.db))
	}
	tables.CheckShared(c.t, c.db)
}

// run is a run as the API returns it.
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

func startRun(t *testing.T, c *harness.Client, workflow string) run {
	t.Helper()
	return decodeRun(t, c, 201, "POST", "/v1/workflows/"+workflow+"/runs")
}

func getRun(t *testing.T, c *harness.Client, id string) run {
	t.Helper()
	return decodeRun(t, c, 200, "GET", "/v1/runs/"+id)
}

func decodeRun(t *testing.T, c *harness.Client, status int, method, path string) (r run) {
	t.Helper()
	expect(t, c, status, method, path, nil).Decode(t, &r)
	return r
}

// do sends a request, again while the database is unavailable. With its idempotency key
// a start or another POST takes effect once.
func do(t *testing.T, c *harness.Client, method, path string, body any, headers ...string) (response harness.Response, err error) {
	if method == http.MethodPost && strings.HasPrefix(path, "/v1/") && !slices.Contains(headers, "Idempotency-Key") {
		headers = append(slices.Clone(headers), "Idempotency-Key", rand.Text())
	}
	for deadline := time.Now().Add(harness.Timeout); ; time.Sleep(50 * time.Millisecond) {
		response, err = c.Do(t.Context(), method, path, body, headers...)
		if err != nil || !mustRepeat(response) || time.Now().After(deadline) {
			return response, err
		}
	}
}

// mustRepeat reports whether a request has to be sent again because the database is
// unavailable, or because the attempt before is still in progress.
func mustRepeat(response harness.Response) bool {
	code := flow.ErrorCode(response)
	return code == "unavailable" || code == "idempotency_in_progress"
}

// expect is like do and fails the test unless the response has the status.
func expect(t *testing.T, c *harness.Client, status int, method, path string, body any) harness.Response {
	t.Helper()
	response, err := do(t, c, method, path, body)
	if err != nil || response.Status != status {
		t.Fatalf("%s %s: status %d, want %d (%v)\n%s", method, path, response.Status, status, err, response.Body)
	}
	return response
}

// awaitRun waits until a run has ended.
func awaitRun(t *testing.T, c *harness.Client, id string) run {
	t.Helper()
	var r run
	harness.Eventually(t, "run "+id+" has ended", func() bool {
		r = getRun(t, c, id)
		return r.Status != "running"
	})
	return r
}

// startRuns starts runs on all nodes from several clients and returns their ids.
func (c *cluster) startRuns(key, workflow string, runs, clients int) []string {
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
				response, err := do(c.t, client, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": map[string]any{"n": n}})
				if err != nil || response.Status != 201 {
					c.t.Errorf("start a run: %v %d %s", err, response.Status, response.Body)
					return
				}
				if err := json.Unmarshal(response.Body, &r); err != nil {
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
		c.t.Fatalf("started %d of %d runs", len(ids), runs)
	}
	return ids
}

func ms(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
