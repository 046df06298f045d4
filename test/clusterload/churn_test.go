package clusterload_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// Thousands of runs go through the queue. What they leave in its tables is
// cleaned up while they do, and runs start as fast in the end as in the
// beginning.
func TestQueueChurn(t *testing.T) {
	harness.Seed(t)
	runs := scale(t, 5000)
	c := start(t, 1)
	// The database looks for what is to be cleaned up every minute by itself.
	c.exec(`ALTER SYSTEM SET autovacuum_naptime = '1s'`)
	c.exec(`SELECT pg_reload_conf()`)
	key := c.tenant("enterprise")
	id := define(t, c.nodes[0].With(key), sets("one"))
	c.flood(key, id, 100, 4) // warm
	first := c.timed(key, id, 100)
	c.flood(key, id, runs, 8)
	last := c.timed(key, id, 100)
	c.settle()

	const dead = `SELECT COALESCE(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('run_queue', 'workspace_load')`
	began := time.Now()
	within(t, 30*time.Second, "what the runs left is cleaned up", func() bool { return c.number(dead) <= 2000 })
	cleaned := c.number(`SELECT COALESCE(sum(autovacuum_count), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('run_queue', 'workspace_load')`)
	pages := c.number(`SELECT pg_relation_size('run_queue') / 8192`)
	t.Logf("%d runs; of ten the slowest but one took %s before and %s after; cleaned up %d times, the last time after %s; the queue has %d pages",
		runs, ms(first), ms(last), cleaned, ms(time.Since(began)), pages)
	if cleaned == 0 {
		t.Error("nothing was cleaned up: the test means nothing")
	}
	if pages > runs/10 {
		t.Errorf("the queue has grown to %d pages and holds no run", pages)
	}
	if last > 2*first+50*time.Millisecond*patience {
		t.Errorf("runs take %v, %v before", last, first)
	}
}
