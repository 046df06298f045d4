package runqueue

import (
	"context"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
)

// Claim makes this node the owner of a run and calls with in the same
// transaction. If the run is not due yet, the node keeps a local timer for it.
func (c *Cluster) Claim(ctx context.Context, wake run.Wake, with func(context.Context, database.Conn) error) (run.Wake, run.Claimed, error) {
	var (
		claimed run.Wake
		outcome run.Claimed
	)
	err := c.write(ctx, func(tx *clusterTransaction) error {
		claimed, outcome = wake, run.ClaimStale
		if err := with(ctx, tx.Unwrap()); err != nil {
			return err
		}
		slot := false
		found, err := database.One(tx, `SELECT run_queue.slot, `+wakeColumns+` WHERE run_queue.run_id = $1 AND run_queue.admitted AND NOT run_queue.throttled
			AND run_queue.epoch = $2 AND (run_queue.node IS NULL OR run_queue.node = $3 AND NOT run_queue.slot)`+NotDeleted+` FOR UPDATE OF run_queue`,
			[]any{wake.RunID, wake.Epoch, c.Node}, func(r database.Row) (w run.Wake, err error) {
				err = r.Scan(&slot, &w.RunID, &w.WorkspaceID, &w.WorkflowID, &w.Epoch, &w.At, &w.Crashes, &w.Level, (*string)(&w.Plan))
				return w, err
			})
		if err != nil || found == nil {
			return err
		}
		if found.Level > release.Known() {
			tx.jobs = append(tx.jobs, run.Job{Wake: *found}) // for a newer node
			return nil
		}
		claimed = *found
		outcome, err = c.claim(tx, &claimed, slot)
		return err
	})
	return claimed, outcome, err
}

func (c *Cluster) claim(tx *clusterTransaction, wake *run.Wake, slot bool) (run.Claimed, error) {
	if !slot && wake.At.After(clock.Steady()) {
		return run.ClaimLocalTimer, tx.Do(`UPDATE run_queue SET node = $1 WHERE run_id = $2`, c.Node, wake.RunID)
	}
	if !slot {
		_, granted, err := tx.acquireSlot(wake.WorkspaceID, wake.Plan, noQueueLimit)
		if err != nil {
			return run.ClaimStale, err
		}
		if !granted {
			return run.ClaimThrottled, tx.Do(`UPDATE run_queue SET node = NULL, throttled = true WHERE run_id = $1`, wake.RunID)
		}
	}
	wake.Epoch++
	wake.Owned = true
	return run.ClaimOwned, tx.Do(`UPDATE run_queue SET epoch = $1, node = $2, wake_at = NULL, slot = true WHERE run_id = $3`, wake.Epoch, c.Node, wake.RunID)
}

// admitBatch bounds how many runs one transaction admits, because it holds the lock of the
// workspace.
const admitBatch = 100

// AdmitThrottled gives the free slots of a workspace to its throttled runs,
// longest-waiting first: on this node while it has capacity, else in a job for
// any node. It returns true if there may be more.
func (c *Cluster) AdmitThrottled(ctx context.Context, workspaceID string) (bool, error) {
	more := false
	err := c.write(ctx, func(tx *clusterTransaction) error {
		more = false
		if err := tx.Lock(database.WorkspaceLock(workspaceID)); err != nil {
			return err
		}
		var (
			running, throttled int
			plan               auth.Plan
		)
		if err := tx.Query(`SELECT l.running, l.throttled, w.plan FROM workspace_load l JOIN workspaces w ON w.id = l.workspace_id WHERE l.workspace_id = $1`,
			[]any{workspaceID}, func(r database.Row) error { return r.Scan(&running, &throttled, (*string)(&plan)) }); err != nil {
			return err
		}
		free := min(throttled, c.Limit(plan)-running, admitBatch)
		if free <= 0 {
			return nil
		}
		// Runs that are being cancelled or answered are skipped.
		waiting, err := database.List(tx, selectWake+`WHERE run_queue.workspace_id = $1 AND run_queue.throttled ORDER BY run_queue.wake_at, run_queue.run_id
			LIMIT $2 FOR UPDATE OF run_queue SKIP LOCKED`, []any{workspaceID, free}, scanWake)
		if err != nil {
			return err
		}
		for i, wake := range waiting {
			if err := c.admitOne(tx, wake, running+i+1); err != nil {
				return err
			}
		}
		more = len(waiting) == admitBatch
		return tx.Do(`UPDATE workspace_load SET running = running + $1, throttled = throttled - $1 WHERE workspace_id = $2`, len(waiting), workspaceID)
	})
	return more && err == nil, err
}

