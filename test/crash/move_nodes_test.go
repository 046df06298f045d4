package crash_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
	"github.com/stepmill/stepmill/test/sink"
)

// travel is an installation that moves while its runs are under way, with all of
// these.
type travel struct {
	t       *testing.T
	outside *sink.Sink
	key     string // of the first workspace
	tenant  string // of one that may have five runs under way
	runs    []traveller
	below   int // runs that others started
}

// traveller is a run that was acknowledged.
type traveller struct {
	id, key string
	until   *time.Time // what it waits for, if that is a time
	asks    bool       // it goes on when it is answered
}

// begin starts a run.
func (v *travel) begin(s *harness.Server, key, workflow string) traveller {
	v.t.Helper()
	r := traveller{id: startRun(v.t, s.With(key), workflow, int64(len(v.runs))).ID, key: key}
	v.runs = append(v.runs, r)
	return r
}

// strand starts runs on servers that come nowhere: some hang in a step, others
// have to wait until these have ended. It returns when as many hang as can.
func (v *travel) strand(outside *sink.Sink, servers ...*harness.Server) {
	v.t.Helper()
	c := servers[0]
	steps := []map[string]any{calls("before", outside.URL), calls("hang", outside.URL+"?hang"), calls("after", outside.URL)}
	free := define(v.t, c.Client, nil, steps...)
	single := define(v.t, c.Client, map[string]any{"concurrency": map[string]any{"key": "one", "limit": 1}}, steps...)
	above := define(v.t, c.Client, nil, doing("below", "flow.run", fmt.Sprintf(`{"workflow_id":%q}`, free)), calls("after", outside.URL))
	theirs := define(v.t, c.With(v.tenant), nil, steps...)
	for i := range 8 {
		s := servers[i%len(servers)]
		v.begin(s, v.tenant, theirs) // five of them
		if i < 6 {
			v.begin(s, v.key, free)
		}
		if i < 3 {
			v.begin(s, v.key, single) // one of them
		}
		if i < 2 {
			v.begin(s, v.key, above)
			v.below++
		}
	}
	outside.Await(v.t, "steps are under way", 5+6+1+2, func(call *sink.Call) bool {
		return strings.HasSuffix(call.Key, "/hang") && call.Ended.IsZero()
	})
}

// await starts runs that wait for a time.
func (v *travel) await(s *harness.Server, count int, length time.Duration) {
	v.t.Helper()
	id := define(v.t, s.Client, nil, calls("before", v.outside.URL), doing("wait", "flow.wait", fmt.Sprintf(`{"for":%q}`, length)), calls("after", v.outside.URL))
	for range count {
		v.begin(s, v.key, id)
		r := &v.runs[len(v.runs)-1]
		sink.Within(v.t, 10*time.Second, "a run waits", func() bool {
			if now := getRun(v.t, s.Client, r.id); now.WaitingFor != nil {
				r.until = now.WaitingFor.Until
			}
			return r.until != nil
		})
	}
}

// settle waits until the runs have ended that are not left for later, and holds
// them to what was promised.
func (v *travel) settle(s *harness.Server, left func(traveller) bool) {
	v.t.Helper()
	for _, r := range v.runs {
		if left(r) {
			continue
		}
		if r.asks && getRun(v.t, s.With(r.key), r.id).Status == running {
			s.With(r.key).Expect(v.t, 200, "POST", "/v1/runs/"+r.id+"/steps/ask/resume", map[string]any{"approved": true})
		}
		soon := 20 * time.Second
		if r.until != nil {
			soon += max(0, time.Until(*r.until))
		}
		end := awaitEnd(v.t, s.With(r.key), r.id, soon)
		if end.Status != succeeded {
			v.t.Errorf("run %s is %s: %+v", r.id, end.Status, end)
		}
		if r.until != nil && end.Steps[1].FinishedAt.Before(*r.until) {
			v.t.Errorf("run %s waited until %v, not until %v", r.id, end.Steps[1].FinishedAt, r.until)
		}
	}
}

