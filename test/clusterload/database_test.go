package clusterload_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/postgres"
)

// everything is a mix of what runs do: calls, waits, answers of runs below,
// scripts. It answers with the workflow to start and its number of calls.
func everything(t *testing.T, c *harness.Client, outside *sink) (workflow string, calling int) {
	t.Helper()
	child := define(t, c, calls("call", outside.URL+"/x"), map[string]any{"id": "wait", "uses": "flow.wait", "with": map[string]any{"for": "100ms"}})
	return define(t, c, calls("one", outside.URL+"/x"),
		map[string]any{"id": "below", "uses": "flow.run", "with": map[string]any{"workflow_id": child}},
		map[string]any{"id": "script", "uses": "code.js", "with": map[string]any{"code": "return 1"}},
		map[string]any{"id": "loop", "foreach": "${{ [1, 2] }}", "steps": []any{calls("in", outside.URL+"/x")}},
		calls("two", outside.URL+"/x")), 5
}

// Nodes reach the database through a pooler that lends connections for one
// transaction. Everything works, and nothing stays behind in a connection.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	for name, listening := range map[string]bool{"listening elsewhere": true, "looking": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Seed(t)
			const runs = 150
			outside := newSink(t)
			c := pooled(t, 2, listening)
			id, calling := everything(t, c.nodes[0].Client, outside)
			stop, sessions := make(chan struct{}), 0
			var watch sync.WaitGroup
			watch.Go(func() {
				var before []string
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					// One look may come between the end of a transaction and that of its
					// locks; two that find the same session in the same rest do not.
					now := c.texts(`SELECT a.pid || ' ' || a.state_change FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
						WHERE l.locktype = 'advisory' AND a.datname = current_database() AND a.state = 'idle'`)
					for _, session := range now {
						if slices.Contains(before, session) {
							sessions++
						}
					}
					before = now
				}
			})
			c.flood(c.admin, id, runs, 6)
			c.settle()
			close(stop)
			watch.Wait()
			if sessions != 0 {
				t.Errorf("a lock was held beyond its transaction %d times", sessions)
			}
			if n := c.number(`SELECT count(*) FROM runs WHERE status = 'succeeded'`); n != 2*runs {
				t.Errorf("%d runs succeeded, want %d", n, 2*runs)
			}
			if n := len(outside.counted()); n != calling*runs {
				t.Errorf("%d calls were made, want %d", n, calling*runs)
			}
			left(t, c)
		})
	}
}

// left looks for what nodes have left in the connections of a pooler.
func left(t *testing.T, c *cluster) {
	t.Helper()
	for range 20 {
		conn, err := pgx.Connect(t.Context(), c.reach+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
			var value string
			if err := conn.QueryRow(t.Context(), "SHOW "+name).Scan(&value); err != nil || value != "0" {
				t.Errorf("%s is %q (%v)", name, value, err)
			}
		}
		var prepared int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements").Scan(&prepared); err != nil || prepared != 0 {
			t.Errorf("%d statements are prepared (%v)", prepared, err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The connections on which nodes listen are cut again and again. What they
// would have heard is found a little later, and nothing is lost.
func TestListenersAreKilled(t *testing.T) {
	t.Parallel()
	harness.Seed(t)
	outside := newSink(t)
	c := start(t, 2, "--node-lease=10s")
	for _, node := range c.nodes {
		node.ExpectErrors(`terminating connection|57P01|unexpected EOF|conn closed`)
	}
	id, _ := everything(t, c.nodes[0].Client, outside)
	hang := define(t, c.nodes[0].Client, calls("hang", outside.URL+"/hang?hang"))
	stop, killed := make(chan struct{}), 0
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
				killed += c.number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
			}
		}
	})
	var slowest, interruption time.Duration
	for i := range 30 {
		begun := time.Now()
		r := begin(t, c.nodes[i%2].Client, id).ID
		if end := ended(t, c.nodes[(i+1)%2].Client, r, 30*time.Second); end.Status != "succeeded" {
			t.Errorf("run %s is %s", r, end.Status)
		}
		slowest = max(slowest, time.Since(begun))
		if i%6 != 0 {
			continue
		}
		r = begin(t, c.nodes[0].Client, hang).ID
		within(t, 10*time.Second, "the call is under way", func() bool { return len(outside.of(r)) == 1 })
		asked := time.Now()
		c.nodes[1].Expect(t, 200, "POST", "/v1/runs/"+r+"/cancel", nil)
		var at time.Time
		within(t, 10*time.Second, "the call is given up", func() (ok bool) { at, ok = outside.gaveUp(r); return ok })
		interruption = max(interruption, at.Sub(asked))
	}
	close(stop)
	killer.Wait()
	t.Logf("%d connections were cut; the slowest run took %s, the slowest interruption %s", killed, ms(slowest), ms(interruption))
	if killed < 10 {
		t.Errorf("only %d connections were cut", killed)
	}
	if slowest > 2*time.Second*patience || interruption > 3500*time.Millisecond*patience/2 {
		t.Errorf("the slowest run took %v, the slowest interruption %v", slowest, interruption)
	}
	c.settle()
}

