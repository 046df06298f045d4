package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Cluster connects the store to the other nodes that share the database. Without
// one there is a single process, which counts in memory how many runs each
// workspace executes. With one, the counts are in workspace_load, guarded by the
// workspace's lock:
//
//   - a run has a slot while a node executes it or a job for it is enqueued;
//   - a run that is due while its workspace has no free slot is throttled;
//   - a run that waits for a time or an answer is neither.
//
// The statements in this file are for PostgreSQL only.
type Cluster struct {
	// Node is the id of this node.
	Node string
	// Limit returns how many runs of a workspace may have a slot.
	Limit func(auth.Plan) int
	// Reserve reserves capacity on this node for a run and reports whether there
	// was any.
	Reserve func(run.Wake) bool
	// Draining reports whether this node accepts no more runs, because it is
	// shutting down or other nodes have taken over its runs.
	Draining func() bool
	// EnqueueJobs enqueues wake-ups for any node in the connection's transaction.
	EnqueueJobs func(context.Context, database.Conn, []run.Job) error
	// HasJob reports which of the given runs have a job.
	HasJob func(context.Context, database.Conn, []string) (map[string]bool, error)
	// SlotFreed is called after the commit if a workspace has throttled runs and
	// may have a slot for them.
	SlotFreed func(workspaceID string)
}

// SetCluster makes this the store of one node in a cluster.
func (s *Store) SetCluster(c Cluster) { s.cluster = &c }

// shortWait is the longest wait for which the node that last executed a run keeps
// a local timer instead of enqueueing a job.
const shortWait = 10 * time.Second

// load is the change that a transaction makes to the load of a workspace.
type load struct{ freed, unthrottled int }

// addFreed records slots and throttled runs to subtract from the workspace's load
// at the end of the transaction.
func (tx *transaction) addFreed(workspaceID string, slots, throttled int) {
	if slots+throttled == 0 {
		return
	}
	if tx.loads == nil {
		tx.loads = map[string]load{}
	}
	l := tx.loads[workspaceID]
	tx.loads[workspaceID] = load{l.freed + slots, l.unthrottled + throttled}
}

// dequeue deletes the row of a run from the queue.
func (s *Store) dequeue(tx *transaction, r run.Run) error {
	if s.cluster == nil {
		return tx.Do(`DELETE FROM run_queue WHERE run_id = $1`, r.ID)
	}
	return tx.Query(`DELETE FROM run_queue WHERE run_id = $1 RETURNING slot, parked`, []any{r.ID}, tx.scanFreed(r.WorkspaceID))
}

// revokeLeases frees what the runs of a deleted workflow hold and voids their
// leases. A transaction that is blocked on one of these rows sees the new epoch,
// but does not see yet that the workflow is deleted.
func (s *Store) revokeLeases(tx *transaction, workspaceID, workflowID string) error {
	if s.cluster == nil {
		return nil
	}
	if err := tx.Query(`SELECT slot, parked FROM run_queue WHERE workflow_id = $1`+useIndex("workflow_id")+` ORDER BY run_id FOR UPDATE`,
		[]any{workflowID}, tx.scanFreed(workspaceID)); err != nil {
		return err
	}
	return tx.Do(`UPDATE run_queue SET epoch = epoch + 1, node = NULL, executing = NULL, slot = false, parked = false WHERE workflow_id = $1`+useIndex("workflow_id"), workflowID)
}

// scanFreed returns a function that frees what a row of the queue holds.
func (tx *transaction) scanFreed(workspaceID string) func(database.Row) error {
	return func(r database.Row) error {
		var slot, throttled bool
		if err := r.Scan(&slot, &throttled); err != nil {
			return err
		}
		tx.releaseSlot(workspaceID, slot, throttled)
		return nil
	}
}

