package store

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// passed bounds how many runs one unit passes slots to.
const passed = 100

// PassOn gives the free slots of a workspace to runs that are parked, those
// first that have waited longest: here, where there is room, or on their way to
// any node. It answers true when there may be more.
func (s *Store) PassOn(ctx context.Context, workspaceID string) (bool, error) {
	more := false
	err := s.write(ctx, func(u *unit) error {
		more = false
		if err := lockWorkspace(u, workspaceID); err != nil {
			return err
		}
		var (
			running, parked int
			plan            auth.Plan
		)
		if err := u.Query(`SELECT l.running, l.parked, w.plan FROM workspace_load l JOIN workspaces w ON w.id = l.workspace_id WHERE l.workspace_id = $1`,
			[]any{workspaceID}, func(r Row) error { return r.Scan(&running, &parked, (*string)(&plan)) }); err != nil {
			return err
		}
		free := min(parked, s.cluster.Limit(plan)-running, passed)
		if free <= 0 {
			return nil
		}
		// One that is just being cancelled or answered is passed over.
		waiting, err := list(u, selectWake+`WHERE run_queue.workspace_id = $1 AND run_queue.parked ORDER BY run_queue.wake_at, run_queue.run_id
			LIMIT $2 FOR UPDATE OF run_queue SKIP LOCKED`, []any{workspaceID, free}, scanWake)
		if err != nil {
			return err
		}
		for i, wake := range waiting {
			if err := s.pass(u, wake, running+i+1); err != nil {
				return err
			}
		}
		more = len(waiting) == passed
		return u.Do(`UPDATE workspace_load SET running = running + $1, parked = parked - $1 WHERE workspace_id = $2`, len(waiting), workspaceID)
	})
	return more && err == nil, err
}

// pass gives a run that was parked a slot.
func (s *Store) pass(u *unit, wake run.Wake, under int) error {
	if wake.Isolated() || !s.cluster.Room(wake) {
		u.handovers = append(u.handovers, run.Handover{Wake: wake, Under: under})
		return u.Do(`UPDATE run_queue SET parked = false, slot = true WHERE run_id = $1`, wake.RunID)
	}
	wake.Epoch++
	wake.Owned = true
	u.afterCommit(func() { s.notify.Wake(wake) })
	return u.Do(`UPDATE run_queue SET parked = false, slot = true, node = $1, epoch = $2, wake_at = NULL WHERE run_id = $3`,
		s.cluster.Node, wake.Epoch, wake.RunID)
}

// taken bounds how many runs one unit takes from a node.
const taken = 200

// TakeFrom takes the runs of a node away from it and puts them on their way to
// others: the node is dead, or about to leave. From one that is alive, again
// maybe, nothing is taken. What a node was executing when it died is held against
// those runs. It answers true when there may be more.
func (s *Store) TakeFrom(ctx context.Context, node string, died bool) (count int, more bool, err error) {
	blame := ``
	if died {
		blame = `crashes = CASE WHEN executing IS NULL THEN crashes WHEN blamed = executing THEN crashes + 1 ELSE 1 END,
			blamed = COALESCE(executing, blamed), `
	}
	err = s.write(ctx, func(u *unit) error {
		wakes, err := list(u, `UPDATE run_queue SET epoch = epoch + 1, node = NULL, `+blame+`executing = NULL, wake_at = COALESCE(wake_at, $3)
			FROM workspaces s WHERE s.id = run_queue.workspace_id
			AND run_id IN (SELECT run_id FROM run_queue WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND NOT dead) ORDER BY run_id LIMIT $2 FOR UPDATE)
			RETURNING `+wakeFields, []any{node, taken, clock.Now()}, scanWake)
		if err != nil {
			return err
		}
		for _, wake := range wakes {
			u.handovers = append(u.handovers, run.Handover{Wake: wake})
		}
		count, more = len(wakes), len(wakes) == taken
		return nil
	})
	return count, more && err == nil, err
}

