package crash_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// migration is an installation that moves to another database while it has unfinished
// runs.
type migration struct {
	t        *testing.T
	target   *sink.Sink
	key      string // of the first workspace
	tenant   string // of one with a concurrency limit of five
	runs     []movedRun
	children int // child runs
}

// movedRun is an acknowledged run.
type movedRun struct {
	id, key string
	until   *time.Time // the time it waits for, if any
	asks    bool       // it waits for an approval
}

// startRun starts a run.
func (v *migration) startRun(s *harness.Server, key, workflow string) movedRun {
	v.t.Helper()
	r := movedRun{id: startRun(v.t, s.With(key), workflow, int64(len(v.runs))).ID, key: key}
	v.runs = append(v.runs, r)
	return r
}

// startHanging starts runs that hang in a step and others that are queued behind them. It
// returns when as many hang as the limits allow.
func (v *migration) startHanging(target *sink.Sink, servers ...*harness.Server) {
	v.t.Helper()
	c := servers[0]
	steps := []map[string]any{flow.HTTP("before", target.URL), flow.HTTP("hang", target.URL+"?hang"), flow.HTTP("after", target.URL)}
	free := flow.Define(v.t, c.Client, steps...)
	single := flow.DefineWith(v.t, c.Client, map[string]any{"concurrency": map[string]any{"key": "one", "limit": 1}}, steps...)
	parent := flow.Define(v.t, c.Client, flow.Step("below", "flow.run", fmt.Sprintf(`{"workflow_id":%q}`, free)), flow.HTTP("after", target.URL))
	theirs := flow.Define(v.t, c.With(v.tenant), steps...)
	for i := range 8 {
		s := servers[i%len(servers)]
		v.startRun(s, v.tenant, theirs) // five execute
		if i < 6 {
			v.startRun(s, v.key, free)
		}
		if i < 3 {
			v.startRun(s, v.key, single) // one executes
		}
		if i < 2 {
			v.startRun(s, v.key, parent)
			v.children++
		}
	}
	target.Await(v.t, "the calls are in flight", 5+6+1+2, func(call *sink.Call) bool {
		return strings.HasSuffix(call.Key, "/hang") && call.Ended.IsZero()
	})
}

// startWaiting starts runs that wait for a duration.
func (v *migration) startWaiting(s *harness.Server, count int, length time.Duration) {
	v.t.Helper()
	id := flow.Define(v.t, s.Client, flow.HTTP("before", v.target.URL), flow.Step("wait", "flow.wait", fmt.Sprintf(`{"for":%q}`, length)), flow.HTTP("after", v.target.URL))
	for range count {
		v.startRun(s, v.key, id)
		r := &v.runs[len(v.runs)-1]
		harness.Eventually(v.t, "the run waits", func() bool {
			if now := getRun(v.t, s.Client, r.id); now.WaitingFor != nil {
				r.until = now.WaitingFor.Until
			}
			return r.until != nil
		})
	}
}

// awaitRuns waits until all runs except the skipped ones have ended, and checks them.
func (v *migration) awaitRuns(s *harness.Server, skip func(movedRun) bool) {
	v.t.Helper()
	for _, r := range v.runs {
		if skip(r) {
			continue
		}
		if r.asks && getRun(v.t, s.With(r.key), r.id).Status == running {
			s.With(r.key).Expect(v.t, 200, "POST", "/v1/runs/"+r.id+"/steps/ask/resume", map[string]any{"approved": true})
		}
		end := awaitEnd(v.t, s.With(r.key), r.id)
		if end.Status != succeeded {
			v.t.Errorf("run %s is %s: %+v", r.id, end.Status, end)
		}
		if r.until != nil && end.Steps[1].FinishedAt.Before(*r.until) {
			v.t.Errorf("run %s waited until %v, want until %v", r.id, end.Steps[1].FinishedAt, r.until)
		}
	}
}

