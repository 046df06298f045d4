package runqueue

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// lostAfter is how long a run must be overdue before Sweep checks that it has a
// job.
const lostAfter = 15 * time.Second

// Sweep requeues runs that no node owns and that have no job, and lists
// workspaces that have throttled runs. After an import every run is in that
// state; otherwise none should be, and Sweep makes sure that none stays so. It
// returns true if there may be more.
//
// Sweep does not change when a run was due, since that shows how long it has
// waited. Instead it goes through all overdue runs, and each call continues where
// the last one stopped, so a lost run is found even behind many that have a job
// and wait for capacity.
func (c *Cluster) Sweep(ctx context.Context) (found int, more bool, waiting []string, err error) {
	from := c.sweepCursor.Load()
	var next *overdueRun
	err = c.write(ctx, func(tx *clusterTransaction) error {
		wakes, err := c.findImported(ctx, tx)
		if more, next = len(wakes) > 0, from; err == nil && !more {
			wakes, next, err = c.findLost(ctx, tx, from)
			more = next != nil
		}
		if err != nil {
			return err
		}
		for _, wake := range wakes {
			tx.jobs = append(tx.jobs, run.Job{Wake: wake})
		}
		found = len(wakes)
		waiting, err = database.List(tx, `SELECT workspace_id FROM workspace_load WHERE throttled > 0`, nil, scanText)
		return err
	})
	if err != nil {
		return 0, false, nil, err
	}
	c.sweepCursor.Store(next)
	return found, more, waiting, nil
}

// findImported lists runs that came with an import, whether they are due or not,
// and clears their mark.
func (c *Cluster) findImported(ctx context.Context, tx *clusterTransaction) ([]run.Wake, error) {
	wakes, err := database.List(tx, selectWake+`WHERE run_queue.orphaned AND run_queue.node IS NULL AND NOT run_queue.throttled AND run_queue.admitted`+NotDeleted+`
		LIMIT $1 FOR UPDATE OF run_queue SKIP LOCKED`, []any{takeoverBatch}, scanWake)
	if err != nil || len(wakes) == 0 {
		return nil, err
	}
	ids := make([]string, len(wakes))
	for i, wake := range wakes {
		ids[i] = wake.RunID
		if err := tx.Do(`UPDATE run_queue SET orphaned = false WHERE run_id = $1`, wake.RunID); err != nil {
			return nil, err
		}
	}
	hasJob, err := c.HasJob(ctx, tx.Unwrap(), ids)
	return slices.DeleteFunc(wakes, func(w run.Wake) bool { return hasJob[w.RunID] }), err
}

// overdueRun is a run that was due a while ago and that no node owns.
type overdueRun struct {
	at    time.Time
	runID string
}

// overdueBatch bounds how many overdue runs one Sweep checks. The check is cheap:
// only the rows of lost runs are locked.
const overdueBatch = 500

// findLost checks the next overdue runs and lists those that have no job. It
// returns where to continue, or nil at the end.
func (c *Cluster) findLost(ctx context.Context, tx *clusterTransaction, from *overdueRun) (lost []run.Wake, next *overdueRun, err error) {
	if from == nil {
		from = &overdueRun{}
	}
	due := clock.Steady().Add(-lostAfter)
	all, err := database.List(tx, `SELECT wake_at, run_id FROM run_queue WHERE node IS NULL AND NOT throttled AND admitted AND wake_at < $1
		AND (wake_at, run_id) > ($2, $3)`+NotDeleted+` ORDER BY wake_at, run_id LIMIT $4`, []any{due, from.at, from.runID, overdueBatch},
		func(r database.Row) (l overdueRun, err error) {
			err = r.Scan(&l.at, &l.runID)
			return l, err
		})
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	ids := make([]string, len(all))
	for i, l := range all {
		ids[i] = l.runID
	}
	hasJob, err := c.HasJob(ctx, tx.Unwrap(), ids)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range all {
		if hasJob[l.runID] {
			continue
		}
		// A run that was claimed meanwhile has no time any more, or a later one.
		wake, err := database.One(tx, selectWake+`WHERE run_queue.run_id = $1 AND NOT run_queue.throttled AND run_queue.admitted`+NotDeleted+
			` FOR UPDATE OF run_queue SKIP LOCKED`, []any{l.runID}, scanWake)
		if err != nil {
			return nil, nil, err
		}
		if wake == nil || !wake.At.Equal(l.at) {
			continue
		}
		if lost = append(lost, *wake); len(lost) == takeoverBatch {
			return lost, &all[i], nil
		}
	}
	if len(all) == overdueBatch {
		next = &all[overdueBatch-1]
	}
	return lost, next, nil
}

// UnknownNodes lists nodes that own runs or webhooks but are not registered: they
// claimed them after they were removed.
func (c *Cluster) UnknownNodes(ctx context.Context) ([]string, error) {
	var unknown []string
	err := c.store.ReadQueue(ctx, func(conn database.Conn) (err error) {
		unknown, err = database.List(conn, `SELECT DISTINCT node FROM run_queue q WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = q.node)
			UNION SELECT node FROM webhook_owners o WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = o.node) ORDER BY node`, nil, scanText)
		return err
	})
	return unknown, err
}

// Recount corrects the load of a workspace if it is wrong, and reports whether it
// was.
func (c *Cluster) Recount(ctx context.Context, workspaceID string) (bool, error) {
	wrong := false
	err := c.write(ctx, func(tx *clusterTransaction) error {
		if err := tx.Lock(database.WorkspaceLock(workspaceID)); err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE workspace_load l SET running = c.running, throttled = c.throttled FROM
			(SELECT count(*) FILTER (WHERE slot) AS running, count(*) FILTER (WHERE throttled) AS throttled FROM run_queue WHERE workspace_id = $1`+UseIndex("workspace_id")+`) c
			WHERE l.workspace_id = $1 AND (l.running <> c.running OR l.throttled <> c.throttled)`, workspaceID)
		wrong = n > 0
		return err
	})
	return wrong, err
}

// OwnedRuns lists the runs that a node owns or has a local timer for, according
// to the store.
func (c *Cluster) OwnedRuns(ctx context.Context, node string) ([]run.OwnedRun, error) {
	var owned []run.OwnedRun
	err := c.store.ReadQueue(ctx, func(conn database.Conn) (err error) {
		owned, err = database.List(conn, `SELECT run_queue.wake_at IS NOT NULL, NOT run_queue.slot, `+wakeColumns+` WHERE run_queue.node = $1`+NotDeleted, []any{node},
			func(r database.Row) (h run.OwnedRun, err error) {
				err = r.Scan(&h.AnswerArrived, &h.LocalTimer, &h.RunID, &h.WorkspaceID, &h.WorkflowID, &h.Epoch, &h.At, &h.Crashes, &h.Level, (*string)(&h.Plan))
				return h, err
			})
		return err
	})
	return owned, err
}

func scanText(r database.Row) (text string, err error) {
	err = r.Scan(&text)
	return text, err
}