// called checks that each step was called once, and again if it was under way
// when a process was killed.
func (v *travel) called(outside *sink.Sink, struck int) {
	v.t.Helper()
	want := map[string]int{}
	dropped := 0
	for _, call := range outside.Seen(func(*sink.Call) bool { return true }) {
		if want[call.Key] = max(want[call.Key], 1); call.Dropped {
			want[call.Key]++
			dropped++
		}
	}
	if diff := cmp.Diff(want, outside.Counted()); diff != "" {
		v.t.Errorf("calls (-due +made):\n%s", diff)
	}
	if dropped != struck {
		v.t.Errorf("%d calls were cut short, want %d", dropped, struck)
	}
}

// same compares what was moved, before and after.
func (v *travel) same(was, is *sql.DB) {
	v.t.Helper()
	for _, query := range []string{
		`SELECT id || ' ' || workspace_id || ' ' || workflow_id || ' ' || status FROM runs ORDER BY id`,
		`SELECT run_id FROM run_queue ORDER BY run_id`,
		`SELECT run_id || ' ' || path || ' ' || status FROM steps ORDER BY run_id, path`,
		`SELECT id || ' ' || type FROM events ORDER BY id`,
		`SELECT workflow_id || ' ' || version FROM workflow_versions ORDER BY workflow_id, version`,
	} {
		before, after := texts(v.t, was, query), texts(v.t, is, query)
		if diff := cmp.Diff(before, after); diff != "" || len(before) == 0 {
			v.t.Errorf("%s: %d rows (-before +after):\n%s", query, len(before), diff)
		}
	}
	checkTables(v.t, is, "")
}

// counted checks that there are no runs but those that were acknowledged.
func (v *travel) counted(db *sql.DB) {
	v.t.Helper()
	if n := number(v.t, db, `SELECT count(*) FROM runs`); n != len(v.runs)+v.below {
		v.t.Errorf("%d runs are stored, want %d", n, len(v.runs)+v.below)
	}
	if n := number(v.t, db, `SELECT count(*) FROM run_queue`) + number(v.t, db, `SELECT count(*) FROM runs WHERE status <> 'succeeded'`); n != 0 {
		v.t.Errorf("%d runs have not succeeded", n)
	}
}

// nodeLease is how long nodes that were killed keep an export waiting.
const nodeLease = 4 * time.Second

// node starts a node on a database; the directory has the master key.
func (v *travel) node(dir, url string) *harness.Server {
	v.t.Helper()
	s := harness.StartWith(v.t, harness.Options{Dir: dir, Database: url, Args: []string{egress, "--node-lease", nodeLease.String()}})
	s.Key = v.key
	return s
}