// checkCalls checks that each step was called once, and again if its call was in flight
// when a process was killed.
func (v *migration) checkCalls(target *sink.Sink, interrupted int) {
	v.t.Helper()
	want := map[string]int{}
	dropped := 0
	for _, call := range target.Calls(func(*sink.Call) bool { return true }) {
		if want[call.Key] = max(want[call.Key], 1); call.Dropped {
			want[call.Key]++
			dropped++
		}
	}
	if diff := cmp.Diff(want, target.Counts()); diff != "" {
		v.t.Errorf("calls (-want +got):\n%s", diff)
	}
	if dropped != interrupted {
		v.t.Errorf("%d calls were dropped, want %d", dropped, interrupted)
	}
}

// compare compares the tables before and after a move.
func (v *migration) compare(was, is *sql.DB) {
	v.t.Helper()
	for _, query := range []string{
		`SELECT id || ' ' || workspace_id || ' ' || workflow_id || ' ' || status FROM runs ORDER BY id`,
		`SELECT run_id FROM run_queue ORDER BY run_id`,
		`SELECT run_id || ' ' || path || ' ' || status FROM steps ORDER BY run_id, path`,
		`SELECT id || ' ' || type FROM events ORDER BY id`,
		`SELECT workflow_id || ' ' || version FROM workflow_versions ORDER BY workflow_id, version`,
	} {
		before, after := tables.Texts(v.t, was, query), tables.Texts(v.t, is, query)
		if diff := cmp.Diff(before, after); diff != "" || len(before) == 0 {
			v.t.Errorf("%s: %d rows (-before +after):\n%s", query, len(before), diff)
		}
	}
	checkTables(v.t, is, "")
}

// checkRuns checks that the tables have exactly the acknowledged runs.
func (v *migration) checkRuns(db *sql.DB) {
	v.t.Helper()
	if n := tables.Number(v.t, db, `SELECT count(*) FROM runs`); n != len(v.runs)+v.children {
		v.t.Errorf("%d runs are stored, want %d", n, len(v.runs)+v.children)
	}
	if n := tables.Number(v.t, db, `SELECT count(*) FROM run_queue`) + tables.Number(v.t, db, `SELECT count(*) FROM runs WHERE status <> 'succeeded'`); n != 0 {
		v.t.Errorf("%d runs have not succeeded", n)
	}
}

// nodeLease is how long killed nodes block an export.
const nodeLease = 4 * time.Second

// node starts a node on a database. The directory holds the master key.
func (v *migration) node(dir, url string) *harness.Server {
	v.t.Helper()
	s := harness.StartWith(v.t, harness.Options{Dir: dir, Database: url, Args: []string{egress, "--node-lease", nodeLease.String()}})
	s.Key = v.key
	return s
}

