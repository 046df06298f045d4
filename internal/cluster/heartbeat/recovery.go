package heartbeat

import (
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
)

// watchTrust drops all runs when the last heartbeat is too old, before other nodes
// take them over.
func (k *Keeper) watchTrust(ctx context.Context) {
	for {
		k.mu.Lock()
		left := time.Until(k.trusted)
		k.mu.Unlock()
		if left <= 0 {
			k.dropRuns()
			left = k.interval() / 10
		}
		if !clock.Sleep(ctx, left) {
			return
		}
	}
}

// dropRuns aborts all runs, once until the next successful heartbeat.
func (k *Keeper) dropRuns() {
	k.mu.Lock()
	again := k.expired
	k.expired, k.dropped, k.trusted = true, true, time.Time{}
	if !again {
		k.stats.Lost++
	}
	k.mu.Unlock()
	if again {
		return
	}
	k.log.Warn("the last heartbeat of this node is too old; dropping its runs")
	k.dispatcher.Forget()
	k.executor.AbortAll()
}

// reconcileLoop reconciles after each heartbeat and on request. After a heartbeat it
// also resumes owned runs that nothing executes.
func (k *Keeper) reconcileLoop(ctx context.Context) {
	for {
		select {
		case <-k.heartbeatOK:
			if ours, working, ok := k.reconcile(ctx); ok {
				k.resumeOwned(ours, working)
			}
		case <-k.reconcileRequested:
			k.reconcile(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// reconcile compares the runs that this node executes with those that it owns in the
// store. It aborts invalid leases, nudges runs with answers and sets missing timers.
// This also covers nodes that cannot listen for notifications. It returns the owned
// and the executing runs.
func (k *Keeper) reconcile(ctx context.Context) (ours map[string]run.OwnedRun, working map[string]bool, ok bool) {
	leases := k.executor.Leases()
	held, err := k.queue.OwnedRuns(ctx, k.node.ID)
	if err != nil {
		if ctx.Err() == nil {
			k.log.Warn("cannot read the runs of this node", "error", err)
		}
		return nil, nil, false
	}
	ours = make(map[string]run.OwnedRun, len(held))
	for _, h := range held {
		ours[h.RunID] = h
	}
	working = make(map[string]bool, len(leases))
	for _, lease := range leases {
		working[lease.RunID] = true
		h, ok := ours[lease.RunID]
		switch {
		case lease.Epoch == 0: // about to begin
		case !ok || h.LocalTimer || h.Epoch != lease.Epoch:
			k.executor.AbortLease(lease)
		case h.AnswerArrived:
			k.executor.Nudge(lease.RunID)
		}
	}
	for id, h := range ours {
		if h.LocalTimer && !working[id] && !k.dispatcher.Has(id) {
			k.dispatcher.Watch(h.Wake)
		}
	}
	return ours, working, true
}

// resumeOwned resumes owned runs that nothing executes. A run may just be passed from
// one goroutine to another, so it must be seen twice.
func (k *Keeper) resumeOwned(ours map[string]run.OwnedRun, working map[string]bool) {
	k.mu.Lock()
	before, sure := k.unclaimed, k.dropped
	k.unclaimed, k.dropped = map[string]bool{}, false
	k.mu.Unlock()
	for id, h := range ours {
		if h.LocalTimer || working[id] || k.dispatcher.Has(id) {
			continue
		}
		if !sure && !before[id] {
			k.mu.Lock()
			k.unclaimed[id] = true
			k.mu.Unlock()
			continue
		}
		k.dispatcher.Resume(h.Wake)
	}
}

// watchExpired takes over from other nodes when they expire.
func (k *Keeper) watchExpired(ctx context.Context) {
	timer := time.NewTimer(k.ttl)
	defer timer.Stop()
	for {
		select {
		case left := <-k.expiry:
			timer.Reset(left)
		case <-timer.C:
			k.recover(ctx)
			timer.Reset(k.ttl)
			pubsub.Signal(k.heartbeatNow) // the next heartbeat returns the next expiry
		case <-ctx.Done():
			return
		}
	}
}

func (k *Keeper) recover(ctx context.Context) {
	expired, err := withTimeout(ctx, k.registry.Expired)
	if err != nil {
		k.log.Warn("cannot look for expired nodes", "error", err)
		return
	}
	k.takeOver(ctx, expired)
}

func (k *Keeper) takeOver(ctx context.Context, expired []string) {
	for _, id := range expired {
		k.terminateSessions(ctx, id)
		count, err := k.takeRuns(ctx, id, true)
		removed := false
		if err == nil {
			removed, err = withTimeout(ctx, func(ctx context.Context) (bool, error) { return k.registry.Forget(ctx, id) })
		}
		if err != nil {
			k.log.Warn("cannot take over all runs of an expired node; retrying", "node", id, "error", err)
			continue
		}
		if !removed && count == 0 { // it is alive again, or another node was faster
			continue
		}
		k.log.Info("a node has expired; took over its runs", "node", id, "runs", count)
		k.mu.Lock()
		k.stats.TakenOver += int64(count)
		k.mu.Unlock()
		k.executor.OnTakeover()
	}
}

// terminateSessions terminates the database sessions of an expired node. If it cannot,
// the takeover may take longer.
func (k *Keeper) terminateSessions(ctx context.Context, id string) {
	if _, err := withTimeout(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, k.registry.TerminateSessions(ctx, id) }); err != nil {
		k.log.Warn("cannot terminate the database sessions of an expired node", "node", id, "error", err)
	}
}

// registryTimeout limits calls of the registry. An unreachable database may never
// respond.
const registryTimeout = 5 * time.Second

func withTimeout[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	return call(ctx)
}

func (k *Keeper) takeRuns(ctx context.Context, id string, died bool) (int, error) {
	for total := 0; ; {
		count, more, err := k.queue.TakeOver(ctx, id, died)
		if total += count; err != nil || !more {
			return total, err
		}
	}
}

const (
	// maintenanceLease names the lease of the leader in the database. It must never change: nodes
	// of two releases would both lead.
	maintenanceLease = "tend"
	// maintenanceInterval is the time between maintenance rounds.
	maintenanceInterval = 10 * time.Second
	// recountRounds is the number of maintenance rounds between recounts of the runs
	// in flight of workspaces.
	recountRounds = 6
)

// runMaintenance repairs what should not happen: due runs without a job, and slots that
// were not released. Only the leader does it.
func (k *Keeper) runMaintenance(ctx context.Context) {
	var unknown []string
	for n := 0; ; n++ {
		leader, err := withTimeout(ctx, func(ctx context.Context) (bool, error) {
			return k.registry.TryLead(ctx, maintenanceLease, k.node.ID, 3*maintenanceInterval)
		})
		if err == nil && leader {
			k.sweep(ctx, n%recountRounds == 0)
			unknown = k.findUnknownNodes(ctx, unknown)
			if n%recountRounds == 0 {
				k.deleteStaleJobs(ctx)
			}
		} else {
			unknown = nil
		}
		if !clock.Sleep(ctx, maintenanceInterval) {
			return
		}
	}
}

func (k *Keeper) deleteStaleJobs(ctx context.Context) {
	if err := k.dispatcher.DeleteStaleJobs(ctx); err != nil && ctx.Err() == nil {
		k.log.Warn("cannot delete stale jobs", "error", err)
	}
}

func (k *Keeper) sweep(ctx context.Context, recount bool) {
	for more := true; more; {
		var (
			found     int
			throttled []string
			err       error
		)
		if found, more, throttled, err = k.queue.Sweep(ctx); err != nil {
			if ctx.Err() == nil {
				k.log.Warn("cannot look for orphaned runs", "error", err)
			}
			return
		}
		if found > 0 {
			k.log.Warn("requeued orphaned runs", "count", found)
			k.mu.Lock()
			k.stats.Found += int64(found)
			k.mu.Unlock()
		}
		for _, workspaceID := range throttled {
			if recount {
				k.recount(ctx, workspaceID)
			}
			k.dispatcher.SlotFreed(workspaceID)
		}
	}
}

// findUnknownNodes takes over from nodes that claimed runs after they were removed and
// died before their next heartbeat. A node that is alive sends one soon, so a node must
// be unknown twice in a row. It returns the nodes that are unknown now.
func (k *Keeper) findUnknownNodes(ctx context.Context, before []string) []string {
	unknown, err := k.queue.UnknownNodes(ctx)
	if err != nil && ctx.Err() == nil {
		k.log.Warn("cannot look for runs of unknown nodes", "error", err)
	}
	dead := slices.DeleteFunc(slices.Clone(unknown), func(id string) bool { return !slices.Contains(before, id) })
	k.takeOver(ctx, dead)
	return unknown
}

func (k *Keeper) recount(ctx context.Context, workspaceID string) {
	if wrong, err := k.queue.Recount(ctx, workspaceID); err == nil && wrong {
		k.log.Error("the number of runs in flight was wrong; corrected it", "workspace_id", workspaceID)
	}
}
