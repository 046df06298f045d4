package runqueue

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/release"
	"github.com/stepmill/stepmill/internal/run"
)

// clusterTransaction collects what a transaction changes in the load of workspaces
// and what it passes on, and writes that at its end, under the locks of the
// workspaces.
type clusterTransaction struct {
	Tx
	queue              *Cluster
	loads              map[string]load
	toWake             []string // run ids
	jobs               []run.Job
	subscriberVersions map[string]int64 // by workspace
	subscribersDirty   map[string]bool  // workspaces whose subscribers this transaction changes
}

// Insert implements Transaction.
func (t *clusterTransaction) Insert(start run.Start, admitted bool) (bool, error) {
	workspaceID := start.Run.WorkspaceID
	if cached, ok := t.queue.workspaces.get(workspaceID); ok && !cached.nearLimit && t.Optimistic() {
		// The workspace's lock comes last, because it is held until the commit and other runs of
		// the workspace need it too.
		if err := t.insert(start, start.Node, true, true); err != nil {
			return false, err
		}
		return start.Node != "", t.expectSlot(workspaceID, start.Plan, cached.subscriberVersion)
	}
	node, slot := "", false
	if admitted {
		var err error
		if node, slot, err = t.place(start); err != nil {
			return false, err
		}
	}
	return node != "", t.insert(start, node, admitted, slot)
}

// place decides where a new run goes: to this node, into a job for any node, or
// among the throttled runs. In the latter two cases the capacity reserved on this node
// is not used.
func (t *clusterTransaction) place(start run.Start) (node string, slot bool, err error) {
	inUse, slot, err := t.acquireSlot(start.Run.WorkspaceID, start.Plan, start.Plan.Limits().QueuedRuns)
	switch {
	case err != nil || !slot:
		return "", false, err
	case start.Node != "":
		return start.Node, true, nil
	default:
		t.jobs = append(t.jobs, run.Job{
			Wake: run.Wake{
				RunID: start.Run.ID, WorkspaceID: start.Run.WorkspaceID, WorkflowID: start.Run.WorkflowID,
				Epoch: 1, At: clock.Past(start.Run.StartedAt), Plan: start.Plan, Level: start.Level,
			},
			InFlight: inUse,
		})
		return "", true, nil
	}
}

// insert writes the row of a new run: owned by a node, with a job, throttled, or held
// back by its concurrency limit.
func (t *clusterTransaction) insert(start run.Start, node string, admitted, slot bool) error {
	r := start.Run
	var limit, wakeAt any
	if start.Concurrency != nil {
		limit = start.Concurrency.Limit
	}
	if admitted && node == "" {
		wakeAt = clock.Past(r.StartedAt)
	}
	return t.Do(`INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch, node, wake_at, concurrency_key, concurrency_limit, admitted, slot, throttled, level)
		VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11)`,
		r.ID, r.WorkspaceID, r.WorkflowID, database.OrNil(node), wakeAt, database.OrNil(r.ConcurrencyKey), limit, admitted, slot, admitted && !slot, start.Level)
}

// Activate implements Transaction. This node already owns the run, or may not execute
// it.
func (t *clusterTransaction) Activate(wake run.Wake, node string) (bool, error) {
	return activate(t, wake, node, NotDeleted+` AND node = $2 AND slot`)
}

// Release implements Transaction.
func (t *clusterTransaction) Release(r run.Run) { t.addFreed(r.WorkspaceID, 1, 0) }

// Wake implements Transaction.
func (t *clusterTransaction) Wake(runID string) error {
	t.toWake = append(t.toWake, runID)
	return nil
}

// Remove implements Transaction.
func (t *clusterTransaction) Remove(r run.Run) error {
	return t.Query(`DELETE FROM run_queue WHERE run_id = $1 RETURNING slot, throttled`, []any{r.ID}, t.scanFreed(r.WorkspaceID))
}

// Purge implements Transaction.
func (t *clusterTransaction) Purge(runID string) (rows int, err error) {
	err = t.Query(`DELETE FROM run_queue WHERE run_id = $1 RETURNING workspace_id, slot, throttled`, []any{runID}, func(r database.Row) error {
		rows++
		var (
			workspaceID     string
			slot, throttled bool
		)
		if err := r.Scan(&workspaceID, &slot, &throttled); err != nil {
			return err
		}
		t.free(workspaceID, slot, throttled)
		return nil
	})
	return rows, err
}