// GiveBack puts runs that this node has, and that nobody works on here, on their
// way to any node. One that has been taken up since stays where it is.
func (s *Store) GiveBack(ctx context.Context, runs []run.Wake) error {
	for some := range slices.Chunk(runs, taken) {
		err := s.write(ctx, func(u *unit) error {
			now := clock.Now()
			for _, r := range some {
				found, err := one(u, `UPDATE run_queue SET epoch = epoch + 1, node = NULL, executing = NULL, wake_at = COALESCE(wake_at, $1)
					FROM workspaces s WHERE s.id = run_queue.workspace_id AND run_id = $2 AND epoch = $3 AND node = $4
					RETURNING `+wakeFields, []any{now, r.RunID, r.Epoch, s.cluster.Node}, scanWake)
				if err != nil {
					return err
				}
				if found != nil {
					u.handovers = append(u.handovers, run.Handover{Wake: *found})
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

// lostAfter is after which time a run that is due and on nobody's way is looked for.
const lostAfter = 15 * time.Second

// Sweep finds runs that nobody is bringing to a node, and workspaces that have
// runs parked, which may have slots for them: after an import all runs are like
// that, else nothing should be, and nothing like it lasts. It answers true when
// there may be more.
//
// When a run was due stays as it is: that tells how long it has waited. So Sweep
// goes along all that are late, each time on from where it was: many that are on
// their way and wait for room do not hide one behind them that is lost.
func (s *Store) Sweep(ctx context.Context) (found int, more bool, waiting []string, err error) {
	from := s.swept.Load()
	var next *late
	err = s.write(ctx, func(u *unit) error {
		wakes, err := s.findAdrift(ctx, u)
		if more, next = len(wakes) > 0, from; err == nil && !more {
			wakes, next, err = s.findLost(ctx, u, from)
			more = next != nil
		}
		if err != nil {
			return err
		}
		for _, wake := range wakes {
			u.handovers = append(u.handovers, run.Handover{Wake: wake})
		}
		found = len(wakes)
		waiting, err = list(u, `SELECT workspace_id FROM workspace_load WHERE parked > 0`, nil, scanText)
		return err
	})
	if err != nil {
		return 0, false, nil, err
	}
	s.swept.Store(next)
	return found, more, waiting, nil
}

// findAdrift lists runs that came with an import, whenever they are due, and lets
// them be like others from here on.
func (s *Store) findAdrift(ctx context.Context, u *unit) ([]run.Wake, error) {
	wakes, err := list(u, selectWake+`WHERE run_queue.adrift AND run_queue.node IS NULL AND NOT run_queue.parked AND run_queue.turn`+notDeleted+`
		LIMIT $1 FOR UPDATE OF run_queue SKIP LOCKED`, []any{taken}, scanWake)
	if err != nil || len(wakes) == 0 {
		return nil, err
	}
	ids := make([]string, len(wakes))
	for i, wake := range wakes {
		ids[i] = wake.RunID
		if err := u.Do(`UPDATE run_queue SET adrift = false WHERE run_id = $1`, wake.RunID); err != nil {
			return nil, err
		}
	}
	carried, err := s.cluster.Carried(ctx, u.Conn, ids)
	return slices.DeleteFunc(wakes, func(w run.Wake) bool { return carried[w.RunID] }), err
}

// late is a run that was due a while ago and that no node holds.
type late struct {
	at    time.Time
	runID string
}

// looked bounds how many of them are looked at in one go. To look is cheap: rows
// are locked only of those that are lost.
const looked = 500

// findLost lists those runs among the next that are late which nobody brings to a
// node. It answers where to go on; nil: that was all.
func (s *Store) findLost(ctx context.Context, u *unit, from *late) (lost []run.Wake, next *late, err error) {
	if from == nil {
		from = &late{}
	}
	due := clock.Now().Add(-lostAfter)
	all, err := list(u, `SELECT wake_at, run_id FROM run_queue WHERE node IS NULL AND NOT parked AND turn AND wake_at < $1
		AND (wake_at, run_id) > ($2, $3)`+notDeleted+` ORDER BY wake_at, run_id LIMIT $4`, []any{due, from.at, from.runID, looked},
		func(r Row) (l late, err error) {
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
	carried, err := s.cluster.Carried(ctx, u.Conn, ids)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range all {
		if carried[l.runID] {
			continue
		}
		// One that was taken up meanwhile has no time any more, or a later one.
		wake, err := one(u, selectWake+`WHERE run_queue.run_id = $1 AND NOT run_queue.parked AND run_queue.turn`+notDeleted+
			` FOR UPDATE OF run_queue SKIP LOCKED`, []any{l.runID}, scanWake)
		if err != nil {
			return nil, nil, err
		}
		if wake == nil || !wake.At.Equal(l.at) {
			continue
		}
		if lost = append(lost, *wake); len(lost) == taken {
			return lost, &all[i], nil
		}
	}
	if len(all) == looked {
		next = &all[looked-1]
	}
	return lost, next, nil
}

// Strays lists nodes that hold something although nobody knows them: they have
// taken it after their end.
func (s *Store) Strays(ctx context.Context) ([]string, error) {
	var strays []string
	err := s.read(ctx, func(c Conn) (err error) {
		strays, err = list(c, `SELECT DISTINCT node FROM run_queue q WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = q.node)
			UNION SELECT node FROM couriers c WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node) ORDER BY node`, nil, scanText)
		return err
	})
	return strays, err
}

// Recount corrects the load of a workspace should it ever be wrong, and answers
// whether it was.
func (s *Store) Recount(ctx context.Context, workspaceID string) (bool, error) {
	wrong := false
	err := s.write(ctx, func(u *unit) error {
		if err := lockWorkspace(u, workspaceID); err != nil {
			return err
		}
		n, err := u.Exec(`UPDATE workspace_load l SET running = c.running, parked = c.parked FROM
			(SELECT count(*) FILTER (WHERE slot) AS running, count(*) FILTER (WHERE parked) AS parked FROM run_queue WHERE workspace_id = $1`+listed("workspace_id")+`) c
			WHERE l.workspace_id = $1 AND (l.running <> c.running OR l.parked <> c.parked)`, workspaceID)
		wrong = n > 0
		return err
	})
	return wrong, err
}

// Held lists what a node has in its hands or watches, as the store knows it.
func (s *Store) Held(ctx context.Context, node string) ([]run.Held, error) {
	var held []run.Held
	err := s.read(ctx, func(c Conn) (err error) {
		held, err = list(c, `SELECT run_queue.wake_at IS NOT NULL, NOT run_queue.slot, `+wakeColumns+` WHERE run_queue.node = $1`+notDeleted, []any{node},
			func(r Row) (h run.Held, err error) {
				err = r.Scan(&h.News, &h.Armed, &h.RunID, &h.WorkspaceID, &h.WorkflowID, &h.Epoch, &h.At, &h.Crashes, (*string)(&h.Plan))
				return h, err
			})
		return err
	})
	return held, err
}
