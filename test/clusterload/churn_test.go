package clusterload_test

import (
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// Thousands of runs pass through the queue. Autovacuum removes their dead rows, and
// the table does not grow with the number of runs.
func TestQueueTablesAreVacuumed(t *testing.T) {
	lane.LongOnly(t)
	harness.Seed(t)
	const runs = 5000
	c := startCluster(t, 1)
	// The default is one minute.
	c.exec(`ALTER SYSTEM SET autovacuum_naptime = '1s'`)
	c.exec(`SELECT pg_reload_conf()`)
	key := c.newTenant("enterprise")
	id := flow.Define(t, c.nodes[0].With(key), flow.Set("one", 1))
	c.startRuns(key, id, runs, 8)
	c.awaitIdle()

	const dead = `SELECT COALESCE(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('run_queue', 'workspace_load')`
	harness.Eventually(t, "the dead rows of the runs are removed", func() bool { return c.number(dead) <= 2000 })
	const vacuumed = `SELECT COALESCE(sum(autovacuum_count), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('run_queue', 'workspace_load')`
	harness.Eventually(t, "autovacuum has run", func() bool { return c.number(vacuumed) > 0 })
	pages := c.number(`SELECT pg_relation_size('run_queue') / 8192`)
	t.Logf("%d runs; autovacuum ran %d times; the queue has %d pages", runs, c.number(vacuumed), pages)
	if pages > runs/10 {
		t.Errorf("the empty queue has %d pages, want at most %d", pages, runs/10)
	}
}
