package crash_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

const (
	tenants = 4
	// perTenant is how many clients of a workspace start runs at the same time.
	perTenant = 2
	callSteps = 5
)

// calling are clients that start runs of five calls each, in several workspaces
// and over the lives of several servers, with all that they were told.
type calling struct {
	t       *testing.T
	sink    *sink.Sink
	tenants []tenant

	mu     sync.Mutex
	serial int
	// orders are the keys of starts that were not answered, by tenant.
	orders   [tenants][]string
	runs     map[string]int    // accepted runs and their tenants
	byOrder  map[string]string // the run that an order was answered with
	attempts int
	answered int
	deaths   []death
}

// tenant is a workspace with a workflow.
type tenant struct{ key, workflow string }

// death is what a process left behind: the steps that were open, with how often
// each had been called by then.
type death struct{ open map[string]int }

// workspace makes a workspace and a client for it.
func workspace(t *testing.T, s *harness.Server, plan string) *harness.Client {
	t.Helper()
	body := map[string]any{"name": "tenant", "plan": plan}
	if plan == "enterprise" {
		body["requests_per_minute"] = 1_000_000
	}
	var made struct {
		APIKey string `json:"api_key"`
	}
	s.Expect(t, 201, "POST", "/v1/workspaces", body).Decode(t, &made)
	return s.With(made.APIKey)
}

// define makes an active workflow of steps; settings may be nil.
func define(t *testing.T, c *harness.Client, settings map[string]any, steps ...map[string]any) string {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows", map[string]any{"name": "defined"}).Decode(t, &made)
	patch := map[string]any{"state": "active", "steps": steps}
	if settings != nil {
		patch["settings"] = settings
	}
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+made.ID, patch)
	return made.ID
}

// calls is a step that calls a URL; more are members beside id, uses and with.
func calls(id, url string, more ...any) map[string]any {
	step := map[string]any{"id": id, "uses": "http.request", "with": map[string]any{"url": url, "method": "POST", "body": "${{ trigger.payload }}"}}
	for i := 0; i+1 < len(more); i += 2 {
		step[more[i].(string)] = more[i+1]
	}
	return step
}

func newCalling(t *testing.T, s *harness.Server, outside *sink.Sink) *calling {
	l := &calling{t: t, sink: outside, runs: map[string]int{}, byOrder: map[string]string{}}
	var steps []map[string]any
	for i := range callSteps {
		steps = append(steps, calls(stepID(i), outside.URL))
	}
	for range tenants {
		c := workspace(t, s, "enterprise")
		l.tenants = append(l.tenants, tenant{c.Key, define(t, c, nil, steps...)})
	}
	return l
}

// work lets every client start runs, one after the other, until the server is
// gone or enough is done.
func (l *calling) work(s *harness.Server, enough func() bool) {
	var group sync.WaitGroup
	connections := harness.NewClient(s.URL, "")
	defer connections.Close()
	for i := range tenants {
		c := connections.With(l.tenants[i].key)
		for range perTenant {
			group.Go(func() {
				for !l.t.Failed() && !enough() && l.start(c, i) {
				}
			})
		}
	}
	group.Wait()
}

// catchUp repeats the orders that were not answered.
func (l *calling) catchUp(s *harness.Server) {
	for i := range tenants {
		c := s.With(l.tenants[i].key)
		for len(l.orders[i]) > 0 && l.start(c, i) {
		}
	}
}

// start starts a run and waits for its end. It answers false when there was no
// answer.
func (l *calling) start(c *harness.Client, tenant int) bool {
	order := l.order(tenant)
	answer, err := c.Do(l.t.Context(), "POST", "/v1/workflows/"+l.tenants[tenant].workflow+"/runs", payload(1),
		"Idempotency-Key", order, "Prefer", "wait=10")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if err != nil {
		l.orders[tenant] = append(l.orders[tenant], order)
		return false
	}
	l.answered++
	var run runBody
	if json.Unmarshal(answer.Body, &run) != nil || answer.Status > 201 || run.ID == "" {
		l.t.Errorf("a start was answered with %d %s", answer.Status, answer.Body)
		return true
	}
	l.runs[run.ID], l.byOrder[order] = tenant, run.ID
	return true
}

// order takes one that was not answered, or makes a new one.
func (l *calling) order(tenant int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := l.orders[tenant]; len(open) > 0 {
		l.orders[tenant] = open[1:]
		return open[0]
	}
	l.serial++
	return fmt.Sprintf("order-%d", l.serial)
}