// Somebody has left a transaction open, and the database cannot clean up behind
// the load. Runs start as fast as before; our own sessions never do such a thing.
func TestHorizonIsPinned(t *testing.T) {
	harness.Seed(t)
	runs := scale(t, 1500)
	c := start(t, 2, "--metrics-listen=127.0.0.1:0")
	var metrics []*harness.Client
	for _, node := range c.nodes {
		metrics = append(metrics, harness.NewClient("http://"+node.AwaitLog(t, `"msg":"metrics are served","address":"([^"]+)"`), ""))
	}
	key := c.tenant("enterprise")
	id := define(t, c.nodes[0].With(key), sets("one"), sets("two"), sets("three"))
	c.flood(key, id, 100, 4) // warm
	conn, err := pgx.Connect(t.Context(), c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	pinned := time.Now()
	if _, err := conn.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM run_queue`); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var watch sync.WaitGroup
	oldest := 0
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				oldest = max(oldest, c.number(`SELECT COALESCE(max(extract(epoch FROM now() - state_change)), 0)::bigint FROM pg_stat_activity
					WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> $1`, int(conn.PgConn().PID())))
			}
		}
	})
	first := c.timed(key, id, runs/10)
	c.flood(key, id, runs*8/10, 8)
	last := c.timed(key, id, runs/10)
	close(stop)
	watch.Wait()
	dead := c.number(`SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'run_queue'`)
	t.Logf("%d runs; of ten the slowest but one took %s before and %s after, with %d dead rows in the queue; our oldest open transaction was %d s old", runs, ms(first), ms(last), dead, oldest)
	if last > 5*first+100*time.Millisecond*patience {
		t.Errorf("runs take %v, %v before", last, first)
	}
	if oldest > 15 {
		t.Errorf("one of our sessions was idle in a transaction for %d s", oldest)
	}
	c.settle()

	// Every node tells of it, and that it is over.
	for _, shown := range metrics {
		if age, most := openFor(t, shown), time.Since(pinned); age < most-10*time.Second || age > most {
			t.Errorf("the oldest transaction is said to be %v old, it is %v", age, most)
		}
	}
	if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "nobody holds the database back any more", func() bool {
		return openFor(t, metrics[0]) < time.Since(pinned)/2
	})
}

// openFor is how old the metrics of a node say that the oldest transaction in the
// database is.
func openFor(t *testing.T, metrics *harness.Client) time.Duration {
	t.Helper()
	text := metrics.Expect(t, 200, "GET", "/metrics", nil).Body
	match := regexp.MustCompile(`(?m)^stepmill_postgres_oldest_transaction_seconds (\S+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("the metric is not there:\n%s", text)
	}
	seconds, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

// timed starts runs one after the other and tells how long nine of ten took at
// most.
func (c *cluster) timed(key, workflow string, runs int) time.Duration {
	c.t.Helper()
	var took []time.Duration
	for i := range runs {
		begun := time.Now()
		c.nodes[i%len(c.nodes)].With(key).Expect(c.t, 200, "POST", "/v1/workflows/"+workflow+"/runs", nil, "Prefer", "wait=20")
		took = append(took, time.Since(begun))
	}
	return nth(took, 90)
}

// Three nodes that have nothing to do leave the database alone, also where they
// cannot be told of what others do.
func TestIdle(t *testing.T) {
	for name, args := range map[string][]string{"told": nil, "looking": {"--database-pooled"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testIdle(t, args...)
		})
	}
}

func testIdle(t *testing.T, args ...string) {
	const length, most = 20 * time.Second, 20
	server := postgres.Start(t, postgres.Options{Settings: map[string]string{"log_statement": "all", "log_line_prefix": "%m [%p] %d %a "}})
	c := empty(t)
	c.url = server.NewDatabase(t)
	c.reach, c.args = c.url, append([]string{egress}, args...)
	for range 3 {
		c.add()
	}
	id := define(t, c.nodes[0].Client, sets("one"))
	ended(t, c.nodes[0].Client, begin(t, c.nodes[0].Client, id).ID, 10*time.Second)
	time.Sleep(5 * time.Second)
	before := len(server.Log())
	time.Sleep(length)
	kinds := map[string]int{}
	total := 0
	for _, line := range statementLine.FindAllStringSubmatch(server.Log()[before:], -1) {
		total++
		text := strings.Join(strings.Fields(line[1]), " ")
		kinds[text[:min(len(text), 70)]]++
	}
	rate := float64(total) / length.Seconds()
	var shown []string
	for text, n := range kinds {
		shown = append(shown, fmt.Sprintf("%6.2f/s %s", float64(n)/length.Seconds(), text))
	}
	t.Logf("%.1f statements a second:\n%s", rate, strings.Join(sorted(shown), "\n"))
	if rate > most || total == 0 {
		t.Errorf("three idle nodes cost the database %.1f statements a second", rate)
	}
}

var statementLine = regexp.MustCompile(`(?m)LOG:  (?:statement|execute [^:]*): (.*)$`)