// Revoke implements Transaction. A transaction that is blocked on one of these rows
// sees the new epoch, but does not see yet that the workflow is deleted.
func (t *clusterTransaction) Revoke(workspaceID, workflowID string) error {
	if err := t.Query(`SELECT slot, throttled FROM run_queue WHERE workflow_id = $1`+UseIndex("workflow_id")+` ORDER BY run_id FOR UPDATE`,
		[]any{workflowID}, t.scanFreed(workspaceID)); err != nil {
		return err
	}
	return t.Do(`UPDATE run_queue SET epoch = epoch + 1, node = NULL, executing = NULL, slot = false, throttled = false WHERE workflow_id = $1`+UseIndex("workflow_id"), workflowID)
}

// Settle implements Transaction.
func (t *clusterTransaction) Settle() error {
	for _, runID := range t.toWake {
		if err := t.passOn(runID); err != nil {
			return err
		}
	}
	if err := t.writeLoads(); err != nil {
		return err
	}
	return t.writeSubscriberVersions()
}

// Enqueue implements Transaction.
func (t *clusterTransaction) Enqueue(ctx context.Context) error {
	if len(t.jobs) == 0 {
		return nil
	}
	return t.queue.EnqueueJobs(ctx, t.Unwrap(), t.jobs)
}

// passOn moves a run that no node executes to its next state.
func (t *clusterTransaction) passOn(runID string) error {
	found, err := database.One(t, selectWake+`WHERE run_queue.run_id = $1 AND NOT run_queue.slot AND NOT run_queue.throttled`+NotDeleted, []any{runID}, scanWake)
	if err != nil || found == nil { // nil: it already has a job or is throttled
		return err
	}
	now := clock.Steady()
	switch wake := *found; {
	case !wake.At.After(now):
		return t.enqueueOrThrottle(wake)
	case wake.At.Before(now.Add(shortWait)) && wake.Level <= release.Known() && !t.queue.Draining():
		if err := t.Do(`UPDATE run_queue SET node = $1 WHERE run_id = $2`, t.queue.Node, runID); err != nil {
			return err
		}
		t.AfterCommit(func() { t.queue.Wake(wake) })
	default:
		t.jobs = append(t.jobs, run.Job{Wake: wake})
	}
	return nil
}

// enqueueOrThrottle enqueues a job for a run that is due, or throttles the run.
func (t *clusterTransaction) enqueueOrThrottle(wake run.Wake) error {
	inUse, granted, err := t.acquireSlot(wake.WorkspaceID, wake.Plan, noQueueLimit)
	if err != nil {
		return err
	}
	if !granted {
		return t.Do(`UPDATE run_queue SET node = NULL, throttled = true WHERE run_id = $1`, wake.RunID)
	}
	t.jobs = append(t.jobs, run.Job{Wake: wake, InFlight: inUse})
	return t.Do(`UPDATE run_queue SET node = NULL, slot = true WHERE run_id = $1`, wake.RunID)
}

// SubscribersChanged implements Transaction.
func (t *clusterTransaction) SubscribersChanged(workspaceID string) {
	if t.subscribersDirty == nil {
		t.subscribersDirty = map[string]bool{}
	}
	t.subscribersDirty[workspaceID] = true
}

// SubscriberVersion implements Transaction. Uncommitted changes of this transaction
// must not enter a cache.
func (t *clusterTransaction) SubscriberVersion(workspaceID string) (int64, bool) {
	version, ok := t.subscriberVersions[workspaceID]
	if !ok || t.subscribersDirty[workspaceID] {
		return 0, false
	}
	t.queue.workspaces.setVersion(workspaceID, version)
	return version, true
}

func (t *clusterTransaction) noteSubscriberVersion(workspaceID string, version int64) {
	if t.subscriberVersions == nil {
		t.subscriberVersions = map[string]int64{}
	}
	t.subscriberVersions[workspaceID] = version
}

// writeSubscriberVersions invalidates the cached subscribers on all nodes.
func (t *clusterTransaction) writeSubscriberVersions() error {
	for _, workspaceID := range slices.Sorted(maps.Keys(t.subscribersDirty)) {
		if err := t.Lock(database.WorkspaceLock(workspaceID)); err != nil {
			return err
		}
		if err := t.Do(`INSERT INTO workspace_load (workspace_id, running, throttled, subscribers_version) VALUES ($1, 0, 0, $2)
			ON CONFLICT (workspace_id) DO UPDATE SET subscribers_version = excluded.subscribers_version`, workspaceID, rand.Int64()); err != nil {
			return err
		}
	}
	return nil
}