func openURL(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Nodes on PostgreSQL are killed while they execute runs. What they leave moves
// to a directory as soon as they count as gone, and all of it goes on there. So
// it does on other nodes when that server is killed, and it moves back.
func TestMoveFromNodesAndBack(t *testing.T) {
	harness.EmbeddedOnly(t, "it moves from PostgreSQL to a directory and back")
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
	v := &travel{t: t, outside: sink.New(t)}
	a := v.node(shared, url)
	v.key = a.AwaitKey(t)
	a.Key = v.key
	b := v.node(shared, url)
	v.tenant = workspace(t, a, "free").Key

	tables := openURL(t, url)
	if _, err := tables.ExecContext(t.Context(), `UPDATE workspaces SET requests_per_minute = 1000000`); err != nil {
		t.Fatal(err)
	}

	quick := define(t, a.Client, nil, calls("only", v.outside.URL))
	for range 20 {
		v.begin(a, v.key, quick)
	}
	v.settle(b, func(traveller) bool { return false })
	asks := define(t, a.Client, nil, calls("before", v.outside.URL), doing("ask", "flow.approval", `{"message":"go on?"}`), calls("after", v.outside.URL))
	for _, s := range []*harness.Server{a, b} {
		r := v.begin(s, v.key, asks)
		v.runs[len(v.runs)-1].asks = true
		sink.Within(t, 10*time.Second, "a run asks", func() bool { return getRun(t, s.Client, r.id).WaitingFor != nil })
	}
	later := v.runs[len(v.runs)-1]
	v.await(a, 3, 20*time.Second) // River has their time
	v.await(b, 3, 8*time.Second)  // a node has it
	v.strand(v.outside, a, b)
	v.await(b, 3, 2*time.Second) // nobody has it when it comes
	for what, query := range map[string]string{
		"nodes at work":                `SELECT count(DISTINCT node) = 2 AND count(*) = 14 FROM run_queue WHERE executing IS NOT NULL`,
		"runs without a free slot":     `SELECT count(*) = 3 FROM run_queue WHERE parked`,
		"runs behind one of their own": `SELECT count(*) = 2 FROM run_queue WHERE NOT turn`,
		"jobs":                         `SELECT count(*) >= 3 FROM stepmill_river.river_job WHERE state <> 'completed'`,
	} {
		if !truth(t, tables, query) {
			t.Errorf("there are no %s as there should be", what)
		}
	}
	nodes := []*harness.Server{a, b}
	random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, node := range nodes {
		node.Kill(t)
	}
	v.outside.Quiet(t)

	file := filepath.Join(t.TempDir(), "export.gz")
	out := []string{"export", file, "--data-dir", shared, "--database-url", url}
	if r := harness.Run(t, nil, out...); r.Code == 0 || !strings.Contains(r.Stderr, "nodes use the database") {
		t.Errorf("an export while nodes count as alive: exit code %d: %s", r.Code, r.Stderr)
	}
	sink.Within(t, 10*nodeLease, "the nodes count as gone and the export is made", func() bool { return harness.Run(t, nil, out...).Code == 0 })
	home := newHome(t, shared)
	imported(t, file, home)
	v.same(tables, checkFile(t, home))

	v.outside.Release()
	s := harness.Start(t, home, egress)
	s.Key = v.key
	long := func(r traveller) bool { return r.id == later.id || r.until != nil && time.Until(*r.until) > 0 }
	v.settle(s, long)
	v.back(s, server, later)
}

// back moves to PostgreSQL again what a server in a directory has left that is
// killed, and has everything come to its end there.
func (v *travel) back(s *harness.Server, server *postgres.Server, later traveller) {
	v.t.Helper()
	t := v.t
	again := sink.New(t)
	v.strand(again, s)
	if status := getRun(t, s.Client, later.id).Status; status != running {
		t.Errorf("a run that nobody has answered is %s", status)
	}
	s.Kill(t)
	again.Quiet(t)
	file := export(t, s.Dir)
	url, dir := server.NewDatabase(t), newHome(t, s.Dir)
	if r := harness.Run(t, nil, "import", file, "--data-dir", dir, "--database-url", url); r.Code != 0 {
		t.Fatalf("import: exit code %d: %s", r.Code, r.Stderr)
	}
	tables := openURL(t, url)
	v.same(checkFile(t, s.Dir), tables)
	again.Release()
	a := v.node(dir, url)
	b := v.node(dir, url)
	v.settle(a, func(traveller) bool { return false })
	sink.Within(t, settleTime, "every run has ended", func() bool { return number(t, tables, `SELECT count(*) FROM run_queue`) == 0 })
	t.Logf("%d runs, and %d below them", len(v.runs), v.below)
	v.counted(tables)
	v.called(v.outside, 14)
	v.called(again, 14)
	checkTables(t, tables, "")
	for rule, query := range sharedInvariants {
		if got := texts(t, tables, query); len(got) != 0 {
			t.Errorf("%s; not so: %s", rule, strings.Join(got, ", "))
		}
	}
	a.Stop(t)
	b.Stop(t)
}

func truth(t *testing.T, db *sql.DB, query string) (is bool) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&is); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return is
}
