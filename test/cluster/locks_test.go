package cluster_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// Other sessions lock rows of runs in random order, so that the transactions of nodes
// deadlock with them and with each other. The nodes retry, and every run succeeds.
func TestDeadlocksUnderLoad(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	const minimum = 20
	c := newCluster(t, options{nodes: 2})
	l := newLoad(c)
	endFault := c.recordFault("") // a retried transaction may carry the result of a call
	ctx, stop := context.WithCancel(t.Context())
	var lockers sync.WaitGroup
	for i := range 2 {
		lockers.Go(func() { c.lockRows(ctx, harness.Random(c.seed, 10+i)) })
	}
	l.startClients()
	deadlocks := func() int {
		return tables.Number(t, c.db, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
	}
	if left := harness.AwaitZero(func() int { return minimum - deadlocks() }); left > 0 {
		t.Fatalf("there were %d deadlocks, want %d: none for %v", minimum-left, minimum, harness.Timeout)
	}
	l.awaitMore(l.minRuns)
	stop()
	lockers.Wait()
	endFault()
	l.stopClients()
	t.Logf("%d deadlocks; %d of %d requests got a 503", deadlocks(), l.counts.unavailable, l.counts.requests)
	l.verify(false)
}

// lockRows repeatedly locks rows of several runs and workspaces for a moment.
func (c *cluster) lockRows(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		_ = c.transact(ctx, func(tx *sql.Tx) error {
			for range 3 {
				if _, err := tx.ExecContext(ctx, `SELECT 1 FROM run_queue WHERE run_id = (SELECT run_id FROM run_queue ORDER BY random() LIMIT 1) FOR UPDATE`); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, `UPDATE workspace_load SET running = running WHERE workspace_id = (SELECT workspace_id FROM workspace_load ORDER BY random() LIMIT 1)`); err != nil {
					return err
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
			return nil
		})
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
	}
}

func (c *cluster) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// The connection to the database is slow. Everything takes longer, and transactions that
// wait for each other take longer than they may and are retried, but no node loses its
// lease.
func TestSlowDatabase(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	c := newCluster(t, options{
		nodes: 2, lease: 10 * time.Second, timeout: 10 * time.Second, proxied: true,
	})
	l := newLoad(c)
	slowest := c.watchCommits()
	for _, m := range c.nodes {
		m.proxy.Latency(100*time.Millisecond, 100*time.Millisecond)
	}
	l.startClients()
	l.awaitMore(l.minRuns)
	l.stopClients()
	for _, m := range c.nodes {
		if m.Exited() {
			t.Errorf("node %s has exited", m.name)
		}
		m.proxy.Latency(0, 0)
	}
	// Heartbeats may take longer than this. If even a commit without latency did, the
	// machine is too busy for them.
	limit := c.options.lease / 5
	switch lost, slowest := c.countLogged(releasedRuns)+c.countLogged(tookOver)+c.countLogged(lostLease), slowest(); {
	case lost > 0 && slowest < limit:
		t.Errorf("nodes lost their lease %d times, want 0: commits took at most %v", lost, slowest)
	case lost > 0:
		t.Logf("inconclusive: nodes lost their lease, but a commit took %v", slowest)
	}
	l.verify(false)
}

// watchCommits measures small commits on a direct connection, until slowest is called.
func (c *cluster) watchCommits() (slowest func() time.Duration) {
	ctx, stop := context.WithCancel(c.t.Context())
	result := make(chan time.Duration, 1)
	go func() {
		longest := time.Duration(0)
		for ctx.Err() == nil {
			began := time.Now()
			// This writes to the log of the database but to no table.
			if _, err := c.db.ExecContext(ctx, `SELECT pg_logical_emit_message(true, 'test', '')`); err != nil && ctx.Err() == nil {
				c.t.Error(err)
				break
			}
			longest = max(longest, time.Since(began))
			time.Sleep(50 * time.Millisecond)
		}
		result <- longest
	}()
	return func() time.Duration {
		stop()
		return <-result
	}
}
