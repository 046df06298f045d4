package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// Cluster is what the store knows of the nodes that share it. Without one there
// is a single process, and who may execute how many runs is counted in its
// memory; with one it is counted here, in workspace_load, under the lock of the
// workspace:
//
//   - a run has a slot while it is executed or on its way to a node;
//   - a run that is due while its workspace has no free slot is parked;
//   - a run that waits for a time or an answer has neither.
//
// The statements of this file are for PostgreSQL only.
type Cluster struct {
	// Node is this one.
	Node string
	// Limit is how many runs of a workspace may have a slot.
	Limit func(auth.Plan) int
	// Room keeps a place on this node for a run, if there is one.
	Room func(run.Wake) bool
	// Leaving says that this node takes up nothing more: it is about to stop, or
	// others take what it has.
	Leaving func() bool
	// Hand puts wake-ups on their way to any node, in the unit of the
	// connection.
	Hand func(context.Context, Conn, []run.Handover) error
	// Carried tells which of the given runs are on their way to a node.
	Carried func(context.Context, Conn, []string) (map[string]bool, error)
	// Freed tells, after the commit, that a workspace has runs parked and may
	// have a slot for them.
	Freed func(workspaceID string)
}

// OfCluster makes the store that of one of several nodes.
func (s *Store) OfCluster(c Cluster) { s.cluster = &c }

// shortWait is how long a run may wait in the memory of the node that had it
// last.
const shortWait = 10 * time.Second

// load is what a unit changes in the load of a workspace.
type load struct{ freed, unparked int }

// free gives back the slot of a run with the end of the unit.
func (u *unit) free(workspaceID string, slots, parked int) {
	if slots+parked == 0 {
		return
	}
	if u.loads == nil {
		u.loads = map[string]load{}
	}
	l := u.loads[workspaceID]
	u.loads[workspaceID] = load{l.freed + slots, l.unparked + parked}
}

// drop removes the row of a run from the queue, for good.
func (s *Store) drop(u *unit, of run.Run) error {
	if s.cluster == nil {
		return u.Do(`DELETE FROM run_queue WHERE run_id = $1`, of.ID)
	}
	return u.Query(`DELETE FROM run_queue WHERE run_id = $1 RETURNING slot, parked`, []any{of.ID}, u.freeing(of.WorkspaceID))
}

// dropAll gives back what the runs of a workflow hold that is deleted, and voids
// their leases: who waits for one of these rows sees its new epoch, but not yet
// that the workflow is gone.
func (s *Store) dropAll(u *unit, workspaceID, workflowID string) error {
	if s.cluster == nil {
		return nil
	}
	if err := u.Query(`SELECT slot, parked FROM run_queue WHERE workflow_id = $1`+listed("workflow_id")+` ORDER BY run_id FOR UPDATE`,
		[]any{workflowID}, u.freeing(workspaceID)); err != nil {
		return err
	}
	return u.Do(`UPDATE run_queue SET epoch = epoch + 1, node = NULL, executing = NULL, slot = false, parked = false WHERE workflow_id = $1`+listed("workflow_id"), workflowID)
}

// freeing gives back what a row of the queue held.
func (u *unit) freeing(workspaceID string) func(Row) error {
	return func(r Row) error {
		var slot, parked bool
		if err := r.Scan(&slot, &parked); err != nil {
			return err
		}
		u.giveBack(workspaceID, slot, parked)
		return nil
	}
}

func (u *unit) giveBack(workspaceID string, slot, parked bool) {
	switch {
	case slot:
		u.free(workspaceID, 1, 0)
	case parked:
		u.free(workspaceID, 0, 1)
	}
}

