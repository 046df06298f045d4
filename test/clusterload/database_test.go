package clusterload_test

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/faultproxy"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// mixedWorkflow makes a workflow with calls, a wait, a child run, a script and a
// loop. It returns its id and the number of calls of a run.
func mixedWorkflow(t *testing.T, c *harness.Client, target *sink.Sink) (workflow string, calls int) {
	t.Helper()
	child := flow.Define(t, c, flow.HTTP("call", target.URL+"/x"), flow.Wait("wait", "100ms"))
	return flow.Define(t, c, flow.HTTP("one", target.URL+"/x"),
		map[string]any{"id": "child", "uses": "flow.run", "with": map[string]any{"workflow_id": child}},
		map[string]any{"id": "script", "uses": "code.js", "with": map[string]any{"code": "return 1"}},
		map[string]any{"id": "loop", "foreach": "${{ [1, 2] }}", "steps": []any{flow.HTTP("in", target.URL+"/x")}},
		flow.HTTP("two", target.URL+"/x")), 5
}

// Nodes reach the database through a transaction pooler. Everything works, and no
// session state is left in a pooled connection.
func TestTransactionPooling(t *testing.T) {
	t.Parallel()
	for name, listening := range map[string]bool{"notifications": true, "polling": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Seed(t)
			runs := lane.Pick(30, 300)
			target := sink.New(t)
			c := startPooled(t, 2, listening)
			id, calls := mixedWorkflow(t, c.nodes[0].Client, target)
			stop, heldLocks := make(chan struct{}), 0
			var watch sync.WaitGroup
			watch.Go(func() {
				var before []string
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					// A single query may run between the end of a transaction and
					// the release of its locks. Two that find the same session
					// idle since the same moment cannot.
					now := c.texts(`SELECT a.pid || ' ' || a.state_change FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
						WHERE l.locktype = 'advisory' AND a.datname = current_database() AND a.state = 'idle'`)
					for _, session := range now {
						if slices.Contains(before, session) {
							heldLocks++
						}
					}
					before = now
				}
			})
			c.startRuns(c.adminKey, id, runs, 6)
			c.awaitIdle()
			close(stop)
			watch.Wait()
			if heldLocks != 0 {
				t.Errorf("%d times a lock was held after its transaction", heldLocks)
			}
			if n := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); n != 2*runs {
				t.Errorf("%d runs succeeded, want %d", n, 2*runs)
			}
			if n := len(target.Counts()); n != calls*runs {
				t.Errorf("%d calls were made, want %d", n, calls*runs)
			}
			checkPooledConnections(t, c)
		})
	}
}

// checkPooledConnections checks that nodes left no session state in the connections
// of a pooler.
func checkPooledConnections(t *testing.T, c *cluster) {
	t.Helper()
	for range 20 {
		conn, err := pgx.Connect(t.Context(), c.nodeURL+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
			var value string
			if err := conn.QueryRow(t.Context(), "SHOW "+name).Scan(&value); err != nil || value != "0" {
				t.Errorf("%s is %q (%v), want 0", name, value, err)
			}
		}
		var prepared int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements").Scan(&prepared); err != nil || prepared != 0 {
			t.Errorf("%d statements are prepared (%v), want 0", prepared, err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The connections on which nodes listen are cut again and again. The nodes poll for
// what they missed, and nothing is lost.
func TestLostListenConnections(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	target := sink.New(t)
	c := newInstalledCluster(t)
	// Only the connections that listen lead through the proxy.
	at, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.Start(t, faultproxy.Options{Target: at.Host})
	at.Host = proxy.Addr()
	for range 2 {
		c.addNode("--database-listen-url=" + at.String())
	}
	id, _ := mixedWorkflow(t, c.nodes[0].Client, target)
	hangs := flow.Define(t, c.nodes[0].Client, flow.HTTP("hang", target.URL+"/hang?hang"))
	var (
		stop    = make(chan struct{})
		cutting sync.WaitGroup
	)
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
				proxy.Cut()
			}
		}
	})
	runs, cuts := lane.Pick(8, 30), lane.Pick(5, 20)
	for i := 0; i < runs || proxy.Counts().Cut < cuts; i++ {
		r := startRun(t, c.nodes[i%2].Client, id).ID
		if end := awaitRun(t, c.nodes[(i+1)%2].Client, r); end.Status != "succeeded" {
			t.Errorf("run %s is %s, want succeeded", r, end.Status)
		}
		if i%6 != 0 {
			continue
		}
		r = startRun(t, c.nodes[0].Client, hangs).ID
		harness.Eventually(t, "the call is in flight", func() bool { return len(target.CallsOf(r)) > 0 })
		expect(t, c.nodes[1].Client, 200, "POST", "/v1/runs/"+r+"/cancel", nil)
		harness.Eventually(t, "the call of a cancelled run is dropped", func() bool { return target.Dropped(r) })
	}
	close(stop)
	cutting.Wait()
	t.Logf("%d connections were cut", proxy.Counts().Cut)
	c.awaitIdle()
}

// An open transaction keeps vacuum from removing dead rows. Runs are executed all
// the same, and every node exports the age of the transaction.
func TestOldTransactionDoesNotBlockRuns(t *testing.T) {
	lane.LongOnly(t)
	harness.Seed(t)
	const runs = 1500
	c := startCluster(t, 2, "--metrics-listen=127.0.0.1:0")
	var metrics []*harness.Client
	for _, node := range c.nodes {
		metrics = append(metrics, node.Metrics(t))
	}
	key := c.newTenant("enterprise")
	id := flow.Define(t, c.nodes[0].With(key), flow.Set("one", 1), flow.Set("two", 1), flow.Set("three", 1))
	conn, err := pgx.Connect(t.Context(), c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	opened := time.Now()
	if _, err := conn.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM run_queue`); err != nil {
		t.Fatal(err)
	}
	c.startRuns(key, id, runs, 8)
	c.awaitIdle()
	if n := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); n != runs {
		t.Errorf("%d of %d runs succeeded", n, runs)
	}
	t.Logf("%d runs left %d dead rows in the queue", runs, c.number(`SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'run_queue'`))

	loaded := time.Since(opened)
	for _, shown := range metrics {
		harness.Eventually(t, "a node exports the age of the transaction", func() bool { return oldestTransaction(t, shown) >= loaded })
		if age, most := oldestTransaction(t, shown), time.Since(opened); age > most {
			t.Errorf("the oldest transaction is %v old by the metrics, want at most %v", age, most)
		}
	}
	if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the transaction no longer counts", func() bool { return oldestTransaction(t, metrics[0]) < loaded })
}

// oldestTransaction returns the age of the oldest transaction by the metrics of a
// node.
func oldestTransaction(t *testing.T, metrics *harness.Client) time.Duration {
	t.Helper()
	text := expect(t, metrics, 200, "GET", "/metrics", nil).Body
	match := regexp.MustCompile(`(?m)^stepmill_postgres_oldest_transaction_seconds (\S+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("the metric is missing:\n%s", text)
	}
	seconds, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}