// Nodes on PostgreSQL are killed while they execute runs. Once their leases have expired,
// the installation moves to a directory, where everything continues. Then that server is
// killed, the installation moves back, and everything continues on new nodes.
func TestMoveFromPostgresAndBack(t *testing.T) {
	harness.EmbeddedOnly(t, "it moves from PostgreSQL to a directory and back")
	lane.LongOnly(t) // TestMoveToPostgresAndBack moves both ways; this one also waits for leases to expire
	t.Parallel()
	random := harness.Random(harness.Seed(t), 0)
	server, err := postgres.Durable()
	if err != nil {
		t.Fatal(err)
	}
	url, shared := server.NewDatabase(t), t.TempDir()
	if err := harness.WriteMasterKey(filepath.Join(shared, "master.key")); err != nil {
		t.Fatal(err)
	}
	v := &migration{t: t, target: sink.New(t)}
	a := v.node(shared, url)
	v.key = a.AwaitKey(t)
	a.Key = v.key
	b := v.node(shared, url)
	v.tenant = flow.NewWorkspace(t, a.Client, "free").Key

	db := tables.OpenPostgres(t, url)
	if _, err := db.ExecContext(t.Context(), `UPDATE workspaces SET requests_per_minute = 1000000`); err != nil {
		t.Fatal(err)
	}

	quick := flow.Define(t, a.Client, flow.HTTP("only", v.target.URL))
	for range 20 {
		v.startRun(a, v.key, quick)
	}
	v.awaitRuns(b, func(movedRun) bool { return false })
	asks := flow.Define(t, a.Client, flow.HTTP("before", v.target.URL), flow.Step("ask", "flow.approval", `{"message":"continue?"}`), flow.HTTP("after", v.target.URL))
	for _, s := range []*harness.Server{a, b} {
		r := v.startRun(s, v.key, asks)
		v.runs[len(v.runs)-1].asks = true
		harness.Eventually(t, "the run waits for its approval", func() bool { return getRun(t, s.Client, r.id).WaitingFor != nil })
	}
	later := v.runs[len(v.runs)-1]
	v.startWaiting(a, 3, 20*time.Second) // River schedules these
	v.startWaiting(b, 3, 8*time.Second)  // a node keeps these in memory
	v.startHanging(v.target, a, b)
	v.startWaiting(b, 3, 2*time.Second) // no node runs when these are due
	for what, query := range map[string]string{
		"executing nodes":          `SELECT count(DISTINCT node) = 2 AND count(*) = 14 FROM run_queue WHERE executing IS NOT NULL`,
		"runs without a free slot": `SELECT count(*) = 3 FROM run_queue WHERE parked`,
		"runs without admission":   `SELECT count(*) = 2 FROM run_queue WHERE NOT turn`,
		"jobs":                     `SELECT count(*) >= 3 FROM stepmill_river.river_job WHERE state <> 'completed'`,
	} {
		if !queryBool(t, db, query) {
			t.Errorf("unexpected number of %s", what)
		}
	}
	nodes := []*harness.Server{a, b}
	random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, node := range nodes {
		node.Kill(t)
	}
	v.target.AwaitClosed(t)

	file := filepath.Join(t.TempDir(), "export.gz")
	out := []string{"export", file, "--data-dir", shared, "--database-url", url}
	rejections := 0
	harness.Eventually(t, "the leases expire and the export succeeds", func() bool {
		r := harness.Run(t, nil, out...)
		if r.Code != 0 && !strings.Contains(r.Stderr, "nodes use the database") {
			t.Fatalf("export while nodes have leases: exit code %d: %s", r.Code, r.Stderr)
		}
		rejections += min(r.Code, 1)
		return r.Code == 0
	})
	if rejections == 0 {
		t.Log("inconclusive: no export was tried before the leases expired")
	}
	home := newDirWithKey(t, shared)
	importInto(t, file, home)
	v.compare(db, openCopy(t, home))

	v.target.Release()
	s := harness.Start(t, home, egress)
	s.Key = v.key
	long := func(r movedRun) bool { return r.id == later.id || r.until != nil && time.Until(*r.until) > 0 }
	v.awaitRuns(s, long)
	v.moveBack(s, server, later)
}

// moveBack kills the server of the directory, moves the installation to PostgreSQL and
// waits until everything has ended there.
func (v *migration) moveBack(s *harness.Server, server *postgres.Server, later movedRun) {
	v.t.Helper()
	t := v.t
	again := sink.New(t)
	v.startHanging(again, s)
	if status := getRun(t, s.Client, later.id).Status; status != running {
		t.Errorf("a run that waits for an approval is %s, want running", status)
	}
	s.Kill(t)
	again.AwaitClosed(t)
	file := export(t, s.Dir)
	url, dir := server.NewDatabase(t), newDirWithKey(t, s.Dir)
	if r := harness.Run(t, nil, "import", file, "--data-dir", dir, "--database-url", url); r.Code != 0 {
		t.Fatalf("import: exit code %d: %s", r.Code, r.Stderr)
	}
	db := tables.OpenPostgres(t, url)
	v.compare(openCopy(t, s.Dir), db)
	again.Release()
	a := v.node(dir, url)
	b := v.node(dir, url)
	v.awaitRuns(a, func(movedRun) bool { return false })
	harness.Eventually(t, "every run has ended", func() bool { return tables.Number(t, db, `SELECT count(*) FROM run_queue`) == 0 })
	t.Logf("%d runs and %d child runs", len(v.runs), v.children)
	v.checkRuns(db)
	v.checkCalls(v.target, 14)
	v.checkCalls(again, 14)
	tables.CheckShared(t, db)
	a.Stop(t)
	b.Stop(t)
}

func queryBool(t *testing.T, db *sql.DB, query string) (is bool) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&is); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return is
}