func (tx *transaction) releaseSlot(workspaceID string, slot, throttled bool) {
	switch {
	case slot:
		tx.addFreed(workspaceID, 1, 0)
	case throttled:
		tx.addFreed(workspaceID, 0, 1)
	}
}

// writeLoads writes the changed loads of all workspaces.
func (s *Store) writeLoads(tx *transaction) error {
	for _, workspaceID := range slices.Sorted(maps.Keys(tx.loads)) {
		if err := s.writeLoad(tx, workspaceID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeLoad(tx *transaction, workspaceID string) error {
	l, ok := tx.loads[workspaceID]
	if !ok {
		return nil
	}
	delete(tx.loads, workspaceID)
	if err := lockWorkspace(tx, workspaceID); err != nil {
		return err
	}
	throttled := 0
	tx.afterCommit(func() {
		if throttled > 0 && l.freed > 0 {
			s.cluster.SlotFreed(workspaceID)
		}
	})
	if cached, ok := s.subscribers.get(workspaceID); ok && tx.optimistic && l.unthrottled == 0 {
		tx.noteSubscriberVersion(workspaceID, cached.version)
		return tx.Tally(`UPDATE workspace_load SET running = running - $1 WHERE workspace_id = $2 RETURNING parked, 1 / (audience = $3)::int`,
			int64(l.freed), []any{workspaceID, cached.version}, func(r database.Row) error {
				var unchanged int
				return r.Scan(&throttled, &unchanged)
			})
	}
	return tx.Query(`UPDATE workspace_load SET running = running - $1, parked = parked - $2 WHERE workspace_id = $3 RETURNING parked, audience`,
		[]any{l.freed, l.unthrottled, workspaceID}, func(r database.Row) error {
			var version int64
			err := r.Scan(&throttled, &version)
			tx.noteSubscriberVersion(workspaceID, version)
			return err
		})
}

// expectWorkspaceSlot acquires a slot for a run. It expects that one is free and
// that the subscribers still have the given version; otherwise the transaction is
// rolled back.
func (s *Store) expectWorkspaceSlot(tx *transaction, workspaceID string, plan auth.Plan, version int64) error {
	if err := lockWorkspace(tx, workspaceID); err != nil {
		return err
	}
	tx.noteSubscriberVersion(workspaceID, version)
	limit := s.cluster.Limit(plan)
	// Without a row the version does not match either.
	return tx.Tally(`INSERT INTO workspace_load AS l (workspace_id, running, parked) VALUES ($2, $1, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET running = l.running + $1
		RETURNING l.running, 1 / (l.running <= $3 AND l.audience = $4)::int`, 1, []any{workspaceID, limit, version}, func(r database.Row) error {
		var inUse, ok int
		err := r.Scan(&inUse, &ok)
		s.subscribers.setHeadroom(workspaceID, hasHeadroom(inUse, limit))
		return err
	})
}

// hasHeadroom reports whether a workspace has enough free slots for the next
// transaction to expect one.
func hasHeadroom(inUse, limit int) bool { return limit >= 16 && inUse <= limit*3/4 }

// acquireWorkspaceSlot acquires a slot for a run if one is free, and returns how
// many are then in use. If none is free, it counts the run as throttled, or
// returns run.ErrQueueFull if maxThrottled runs already are. It is a single
// statement because transactions of a group share their locks, and no other may
// come in between.
func (s *Store) acquireWorkspaceSlot(tx *transaction, workspaceID string, plan auth.Plan, maxThrottled int) (inUse int, granted bool, err error) {
	if err := s.writeLoad(tx, workspaceID); err != nil {
		return 0, false, err
	}
	if err := lockWorkspace(tx, workspaceID); err != nil {
		return 0, false, err
	}
	counted, limit := false, s.cluster.Limit(plan)
	err = tx.Query(`INSERT INTO workspace_load AS l (workspace_id, running, parked) VALUES ($1, 1, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET given = l.running < $2,
		running = CASE WHEN l.running < $2 THEN l.running + 1 ELSE l.running END,
		parked = CASE WHEN l.running < $2 THEN l.parked ELSE l.parked + 1 END
		WHERE l.running < $2 OR l.parked < $3 RETURNING l.running, l.given, l.audience`,
		[]any{workspaceID, limit, maxThrottled}, func(r database.Row) error {
			counted = true
			var version int64
			err := r.Scan(&inUse, &granted, &version)
			tx.noteSubscriberVersion(workspaceID, version)
			return err
		})
	if err == nil && !counted {
		err = run.ErrQueueFull
	}
	s.subscribers.setHeadroom(workspaceID, granted && hasHeadroom(inUse, limit))
	return inUse, granted, err
}

// admit places a new run: on this node, in a job for any node, or among the
// throttled runs. In the latter two cases the capacity reserved on this node is
// not used.
func (s *Store) admit(tx *transaction, start run.Start) (node string, slot bool, err error) {
	inUse, slot, err := s.acquireWorkspaceSlot(tx, start.Run.WorkspaceID, start.Plan, start.Plan.Limits().QueuedRuns)
	switch {
	case err != nil || !slot:
		return "", false, err
	case start.Node != "":
		return start.Node, true, nil
	default:
		tx.jobs = append(tx.jobs, run.Job{
			Wake: run.Wake{
				RunID: start.Run.ID, WorkspaceID: start.Run.WorkspaceID, WorkflowID: start.Run.WorkflowID,
				Epoch: 1, At: start.Run.StartedAt, Plan: start.Plan,
			},
			InFlight: inUse,
		})
		return "", true, nil
	}
}

// enqueueInCluster adds a new run to the queue.
func (s *Store) enqueueInCluster(tx *transaction, start run.Start, admitted bool) error {
	if cached, ok := s.subscribers.get(start.Run.WorkspaceID); ok && !cached.nearLimit && tx.optimistic {
		// The workspace's lock comes last.
		if err := s.insertQueued(tx, start, start.Node, true, true); err != nil {
			return err
		}
		return s.expectWorkspaceSlot(tx, start.Run.WorkspaceID, start.Plan, cached.version)
	}
	node, slot := "", false
	if admitted {
		var err error
		if node, slot, err = s.admit(tx, start); err != nil {
			return err
		}
	}
	return s.insertQueued(tx, start, node, admitted, slot)
}

// insertQueued writes the row of a new run in the queue: owned by a node, with a
// job, throttled, or held back by its concurrency limit.
func (s *Store) insertQueued(tx *transaction, start run.Start, node string, admitted, slot bool) error {
	r := start.Run
	var limit, wakeAt any
	if start.Concurrency != nil {
		limit = start.Concurrency.Limit
	}
	if admitted && node == "" {
		wakeAt = r.StartedAt
	}
	tx.afterCommit(func() { s.announceStart(start, node != "") })
	return tx.Do(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, share_key, share_limit, turn, slot, parked)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10)`,
		r.ID, r.WorkspaceID, r.WorkflowID, database.OrNil(node), wakeAt, database.OrNil(r.ConcurrencyKey), limit, admitted, slot, admitted && !slot)
}

// wakeInCluster moves a run that no node executes to its next state.
func (s *Store) wakeInCluster(tx *transaction, runID string) error {
	found, err := database.One(tx, selectWake+`WHERE run_queue.run_id = $1 AND NOT run_queue.slot AND NOT run_queue.parked`+notDeleted, []any{runID}, scanWake)
	if err != nil || found == nil { // nil: it already has a job or is throttled
		return err
	}
	now := clock.Now()
	switch wake := *found; {
	case !wake.At.After(now):
		return s.enqueueOrThrottle(tx, wake)
	case wake.At.Before(now.Add(shortWait)) && !s.cluster.Draining():
		if err := tx.Do(`UPDATE run_queue SET node = $1 WHERE run_id = $2`, s.cluster.Node, runID); err != nil {
			return err
		}
		tx.afterCommit(func() { s.notify.Wake(wake) })
	default:
		tx.jobs = append(tx.jobs, run.Job{Wake: wake})
	}
	return nil
}

// enqueueOrThrottle enqueues a job for a run that is due, or throttles the run.
func (s *Store) enqueueOrThrottle(tx *transaction, wake run.Wake) error {
	inUse, granted, err := s.acquireWorkspaceSlot(tx, wake.WorkspaceID, wake.Plan, noQueueLimit)
	if err != nil {
		return err
	}
	if !granted {
		return tx.Do(`UPDATE run_queue SET node = NULL, parked = true WHERE run_id = $1`, wake.RunID)
	}
	tx.jobs = append(tx.jobs, run.Job{Wake: wake, InFlight: inUse})
	return tx.Do(`UPDATE run_queue SET node = NULL, slot = true WHERE run_id = $1`, wake.RunID)
}

// noQueueLimit applies to runs that were accepted before: they always fit.
const noQueueLimit = 1 << 30

// enqueueJobs enqueues the jobs that the transaction collected.
func (s *Store) enqueueJobs(ctx context.Context, tx *transaction) error {
	if len(tx.jobs) == 0 {
		return nil
	}
	return s.cluster.EnqueueJobs(ctx, tx.Conn, tx.jobs)
}

// Claim makes this node the owner of a run and calls with in the same
// transaction. If the run is not due yet, the node keeps a local timer for it.
func (s *Store) Claim(ctx context.Context, wake run.Wake, with func(context.Context, database.Conn) error) (run.Wake, run.Claimed, error) {
	var (
		claimed run.Wake
		outcome run.Claimed
	)
	err := s.write(ctx, func(tx *transaction) error {
		claimed, outcome = wake, run.ClaimStale
		if err := with(ctx, tx.Conn); err != nil {
			return err
		}
		slot := false
		found, err := database.One(tx, `SELECT run_queue.slot, `+wakeColumns+` WHERE run_queue.run_id = $1 AND run_queue.turn AND NOT run_queue.parked
			AND run_queue.epoch = $2 AND (run_queue.node IS NULL OR run_queue.node = $3 AND NOT run_queue.slot)`+notDeleted+` FOR UPDATE OF run_queue`,
			[]any{wake.RunID, wake.Epoch, s.cluster.Node}, func(r database.Row) (w run.Wake, err error) {
				err = r.Scan(&slot, &w.RunID, &w.WorkspaceID, &w.WorkflowID, &w.Epoch, &w.At, &w.Crashes, (*string)(&w.Plan))
				return w, err
			})
		if err != nil || found == nil {
			return err
		}
		claimed = *found
		outcome, err = s.claim(tx, &claimed, slot)
		return err
	})
	return claimed, outcome, err
}

func (s *Store) claim(tx *transaction, wake *run.Wake, slot bool) (run.Claimed, error) {
	if !slot && wake.At.After(clock.Now()) {
		return run.ClaimLocalTimer, tx.Do(`UPDATE run_queue SET node = $1 WHERE run_id = $2`, s.cluster.Node, wake.RunID)
	}
	if !slot {
		_, granted, err := s.acquireWorkspaceSlot(tx, wake.WorkspaceID, wake.Plan, noQueueLimit)
		if err != nil {
			return run.ClaimStale, err
		}
		if !granted {
			return run.ClaimThrottled, tx.Do(`UPDATE run_queue SET node = NULL, parked = true WHERE run_id = $1`, wake.RunID)
		}
	}
	wake.Epoch++
	wake.Owned = true
	return run.ClaimOwned, tx.Do(`UPDATE run_queue SET epoch = $1, node = $2, wake_at = NULL, slot = true WHERE run_id = $3`, wake.Epoch, s.cluster.Node, wake.RunID)
}
