package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// admitBatch bounds how many runs one transaction admits.
const admitBatch = 100

// AdmitThrottled gives the free slots of a workspace to its throttled runs,
// longest-waiting first: on this node while it has capacity, else in a job for
// any node. It returns true if there may be more.
func (s *Store) AdmitThrottled(ctx context.Context, workspaceID string) (bool, error) {
	more := false
	err := s.write(ctx, func(tx *transaction) error {
		more = false
		if err := lockWorkspace(tx, workspaceID); err != nil {
			return err
		}
		var (
			running, throttled int
			plan               auth.Plan
		)
		if err := tx.Query(`SELECT l.running, l.parked, w.plan FROM workspace_load l JOIN workspaces w ON w.id = l.workspace_id WHERE l.workspace_id = $1`,
			[]any{workspaceID}, func(r database.Row) error { return r.Scan(&running, &throttled, (*string)(&plan)) }); err != nil {
			return err
		}
		free := min(throttled, s.cluster.Limit(plan)-running, admitBatch)
		if free <= 0 {
			return nil
		}
		// Runs that are being cancelled or answered are skipped.
		waiting, err := database.List(tx, selectWake+`WHERE run_queue.workspace_id = $1 AND run_queue.parked ORDER BY run_queue.wake_at, run_queue.run_id
			LIMIT $2 FOR UPDATE OF run_queue SKIP LOCKED`, []any{workspaceID, free}, scanWake)
		if err != nil {
			return err
		}
		for i, wake := range waiting {
			if err := s.admitOne(tx, wake, running+i+1); err != nil {
				return err
			}
		}
		more = len(waiting) == admitBatch
		return tx.Do(`UPDATE workspace_load SET running = running + $1, parked = parked - $1 WHERE workspace_id = $2`, len(waiting), workspaceID)
	})
	return more && err == nil, err
}

// admitOne gives a throttled run a slot.
func (s *Store) admitOne(tx *transaction, wake run.Wake, inUse int) error {
	if wake.Isolated() || !s.cluster.Reserve(wake) {
		tx.jobs = append(tx.jobs, run.Job{Wake: wake, InFlight: inUse})
		return tx.Do(`UPDATE run_queue SET parked = false, slot = true WHERE run_id = $1`, wake.RunID)
	}
	wake.Epoch++
	wake.Owned = true
	tx.afterCommit(func() { s.notify.Wake(wake) })
	return tx.Do(`UPDATE run_queue SET parked = false, slot = true, node = $1, epoch = $2, wake_at = NULL WHERE run_id = $3`,
		s.cluster.Node, wake.Epoch, wake.RunID)
}

// takeoverBatch bounds how many runs one transaction takes from a node.
const takeoverBatch = 200