// bury looks at what a process that is gone has left.
func (l *calling) bury(dir string) {
	l.t.Helper()
	l.sink.Quiet(l.t)
	db := checkFile(l.t, dir)
	checkTables(l.t, db, "")
	counted, d := l.sink.Counted(), death{open: map[string]int{}}
	for _, key := range openSteps(l.t, db) {
		d.open[key] = counted[key]
	}
	l.deaths = append(l.deaths, d)
}

func openSteps(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT run_id || '/' || path FROM steps WHERE status = 'running'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		out = append(out, key)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// verify holds everything against a healthy server, and then against its
// tables. It answers how many calls were repeated.
func (l *calling) verify(s *harness.Server) int {
	l.t.Helper()
	l.catchUp(s)
	finals := map[string][]byte{}
	for id, tenant := range l.runs {
		c := s.With(l.tenants[tenant].key)
		now := awaitEnd(l.t, c, id, settleTime)
		if now.Status != succeeded || len(now.Steps) != callSteps {
			l.t.Errorf("run %s is %s after %d steps: %+v", id, now.Status, len(now.Steps), now.Error)
		}
		for _, step := range now.Steps {
			if step.Attempt != 1 || step.Status != succeeded {
				l.t.Errorf("run %s: step %s is %s, attempt %d", id, step.StepID, step.Status, step.Attempt)
			}
		}
		finals[id] = c.Expect(l.t, 200, "GET", "/v1/runs/"+id, nil).Body
	}
	repeated := l.verifyCalls()
	s.Stop(l.t)
	db := checkFile(l.t, s.Dir)
	checkTables(l.t, db, "")
	if n := number(l.t, db, "SELECT count(*) FROM runs"); n != len(l.runs) || n != len(l.byOrder) {
		l.t.Errorf("%d runs of %d orders are in the tables, %d were acknowledged", n, len(l.byOrder), len(l.runs))
	}
	again := restart(l.t, s, egress)
	for id, was := range finals {
		if now := again.With(l.tenants[l.runs[id]].key).Expect(l.t, 200, "GET", "/v1/runs/"+id, nil).Body; string(now) != string(was) {
			l.t.Errorf("run %s changed after its end\nwas %s\nis  %s", id, was, now)
		}
	}
	l.verifyEnough()
	return repeated
}

// verifyEnough refuses a test in which too little happened: starts and runs
// count alike.
func (l *calling) verifyEnough() {
	l.t.Helper()
	good, all := l.answered+len(l.runs), l.attempts+len(l.runs)
	if good*100 < all*80 || len(l.runs) < 50 {
		l.t.Errorf("%d of %d starts were answered, %d runs: too little for the test to mean anything", l.answered, l.attempts, len(l.runs))
	}
}

// verifyCalls holds the calls against the deaths: a step is called once, and
// once more for each death that left it open.
func (l *calling) verifyCalls() (repeated int) {
	l.t.Helper()
	counted := l.sink.Counted()
	for id := range l.runs {
		last := -1
		order := l.sink.Of(id)
		for i := range callSteps {
			key := id + "/" + stepID(i)
			most := 1
			for _, d := range l.deaths {
				before, open := d.open[key]
				if open {
					most++
				}
				if open && counted[key] <= before {
					l.t.Errorf("%s was under way at a death and not called again", key)
				}
			}
			if counted[key] < 1 || counted[key] > most {
				l.t.Errorf("%s was called %d times, want 1 to %d", key, counted[key], most)
			}
			repeated += counted[key] - 1
			delete(counted, key)
			if first := slices.IndexFunc(order, func(c sink.Call) bool { return c.Key == key }); first < last {
				l.t.Errorf("%s was called before the step it needs had its result", key)
			}
			for n, c := range order {
				if c.Key == key {
					last = n
				}
			}
		}
	}
	for key := range counted {
		l.t.Errorf("a call with the key %q belongs to no accepted run", key)
	}
	return repeated
}

// spawn starts a server that may die at any moment, also before it is ready:
// then it has no client.
func spawn(t *testing.T, dir, fail string) *harness.Server {
	t.Helper()
	s, err := harness.Spawn(harness.Options{Dir: dir, Args: []string{egress}, Fail: fail})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	if err := s.AwaitReadyLine(); err != nil && !strings.Contains(err.Error(), "exit code -1") {
		t.Fatal(err)
	}
	return s
}

// gone tells whether a server has ended.
func gone(s *harness.Server) bool {
	select {
	case <-s.Gone():
		return true
	default:
		return false
	}
}

// awaitDeath waits for a server to die by itself.
func awaitDeath(t *testing.T, s *harness.Server) {
	t.Helper()
	if exit := s.Wait(t, 30*time.Second); exit.Code == 0 {
		t.Fatal("the server ended well; it should have died")
	}
}
