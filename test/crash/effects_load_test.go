package crash_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

const (
	tenants = 4
	// clientsPerTenant is how many clients of each workspace start runs.
	clientsPerTenant = 2
	callSteps        = 5
)

// callLoad is a group of clients that start runs with five calls each, in several
// workspaces and on several servers in succession, and records their responses.
type callLoad struct {
	t       *testing.T
	sink    *sink.Sink
	tenants []tenant

	mu     sync.Mutex
	serial int
	// pending has the idempotency keys of starts without a response, by tenant.
	pending  [tenants][]string
	runs     map[string]int    // accepted runs with their tenants
	byKey    map[string]string // runs by idempotency key
	attempts int
	answered int
	deaths   []death
}

// tenant is a workspace with a workflow.
type tenant struct{ key, workflow string }

// death has the steps that were running when a process died, with how often each had
// been called by then.
type death struct{ open map[string]int }

func newCallLoad(t *testing.T, s *harness.Server, target *sink.Sink) *callLoad {
	l := &callLoad{t: t, sink: target, runs: map[string]int{}, byKey: map[string]string{}}
	var steps []map[string]any
	for i := range callSteps {
		steps = append(steps, flow.HTTP(stepID(i), target.URL))
	}
	for range tenants {
		c := flow.NewWorkspace(t, s.Client, "enterprise")
		l.tenants = append(l.tenants, tenant{c.Key, flow.Define(t, c, steps...)})
	}
	return l
}

// work has every client start runs one after the other until the server exits or enough
// is done.
func (l *callLoad) work(s *harness.Server, enough func() bool) {
	var group sync.WaitGroup
	connections := harness.NewClient(s.URL, "")
	defer connections.Close()
	for i := range tenants {
		c := connections.With(l.tenants[i].key)
		for range clientsPerTenant {
			group.Go(func() {
				for !l.t.Failed() && !enough() && l.start(c, i) {
				}
			})
		}
	}
	group.Wait()
}

// catchUp repeats the starts that got no response.
func (l *callLoad) catchUp(s *harness.Server) {
	for i := range tenants {
		c := s.With(l.tenants[i].key)
		for len(l.pending[i]) > 0 && l.start(c, i) {
		}
	}
}

// start starts a run and waits for its end. It returns false if there was no response.
func (l *callLoad) start(c *harness.Client, tenant int) bool {
	key := l.nextKey(tenant)
	response, err := c.DoUntilAvailable(l.t.Context(), "POST", "/v1/workflows/"+l.tenants[tenant].workflow+"/runs", payload(1),
		"Idempotency-Key", key, "Prefer", "wait=10")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if err != nil {
		l.pending[tenant] = append(l.pending[tenant], key)
		return false
	}
	l.answered++
	var run runBody
	if json.Unmarshal(response.Body, &run) != nil || response.Status > 201 || run.ID == "" {
		l.t.Errorf("start returned %d %s", response.Status, response.Body)
		return true
	}
	l.runs[run.ID], l.byKey[key] = tenant, run.ID
	return true
}

// nextKey returns a pending idempotency key, or a new one.
func (l *callLoad) nextKey(tenant int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := l.pending[tenant]; len(open) > 0 {
		l.pending[tenant] = open[1:]
		return open[0]
	}
	l.serial++
	return fmt.Sprintf("order-%d", l.serial)
}