// TakeOver requeues the runs of a node that died or is about to leave. It takes
// nothing from a node that is alive, or alive again. If the node died, each run
// whose steps it was executing is charged with a crash. It returns true if there
// may be more.
func (s *Store) TakeOver(ctx context.Context, node string, died bool) (count int, more bool, err error) {
	blame := ``
	if died {
		blame = `crashes = CASE WHEN executing IS NULL THEN crashes WHEN blamed = executing THEN crashes + 1 ELSE 1 END,
			blamed = COALESCE(executing, blamed), `
	}
	err = s.write(ctx, func(tx *transaction) error {
		wakes, err := database.List(tx, `UPDATE run_queue SET epoch = epoch + 1, node = NULL, `+blame+`executing = NULL, wake_at = COALESCE(wake_at, $3)
			FROM workspaces s WHERE s.id = run_queue.workspace_id
			AND run_id IN (SELECT run_id FROM run_queue WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND NOT dead) ORDER BY run_id LIMIT $2 FOR UPDATE)
			RETURNING `+wakeFields, []any{node, takeoverBatch, clock.Now()}, scanWake)
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
func (s *Store) Requeue(ctx context.Context, runs []run.Wake) error {
	for some := range slices.Chunk(runs, takeoverBatch) {
		err := s.write(ctx, func(tx *transaction) error {
			now := clock.Now()
			for _, r := range some {
				found, err := database.One(tx, `UPDATE run_queue SET epoch = epoch + 1, node = NULL, executing = NULL, wake_at = COALESCE(wake_at, $1)
					FROM workspaces s WHERE s.id = run_queue.workspace_id AND run_id = $2 AND epoch = $3 AND node = $4
					RETURNING `+wakeFields, []any{now, r.RunID, r.Epoch, s.cluster.Node}, scanWake)
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
func (s *Store) Sweep(ctx context.Context) (found int, more bool, waiting []string, err error) {
	from := s.sweepCursor.Load()
	var next *overdueRun
	err = s.write(ctx, func(tx *transaction) error {
		wakes, err := s.findImported(ctx, tx)
		if more, next = len(wakes) > 0, from; err == nil && !more {
			wakes, next, err = s.findLost(ctx, tx, from)
			more = next != nil
		}
		if err != nil {
			return err
		}
		for _, wake := range wakes {
			tx.jobs = append(tx.jobs, run.Job{Wake: wake})
		}
		found = len(wakes)
		waiting, err = database.List(tx, `SELECT workspace_id FROM workspace_load WHERE parked > 0`, nil, scanText)
		return err
	})
	if err != nil {
		return 0, false, nil, err
	}
	s.sweepCursor.Store(next)
	return found, more, waiting, nil
}

// findImported lists runs that came with an import, whether they are due or not,
// and clears their mark.
func (s *Store) findImported(ctx context.Context, tx *transaction) ([]run.Wake, error) {
	wakes, err := database.List(tx, selectWake+`WHERE run_queue.adrift AND run_queue.node IS NULL AND NOT run_queue.parked AND run_queue.turn`+notDeleted+`
		LIMIT $1 FOR UPDATE OF run_queue SKIP LOCKED`, []any{takeoverBatch}, scanWake)
	if err != nil || len(wakes) == 0 {
		return nil, err
	}
	ids := make([]string, len(wakes))
	for i, wake := range wakes {
		ids[i] = wake.RunID
		if err := tx.Do(`UPDATE run_queue SET adrift = false WHERE run_id = $1`, wake.RunID); err != nil {
			return nil, err
		}
	}
	hasJob, err := s.cluster.HasJob(ctx, tx.Conn, ids)
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
func (s *Store) findLost(ctx context.Context, tx *transaction, from *overdueRun) (lost []run.Wake, next *overdueRun, err error) {
	if from == nil {
		from = &overdueRun{}
	}
	due := clock.Now().Add(-lostAfter)
	all, err := database.List(tx, `SELECT wake_at, run_id FROM run_queue WHERE node IS NULL AND NOT parked AND turn AND wake_at < $1
		AND (wake_at, run_id) > ($2, $3)`+notDeleted+` ORDER BY wake_at, run_id LIMIT $4`, []any{due, from.at, from.runID, overdueBatch},
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
	hasJob, err := s.cluster.HasJob(ctx, tx.Conn, ids)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range all {
		if hasJob[l.runID] {
			continue
		}
		// A run that was claimed meanwhile has no time any more, or a later one.
		wake, err := database.One(tx, selectWake+`WHERE run_queue.run_id = $1 AND NOT run_queue.parked AND run_queue.turn`+notDeleted+
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
func (s *Store) UnknownNodes(ctx context.Context) ([]string, error) {
	var unknown []string
	err := s.read(ctx, func(c database.Conn) (err error) {
		unknown, err = database.List(c, `SELECT DISTINCT node FROM run_queue q WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = q.node)
			UNION SELECT node FROM couriers c WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node) ORDER BY node`, nil, scanText)
		return err
	})
	return unknown, err
}

// Recount corrects the load of a workspace if it is wrong, and reports whether it
// was.
func (s *Store) Recount(ctx context.Context, workspaceID string) (bool, error) {
	wrong := false
	err := s.write(ctx, func(tx *transaction) error {
		if err := lockWorkspace(tx, workspaceID); err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE workspace_load l SET running = c.running, parked = c.parked FROM
			(SELECT count(*) FILTER (WHERE slot) AS running, count(*) FILTER (WHERE parked) AS parked FROM run_queue WHERE workspace_id = $1`+useIndex("workspace_id")+`) c
			WHERE l.workspace_id = $1 AND (l.running <> c.running OR l.parked <> c.parked)`, workspaceID)
		wrong = n > 0
		return err
	})
	return wrong, err
}

// OwnedRuns lists the runs that a node owns or has a local timer for, according
// to the store.
func (s *Store) OwnedRuns(ctx context.Context, node string) ([]run.OwnedRun, error) {
	var owned []run.OwnedRun
	err := s.read(ctx, func(c database.Conn) (err error) {
		owned, err = database.List(c, `SELECT run_queue.wake_at IS NOT NULL, NOT run_queue.slot, `+wakeColumns+` WHERE run_queue.node = $1`+notDeleted, []any{node},
			func(r database.Row) (h run.OwnedRun, err error) {
				err = r.Scan(&h.AnswerArrived, &h.LocalTimer, &h.RunID, &h.WorkspaceID, &h.WorkflowID, &h.Epoch, &h.At, &h.Crashes, (*string)(&h.Plan))
				return h, err
			})
		return err
	})
	return owned, err
}
