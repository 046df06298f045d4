package runqueue

import (
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

type load struct{ freed, unthrottled int }

// addFreed records slots and throttled runs to subtract from the workspace's load
// at the end of the transaction.
func (t *clusterTransaction) addFreed(workspaceID string, slots, throttled int) {
	if slots+throttled == 0 {
		return
	}
	if t.loads == nil {
		t.loads = map[string]load{}
	}
	l := t.loads[workspaceID]
	t.loads[workspaceID] = load{l.freed + slots, l.unthrottled + throttled}
}

// scanFreed returns a function that frees what a row of the queue holds.
func (t *clusterTransaction) scanFreed(workspaceID string) func(database.Row) error {
	return func(r database.Row) error {
		var slot, throttled bool
		if err := r.Scan(&slot, &throttled); err != nil {
			return err
		}
		t.free(workspaceID, slot, throttled)
		return nil
	}
}

func (t *clusterTransaction) free(workspaceID string, slot, throttled bool) {
	switch {
	case slot:
		t.addFreed(workspaceID, 1, 0)
	case throttled:
		t.addFreed(workspaceID, 0, 1)
	}
}

func (t *clusterTransaction) writeLoads() error {
	for _, workspaceID := range slices.Sorted(maps.Keys(t.loads)) {
		if err := t.writeLoad(workspaceID); err != nil {
			return err
		}
	}
	return nil
}

func (t *clusterTransaction) writeLoad(workspaceID string) error {
	l, ok := t.loads[workspaceID]
	if !ok {
		return nil
	}
	delete(t.loads, workspaceID)
	if err := t.Lock(database.WorkspaceLock(workspaceID)); err != nil {
		return err
	}
	throttled := 0
	t.AfterCommit(func() {
		if throttled > 0 && l.freed > 0 {
			t.queue.SlotFreed(workspaceID)
		}
	})
	if cached, ok := t.queue.workspaces.get(workspaceID); ok && t.Optimistic() && l.unthrottled == 0 {
		t.noteSubscriberVersion(workspaceID, cached.subscriberVersion)
		return t.Tally(`UPDATE workspace_load SET running = running - $1 WHERE workspace_id = $2 RETURNING throttled, 1 / (subscribers_version = $3)::int`,
			int64(l.freed), []any{workspaceID, cached.subscriberVersion}, func(r database.Row) error {
				var unchanged int
				return r.Scan(&throttled, &unchanged)
			})
	}
	return t.Query(`UPDATE workspace_load SET running = running - $1, throttled = throttled - $2 WHERE workspace_id = $3 RETURNING throttled, subscribers_version`,
		[]any{l.freed, l.unthrottled, workspaceID}, func(r database.Row) error {
			var version int64
			err := r.Scan(&throttled, &version)
			t.noteSubscriberVersion(workspaceID, version)
			return err
		})
}

// expectSlot acquires a slot for a run. It expects that one is free and that the
// subscribers still have the given version; otherwise the transaction is rolled back.
func (t *clusterTransaction) expectSlot(workspaceID string, plan auth.Plan, version int64) error {
	if err := t.Lock(database.WorkspaceLock(workspaceID)); err != nil {
		return err
	}
	t.noteSubscriberVersion(workspaceID, version)
	limit := t.queue.Limit(plan)
	// Without a row the version does not match either.
	return t.Tally(`INSERT INTO workspace_load AS l (workspace_id, running, throttled) VALUES ($2, $1, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET running = l.running + $1
		RETURNING l.running, 1 / (l.running <= $3 AND l.subscribers_version = $4)::int`, 1, []any{workspaceID, limit, version}, func(r database.Row) error {
		var inUse, ok int
		err := r.Scan(&inUse, &ok)
		t.queue.workspaces.setHeadroom(workspaceID, hasHeadroom(inUse, limit))
		return err
	})
}

// hasHeadroom reports whether a workspace has enough free slots for the next transaction to expect
// one. With few, the expectation would often fail, and the transaction would have to be run again.
func hasHeadroom(inUse, limit int) bool { return limit >= 16 && inUse <= limit*3/4 }

// noQueueLimit applies to runs that were accepted before: they always fit.
const noQueueLimit = 1 << 30

// acquireSlot acquires a slot for a run if one is free, and returns how many are then
// in use. If none is free, it counts the run as throttled, or returns run.ErrQueueFull
// if maxThrottled runs already are. It is a single statement because transactions of
// a group share their locks, and no other may come in between.
func (t *clusterTransaction) acquireSlot(workspaceID string, plan auth.Plan, maxThrottled int) (inUse int, granted bool, err error) {
	if err := t.writeLoad(workspaceID); err != nil {
		return 0, false, err
	}
	if err := t.Lock(database.WorkspaceLock(workspaceID)); err != nil {
		return 0, false, err
	}
	counted, limit := false, t.queue.Limit(plan)
	err = t.Query(`INSERT INTO workspace_load AS l (workspace_id, running, throttled) VALUES ($1, 1, 0)
		ON CONFLICT (workspace_id) DO UPDATE SET slot_granted = l.running < $2,
		running = CASE WHEN l.running < $2 THEN l.running + 1 ELSE l.running END,
		throttled = CASE WHEN l.running < $2 THEN l.throttled ELSE l.throttled + 1 END
		WHERE l.running < $2 OR l.throttled < $3 RETURNING l.running, l.slot_granted, l.subscribers_version`,
		[]any{workspaceID, limit, maxThrottled}, func(r database.Row) error {
			counted = true
			var version int64
			err := r.Scan(&inUse, &granted, &version)
			t.noteSubscriberVersion(workspaceID, version)
			return err
		})
	if err == nil && !counted {
		err = run.ErrQueueFull
	}
	t.queue.workspaces.setHeadroom(workspaceID, granted && hasHeadroom(inUse, limit))
	return inUse, granted, err
}