// recordDeath checks the tables after a process died and records its running steps.
func (l *callLoad) recordDeath(dir string) {
	l.t.Helper()
	l.sink.AwaitClosed(l.t)
	db := openCopy(l.t, dir)
	if harness.OnPostgres() {
		// PostgreSQL still executes what the dead process has sent.
		harness.Eventually(l.t, "the sessions of the dead process have ended", func() bool {
			return tables.Number(l.t, db, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'stepmill%'`) == 0
		})
	}
	checkTables(l.t, db, "")
	counted, d := l.sink.Counts(), death{open: map[string]int{}}
	for _, key := range tables.Texts(l.t, db, `SELECT run_id || '/' || path FROM steps WHERE status = 'running'`) {
		d.open[key] = counted[key]
	}
	l.deaths = append(l.deaths, d)
}

// verify checks everything on a healthy server, and then in its tables. It returns how
// many calls were repeated.
func (l *callLoad) verify(s *harness.Server) int {
	l.t.Helper()
	l.catchUp(s)
	l.work(s, l.enough)
	finals := map[string][]byte{}
	for id, tenant := range l.runs {
		c := s.With(l.tenants[tenant].key)
		now := awaitEnd(l.t, c, id)
		if now.Status != succeeded || len(now.Steps) != callSteps {
			l.t.Errorf("INVARIANT: run %s is %s after %d steps: %+v", id, now.Status, len(now.Steps), now.Error)
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
	db := openCopy(l.t, s.Dir)
	checkTables(l.t, db, "")
	if n := tables.Number(l.t, db, "SELECT count(*) FROM runs"); n != len(l.runs) || n != len(l.byKey) {
		l.t.Errorf("INVARIANT: %d runs are in the tables, want %d for the idempotency keys and %d acknowledged", n, len(l.byKey), len(l.runs))
	}
	again := restart(l.t, s, egress)
	for id, was := range finals {
		if now := again.With(l.tenants[l.runs[id]].key).Expect(l.t, 200, "GET", "/v1/runs/"+id, nil).Body; string(now) != string(was) {
			l.t.Errorf("INVARIANT: run %s changed after its end\nwas %s\nis  %s", id, was, now)
		}
	}
	l.t.Logf("%d of %d starts got a response", l.answered, l.attempts)
	return repeated
}

// enough reports whether there were enough runs for a meaningful test.
func (l *callLoad) enough() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs) >= minRuns && l.answered >= minRuns
}

// verifyCalls checks that each step was called once, and at most once more for each death
// during which it was running.
func (l *callLoad) verifyCalls() (repeated int) {
	l.t.Helper()
	counted := l.sink.Counts()
	for id := range l.runs {
		last := -1
		order := l.sink.CallsOf(id)
		for i := range callSteps {
			key := id + "/" + stepID(i)
			most := 1
			for _, d := range l.deaths {
				before, open := d.open[key]
				if open {
					most++
				}
				if open && counted[key] <= before {
					l.t.Errorf("INVARIANT: %s was running at a death and was not called again", key)
				}
			}
			if counted[key] < 1 || counted[key] > most {
				l.t.Errorf("INVARIANT: %s was called %d times, want 1 to %d", key, counted[key], most)
			}
			repeated += counted[key] - 1
			delete(counted, key)
			if first := slices.IndexFunc(order, func(c sink.Call) bool { return c.Key == key }); first < last {
				l.t.Errorf("INVARIANT: %s was called before the step it needs had a result", key)
			}
			for n, c := range order {
				if c.Key == key {
					last = n
				}
			}
		}
	}
	for key := range counted {
		l.t.Errorf("INVARIANT: a call with the key %q belongs to no accepted run", key)
	}
	return repeated
}

// startDoomed starts a server that may die at any moment. If it dies before it is ready,
// it has no client.
func startDoomed(t *testing.T, dir, fail string) *harness.Server {
	t.Helper()
	s := harness.StartProcess(t, harness.Options{Dir: dir, Args: []string{egress}, Failpoint: fail, EmptyDatabase: true})
	if err := s.AwaitReadyLine(); err != nil && !strings.Contains(err.Error(), "exit code -1") {
		t.Fatal(err)
	}
	return s
}

// awaitDeath waits until a failpoint kills a server.
func awaitDeath(t *testing.T, s *harness.Server) {
	t.Helper()
	if exit := s.Wait(t); exit.Code == 0 {
		t.Fatal("the server exited with code 0, want death at a failpoint")
	}
}
