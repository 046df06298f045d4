package membership

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
func (m *Member) watchTrust(ctx context.Context) {
	for {
		m.mu.Lock()
		left := time.Until(m.trusted)
		m.mu.Unlock()
		if left <= 0 {
			m.dropRuns()
			left = m.interval() / 10
		}
		if !clock.Sleep(ctx, left) {
			return
		}
	}
}

// dropRuns aborts all runs, once until the next successful heartbeat.
func (m *Member) dropRuns() {
	m.mu.Lock()
	again := m.expired
	m.expired, m.dropped, m.trusted = true, true, time.Time{}
	if !again {
		m.stats.Lost++
	}
	m.mu.Unlock()
	if again {
		return
	}
	m.log.Warn("the last heartbeat of this node is too old; dropping its runs")
	m.executor.AbortAll()
}

// reconcileLoop reconciles after each heartbeat and on request. After a heartbeat it
// also resumes owned runs that nothing executes.
func (m *Member) reconcileLoop(ctx context.Context) {
	for {
		select {
		case <-m.heartbeatOK:
			if ours, working, ok := m.reconcile(ctx); ok {
				m.resumeOwned(ours, working)
			}
		case <-m.reconcileRequested:
			m.reconcile(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// reconcile compares the runs that this node executes with those that it owns in the
// store. It aborts invalid leases, nudges runs with answers and sets missing timers.
// This also covers nodes that cannot listen for notifications. It returns the owned
// and the executing runs.
func (m *Member) reconcile(ctx context.Context) (ours map[string]run.OwnedRun, working map[string]bool, ok bool) {
	leases := m.executor.Leases()
	held, err := m.queue.OwnedRuns(ctx, m.node.ID)
	if err != nil {
		if ctx.Err() == nil {
			m.log.Warn("cannot read the runs of this node", "error", err)
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
			m.executor.Abort(lease)
		case h.AnswerArrived:
			m.executor.Nudge(lease.RunID)
		}
	}
	for id, h := range ours {
		if h.LocalTimer && !working[id] && !m.executor.Has(id) {
			m.executor.Watch(h.Wake)
		}
	}
	return ours, working, true
}

// resumeOwned resumes owned runs that nothing executes. A run may just be passed from
// one goroutine to another, so it must be seen twice.
func (m *Member) resumeOwned(ours map[string]run.OwnedRun, working map[string]bool) {
	m.mu.Lock()
	before, sure := m.unclaimed, m.dropped
	m.unclaimed, m.dropped = map[string]bool{}, false
	m.mu.Unlock()
	for id, h := range ours {
		if h.LocalTimer || working[id] || m.executor.Has(id) {
			continue
		}
		if !sure && !before[id] {
			m.mu.Lock()
			m.unclaimed[id] = true
			m.mu.Unlock()
			continue
		}
		m.executor.Resume(h.Wake)
	}
}

// watchExpired takes over from other nodes when they expire.
func (m *Member) watchExpired(ctx context.Context) {
	timer := time.NewTimer(m.ttl)
	defer timer.Stop()
	for {
		select {
		case left := <-m.expiry:
			timer.Reset(left)
		case <-timer.C:
			m.recover(ctx)
			timer.Reset(m.ttl)
			pubsub.Signal(m.heartbeatNow) // the next heartbeat returns the next expiry
		case <-ctx.Done():
			return
		}
	}
}

// recover takes over the runs of expired nodes.
func (m *Member) recover(ctx context.Context) {
	expired, err := withTimeout(ctx, m.registry.Expired)
	if err != nil {
		m.log.Warn("cannot look for expired nodes", "error", err)
		return
	}
	m.takeOver(ctx, expired)
}

// takeOver takes over the runs of expired nodes and removes the nodes.
func (m *Member) takeOver(ctx context.Context, expired []string) {
	for _, id := range expired {
		m.terminateSessions(ctx, id)
		count, err := m.takeRuns(ctx, id, true)
		removed := false
		if err == nil {
			removed, err = withTimeout(ctx, func(ctx context.Context) (bool, error) { return m.registry.Forget(ctx, id) })
		}
		if err != nil {
			m.log.Warn("cannot take over all runs of an expired node; retrying", "node", id, "error", err)
			continue
		}
		if !removed && count == 0 { // it is alive again, or another node was faster
			continue
		}
		m.log.Info("a node has expired; took over its runs", "node", id, "runs", count)
		m.mu.Lock()
		m.stats.TakenOver += int64(count)
		m.mu.Unlock()
		m.executor.OnTakeover()
	}
}

// terminateSessions terminates the database sessions of an expired node. If it cannot,
// the takeover may take longer.
func (m *Member) terminateSessions(ctx context.Context, id string) {
	if _, err := withTimeout(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.registry.TerminateSessions(ctx, id) }); err != nil {
		m.log.Warn("cannot terminate the database sessions of an expired node", "node", id, "error", err)
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

func (m *Member) takeRuns(ctx context.Context, id string, died bool) (int, error) {
	for total := 0; ; {
		count, more, err := m.queue.TakeOver(ctx, id, died)
		if total += count; err != nil || !more {
			return total, err
		}
	}
}

const (
	// maintenanceLease names the lease of the leader in the database. Nodes of all
	// versions must agree on it.
	maintenanceLease = "tend"
	// maintenanceInterval is the time between maintenance rounds.
	maintenanceInterval = 10 * time.Second
	// recountRounds is the number of maintenance rounds between recounts of the runs
	// in flight of workspaces.
	recountRounds = 6
)

// runMaintenance repairs what should not happen: due runs without a job, and slots that
// were not released. Only the leader does it.
func (m *Member) runMaintenance(ctx context.Context) {
	var unknown []string
	for n := 0; ; n++ {
		leader, err := withTimeout(ctx, func(ctx context.Context) (bool, error) {
			return m.registry.TryLead(ctx, maintenanceLease, m.node.ID, 3*maintenanceInterval)
		})
		if err == nil && leader {
			m.sweep(ctx, n%recountRounds == 0)
			unknown = m.findUnknownNodes(ctx, unknown)
			if n%recountRounds == 0 {
				m.deleteStaleJobs(ctx)
			}
		} else {
			unknown = nil
		}
		if !clock.Sleep(ctx, maintenanceInterval) {
			return
		}
	}
}

func (m *Member) deleteStaleJobs(ctx context.Context) {
	if err := m.executor.DeleteStaleJobs(ctx); err != nil && ctx.Err() == nil {
		m.log.Warn("cannot delete stale jobs", "error", err)
	}
}

func (m *Member) sweep(ctx context.Context, recount bool) {
	for more := true; more; {
		var (
			found     int
			throttled []string
			err       error
		)
		if found, more, throttled, err = m.queue.Sweep(ctx); err != nil {
			if ctx.Err() == nil {
				m.log.Warn("cannot look for orphaned runs", "error", err)
			}
			return
		}
		if found > 0 {
			m.log.Warn("requeued orphaned runs", "count", found)
			m.mu.Lock()
			m.stats.Found += int64(found)
			m.mu.Unlock()
		}
		for _, workspaceID := range throttled {
			if recount {
				m.recount(ctx, workspaceID)
			}
			m.executor.AdmitThrottled(workspaceID)
		}
	}
}

// findUnknownNodes takes over from nodes that claimed runs after they were removed and
// died before their next heartbeat. A node that is alive sends one soon, so a node must
// be unknown twice in a row. It returns the nodes that are unknown now.
func (m *Member) findUnknownNodes(ctx context.Context, before []string) []string {
	unknown, err := m.queue.UnknownNodes(ctx)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("cannot look for runs of unknown nodes", "error", err)
	}
	dead := slices.DeleteFunc(slices.Clone(unknown), func(id string) bool { return !slices.Contains(before, id) })
	m.takeOver(ctx, dead)
	return unknown
}

func (m *Member) recount(ctx context.Context, workspaceID string) {
	if wrong, err := m.queue.Recount(ctx, workspaceID); err == nil && wrong {
		m.log.Error("the number of runs in flight was wrong; corrected it", "workspace_id", workspaceID)
	}
}