// settleLoads writes what has become of slots.
func (s *Store) settleLoads(u *unit) error {
	for _, workspaceID := range slices.Sorted(maps.Keys(u.loads)) {
		if err := s.settleLoad(u, workspaceID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) settleLoad(u *unit, workspaceID string) error {
	l, ok := u.loads[workspaceID]
	if !ok {
		return nil
	}
	delete(u.loads, workspaceID)
	if err := lockWorkspace(u, workspaceID); err != nil {
		return err
	}
	parked := 0
	u.afterCommit(func() {
		if parked > 0 && l.freed > 0 {
			s.cluster.Freed(workspaceID)
		}
	})
	if known, ok := s.audiences.recall(workspaceID); ok && u.expecting && l.unparked == 0 {
		u.saw(workspaceID, known.number)
		return u.Tally(`UPDATE workspace_load SET running = running - $1 WHERE workspace_id = $2 RETURNING parked, 1 / (audience = $3)::int`,
			int64(l.freed), []any{workspaceID, known.number}, func(r Row) error {
				var same int
				return r.Scan(&parked, &same)
			})
	}
	return u.Query(`UPDATE workspace_load SET running = running - $1, parked = parked - $2 WHERE workspace_id = $3 RETURNING parked, audience`,
		[]any{l.freed, l.unparked, workspaceID}, func(r Row) error {
			var number int64
			err := r.Scan(&parked, &number)
			u.saw(workspaceID, number)
			return err
		})
}

// expectSlot gives a run of the workspace a slot and takes for granted that there
// is one, and that its audience has the number.
func (s *Store) expectSlot(u *unit, workspaceID string, plan auth.Plan, number int64) error {
	if err := lockWorkspace(u, workspaceID); err != nil {
		return err
	}
	u.saw(workspaceID, number)
	limit := s.cluster.Limit(plan)
	// Without a row the number is another one too.
	return u.Tally(`INSERT INTO workspace_load AS l (workspace_id, running, parked) VALUES ($2, $1, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET running = l.running + $1
		RETURNING l.running, 1 / (l.running <= $3 AND l.audience = $4)::int`, 1, []any{workspaceID, limit, number}, func(r Row) error {
		var under, held int
		err := r.Scan(&under, &held)
		s.audiences.note(workspaceID, roomy(under, limit))
		return err
	})
}

// roomy tells whether a workspace has so many slots left that the next unit can
// expect one.
func roomy(under, limit int) bool { return limit >= 16 && under <= limit*3/4 }

// takeSlot gives a run of the workspace a slot, if one is free, and answers how
// many are taken then. If none is, the run is counted as parked, unless so many
// are already: then run.ErrQueueFull is answered. It is one statement: units of a
// group share their locks, and no other may come in between.
func (s *Store) takeSlot(u *unit, workspaceID string, plan auth.Plan, atMost int) (under int, given bool, err error) {
	if err := s.settleLoad(u, workspaceID); err != nil {
		return 0, false, err
	}
	if err := lockWorkspace(u, workspaceID); err != nil {
		return 0, false, err
	}
	counted, limit := false, s.cluster.Limit(plan)
	err = u.Query(`INSERT INTO workspace_load AS l (workspace_id, running, parked) VALUES ($1, 1, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET given = l.running < $2,
		running = CASE WHEN l.running < $2 THEN l.running + 1 ELSE l.running END,
		parked = CASE WHEN l.running < $2 THEN l.parked ELSE l.parked + 1 END
		WHERE l.running < $2 OR l.parked < $3 RETURNING l.running, l.given, l.audience`,
		[]any{workspaceID, limit, atMost}, func(r Row) error {
			counted = true
			var number int64
			err := r.Scan(&under, &given, &number)
			u.saw(workspaceID, number)
			return err
		})
	if err == nil && !counted {
		err = run.ErrQueueFull
	}
	s.audiences.note(workspaceID, given && roomy(under, limit))
	return under, given, err
}

// admit finds a place for a new run: on this node, on its way to another, or
// parked. The place that was kept for it here is not needed in the latter cases.
func (s *Store) admit(u *unit, start run.Start) (node string, slot bool, err error) {
	under, slot, err := s.takeSlot(u, start.Run.WorkspaceID, start.Plan, start.Plan.Limits().QueuedRuns)
	switch {
	case err != nil || !slot:
		return "", false, err
	case start.Node != "":
		return start.Node, true, nil
	default:
		u.handovers = append(u.handovers, run.Handover{
			Wake: run.Wake{
				RunID: start.Run.ID, WorkspaceID: start.Run.WorkspaceID, WorkflowID: start.Run.WorkflowID,
				Epoch: 1, At: start.Run.StartedAt, Plan: start.Plan,
			},
			Under: under,
		})
		return "", true, nil
	}
}

// enqueueInCluster puts a new run into the queue.
func (s *Store) enqueueInCluster(u *unit, start run.Start, turn bool) error {
	if known, ok := s.audiences.recall(start.Run.WorkspaceID); ok && !known.tight && u.expecting {
		// The lock of the workspace comes last.
		if err := s.insertQueued(u, start, start.Node, true, true); err != nil {
			return err
		}
		return s.expectSlot(u, start.Run.WorkspaceID, start.Plan, known.number)
	}
	node, slot := "", false
	if turn {
		var err error
		if node, slot, err = s.admit(u, start); err != nil {
			return err
		}
	}
	return s.insertQueued(u, start, node, turn, slot)
}

// insertQueued writes the row of a new run in the queue: it is in the hands of a
// node, on its way, parked, or waits for its turn.
func (s *Store) insertQueued(u *unit, start run.Start, node string, turn, slot bool) error {
	r := start.Run
	var limit, wakeAt any
	if start.Share != nil {
		limit = start.Share.Limit
	}
	if turn && node == "" {
		wakeAt = r.StartedAt
	}
	u.afterCommit(func() { s.accepted(start, node != "") })
	return u.Do(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, share_key, share_limit, turn, slot, parked)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10)`,
		r.ID, r.WorkspaceID, r.WorkflowID, orNil(node), wakeAt, orNil(r.ShareKey), limit, turn, slot, turn && !slot)
}

// wakeInCluster brings a run that nobody works on to where it goes on.
func (s *Store) wakeInCluster(u *unit, runID string) error {
	found, err := one(u, selectWake+`WHERE run_queue.run_id = $1 AND NOT run_queue.slot AND NOT run_queue.parked`+notDeleted, []any{runID}, scanWake)
	if err != nil || found == nil { // nil: it is on its way already
		return err
	}
	now := clock.Now()
	switch wake := *found; {
	case !wake.At.After(now):
		return s.signal(u, wake)
	case wake.At.Before(now.Add(shortWait)) && !s.cluster.Leaving():
		if err := u.Do(`UPDATE run_queue SET node = $1 WHERE run_id = $2`, s.cluster.Node, runID); err != nil {
			return err
		}
		u.afterCommit(func() { s.notify.Wake(wake) })
	default:
		u.handovers = append(u.handovers, run.Handover{Wake: wake})
	}
	return nil
}

// signal puts a run that is due on its way, or parks it.
func (s *Store) signal(u *unit, wake run.Wake) error {
	under, given, err := s.takeSlot(u, wake.WorkspaceID, wake.Plan, maxParked)
	if err != nil {
		return err
	}
	if !given {
		return u.Do(`UPDATE run_queue SET node = NULL, parked = true WHERE run_id = $1`, wake.RunID)
	}
	u.handovers = append(u.handovers, run.Handover{Wake: wake, Under: under})
	return u.Do(`UPDATE run_queue SET node = NULL, slot = true WHERE run_id = $1`, wake.RunID)
}

// maxParked is for runs that were accepted before: there is always room for
// them.
const maxParked = 1 << 30

// hand puts the runs of a unit on their way.
func (s *Store) hand(ctx context.Context, u *unit) error {
	if len(u.handovers) == 0 {
		return nil
	}
	return s.cluster.Hand(ctx, u.Conn, u.handovers)
}

// Claim takes up a run for this node, and does what belongs to it in the same
// unit. One that is not due yet is watched by the node until it is.
func (s *Store) Claim(ctx context.Context, wake run.Wake, with func(context.Context, Conn) error) (run.Wake, run.Claimed, error) {
	var (
		claimed run.Wake
		outcome run.Claimed
	)
	err := s.write(ctx, func(u *unit) error {
		claimed, outcome = wake, run.ClaimStale
		if err := with(ctx, u.Conn); err != nil {
			return err
		}
		slot := false
		found, err := one(u, `SELECT run_queue.slot, `+wakeColumns+` WHERE run_queue.run_id = $1 AND run_queue.turn AND NOT run_queue.parked
			AND run_queue.epoch = $2 AND (run_queue.node IS NULL OR run_queue.node = $3 AND NOT run_queue.slot)`+notDeleted+` FOR UPDATE OF run_queue`,
			[]any{wake.RunID, wake.Epoch, s.cluster.Node}, func(r Row) (w run.Wake, err error) {
				err = r.Scan(&slot, &w.RunID, &w.WorkspaceID, &w.WorkflowID, &w.Epoch, &w.At, &w.Crashes, (*string)(&w.Plan))
				return w, err
			})
		if err != nil || found == nil {
			return err
		}
		claimed = *found
		outcome, err = s.claim(u, &claimed, slot)
		return err
	})
	return claimed, outcome, err
}

func (s *Store) claim(u *unit, wake *run.Wake, slot bool) (run.Claimed, error) {
	if !slot && wake.At.After(clock.Now()) {
		return run.ClaimArmed, u.Do(`UPDATE run_queue SET node = $1 WHERE run_id = $2`, s.cluster.Node, wake.RunID)
	}
	if !slot {
		_, given, err := s.takeSlot(u, wake.WorkspaceID, wake.Plan, maxParked)
		if err != nil {
			return run.ClaimStale, err
		}
		if !given {
			return run.ClaimParked, u.Do(`UPDATE run_queue SET node = NULL, parked = true WHERE run_id = $1`, wake.RunID)
		}
	}
	wake.Epoch++
	wake.Owned = true
	return run.ClaimOwned, u.Do(`UPDATE run_queue SET epoch = $1, node = $2, wake_at = NULL, slot = true WHERE run_id = $3`, wake.Epoch, s.cluster.Node, wake.RunID)
}