func (c *Cluster) admitOne(tx *clusterTransaction, wake run.Wake, inUse int) error {
	if wake.Isolated() || wake.Level > release.Known() || !c.Reserve(wake) {
		tx.jobs = append(tx.jobs, run.Job{Wake: wake, InFlight: inUse})
		return tx.Do(`UPDATE run_queue SET throttled = false, slot = true WHERE run_id = $1`, wake.RunID)
	}
	wake.Epoch++
	wake.Owned = true
	tx.AfterCommit(func() { c.Wake(wake) })
	return tx.Do(`UPDATE run_queue SET throttled = false, slot = true, node = $1, epoch = $2, wake_at = NULL WHERE run_id = $3`,
		c.Node, wake.Epoch, wake.RunID)
}

// takeoverBatch bounds how many runs one transaction takes from a node.
const takeoverBatch = 200

// TakeOver requeues the runs of a node that died or is about to leave. It takes
// nothing from a node that is alive, or alive again. If the node died, each run
// whose steps it was executing is charged with a crash. It returns true if there
// may be more.
func (c *Cluster) TakeOver(ctx context.Context, node string, died bool) (count int, more bool, err error) {
	blame := ``
	if died {
		blame = `crashes = CASE WHEN executing IS NULL THEN crashes WHEN suspects = executing THEN crashes + 1 ELSE 1 END,
			suspects = COALESCE(executing, suspects), `
	}
	err = c.write(ctx, func(tx *clusterTransaction) error {
		wakes, err := database.List(tx, `UPDATE run_queue SET epoch = epoch + 1, node = NULL, `+blame+`executing = NULL, wake_at = COALESCE(wake_at, $3)
			FROM workspaces s WHERE s.id = run_queue.workspace_id
			AND run_id IN (SELECT run_id FROM run_queue WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND NOT dead) ORDER BY run_id LIMIT $2 FOR UPDATE)
			RETURNING `+wakeFields, []any{node, takeoverBatch, clock.Steady()}, scanWake)
		if err != nil {
			return err
		}
		for _, wake := range wakes {
			tx.jobs = append(tx.jobs, run.Job{Wake: wake})
		}
		count, more = len(wakes), len(wakes) == takeoverBatch
		return nil
	})
	return count, more && err == nil, err
}

// Requeue enqueues jobs for runs that this node owns but does not execute. A run
// that was claimed since then is left alone.
func (c *Cluster) Requeue(ctx context.Context, runs []run.Wake) error {
	for some := range slices.Chunk(runs, takeoverBatch) {
		err := c.write(ctx, func(tx *clusterTransaction) error {
			now := clock.Steady()
			for _, r := range some {
				found, err := database.One(tx, `UPDATE run_queue SET epoch = epoch + 1, node = NULL, executing = NULL, wake_at = COALESCE(wake_at, $1)
					FROM workspaces s WHERE s.id = run_queue.workspace_id AND run_id = $2 AND epoch = $3 AND node = $4
					RETURNING `+wakeFields, []any{now, r.RunID, r.Epoch, c.Node}, scanWake)
				if err != nil {
					return err
				}
				if found != nil {
					tx.jobs = append(tx.jobs, run.Job{Wake: *found})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
