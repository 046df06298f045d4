package cluster_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stepmill/stepmill/test/harness"
)

// Somebody else locks the rows of runs, in no order: units meet them and each
// other in deadlocks. They are tried again, and clients see nothing of it.
func TestDeadlocksUnderLoad(t *testing.T) {
	c := newCluster(t, options{nodes: 2, lease: lease})
	l := newLoad(c, 12)
	over := c.suffer() // a unit that is tried again may be the one that has a result
	ctx, stop := context.WithCancel(t.Context())
	var lockers sync.WaitGroup
	for i := range 2 {
		lockers.Go(func() { c.lockRows(ctx, harness.Random(c.seed, 10+i)) })
	}
	l.begin()
	time.Sleep(time.Duration(rounds(12)) * time.Second)
	stop()
	lockers.Wait()
	over()
	l.end()
	deadlocks := number(t, c.tables, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
	t.Logf("%d deadlocks; %d of %d requests were refused", deadlocks, l.counts.unavailable, l.counts.requests)
	if deadlocks < 5 {
		t.Errorf("%d deadlocks are too few for the test to mean anything", deadlocks)
	}
	if l.counts.unavailable*1000 > l.counts.requests {
		t.Errorf("%d of %d requests were refused", l.counts.unavailable, l.counts.requests)
	}
	l.verify(false)
}

// lockRows locks rows of two runs, one after the other, for a moment, again and
// again.
func (c *cluster) lockRows(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		_ = pgx.BeginFunc(ctx, c.tables, func(tx pgx.Tx) error {
			for range 3 {
				if _, err := tx.Exec(ctx, `SELECT 1 FROM run_queue WHERE run_id = (SELECT run_id FROM run_queue ORDER BY random() LIMIT 1) FOR UPDATE`); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, `UPDATE workspace_load SET running = running WHERE workspace_id = (SELECT workspace_id FROM workspace_load ORDER BY random() LIMIT 1)`); err != nil {
					return err
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
			return nil
		})
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
	}
}

// The way to the database is slow. Everything takes longer, and no node loses
// its runs for it.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t, options{nodes: 2, lease: 10 * time.Second, proxied: true, errors: "does not answer"})
	l := newLoad(c, 4)
	l.least, l.slow = 5, true // each takes many round trips
	before := map[string]string{}
	for _, m := range c.nodes {
		before[m.name] = c.nodeID(m.name)
		m.proxy.Latency(100*time.Millisecond, 100*time.Millisecond) // each query takes 200 ms longer
	}
	l.begin()
	time.Sleep(time.Duration(rounds(20)) * time.Second)
	l.end()
	for _, m := range c.nodes {
		if id := c.nodeID(m.name); id != before[m.name] {
			t.Errorf("node %s became another", m.name)
		}
		m.proxy.Latency(0, 0)
	}
	if lost := c.noticed(letGo) + c.noticed(tookOver) + c.noticed(lostLease); lost > 0 {
		t.Errorf("%d times a node lost its runs", lost)
	}
	l.verify(false)
}
