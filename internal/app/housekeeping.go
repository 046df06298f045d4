package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/usage"
)

const (
	housekeepEvery = 5 * time.Second
	// expireEvery is the interval for removing expired rows, pruneEvery the one for
	// removing old runs, which looks at all workflows.
	expireEvery = time.Minute
	pruneEvery  = 10 * time.Minute
	// purgeBatch and purgePause keep the purge from delaying other writes, because the embedded
	// database has one writer for all of them.
	purgeBatch = 500
	purgePause = 10 * time.Millisecond
	// keepTokens is far longer than the minute in which rate limit tokens count,
	// because the clocks of nodes differ.
	keepTokens = time.Hour
)

// housekeeper saves what is counted in memory and removes old rows.
type housekeeper struct {
	data     *storage
	runner   *runner
	topology cluster.Topology
	keepRuns config.KeepRuns
	log      *slog.Logger

	usage       *usage.Service
	inbox       *trigger.Inbox
	connections connection.Services
	files       *file.Service
}

// flushPeriodically saves usage counts, times of last use and failed
// sign-ins, and counts the workspaces.
func (h *housekeeper) flushPeriodically(ctx context.Context) error {
	ticker := time.NewTicker(housekeepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			h.flush(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
		}
		h.flush(ctx)
		h.runner.countWorkspaces(ctx)
	}
}

func (h *housekeeper) flush(ctx context.Context) {
	if err := h.usage.Flush(ctx); err != nil {
		h.log.Warn("cannot save usage counts", "error", err)
	}
	if err := h.inbox.Flush(ctx); err != nil {
		h.log.Warn("cannot save recent webhook calls", "error", err)
	}
	if err := h.data.auth.FlushLastUsed(ctx); err != nil {
		h.log.Warn("cannot save when API keys were last used", "error", err)
	}
	if err := h.connections.Opener.Flush(ctx); err != nil {
		h.log.Warn("cannot save when connections were last used", "error", err)
	}
	if err := h.data.accounts.FlushLastUsed(ctx); err != nil {
		h.log.Warn("cannot save when sessions were last used", "error", err)
	}
	if err := h.data.accounts.FlushFailures(ctx); err != nil {
		h.log.Warn("cannot record failed sign-ins", "error", err)
	}
}

// checkConsents renews connections whose consent ends soon, or warns of that. It runs
// separately from sweep, because services may take long to respond.
func (h *housekeeper) checkConsents(ctx context.Context) error {
	for clock.Sleep(ctx, expireEvery) {
		if !h.leads(ctx, "housekeeping") {
			continue
		}
		if err := h.connections.Renewer.CheckEnding(ctx); err != nil {
			h.log.Warn("cannot check which connections end soon", "error", err)
		}
	}
	return nil
}

// sweep removes deleted and old rows in batches. It runs separately from
// flushPeriodically, because it can take long after large deletions.
func (h *housekeeper) sweep(ctx context.Context) error {
	st, pruner := h.data.store, run.NewPruner(h.data.store.Runs, retention(h.keepRuns))
	var expired, pruned time.Time
	for clock.Sleep(ctx, housekeepEvery) {
		if !h.leads(ctx, "housekeeping") {
			continue
		}
		now := clock.Now()
		h.purge(ctx, func() (bool, error) { return st.Workflows.PurgeDeleted(ctx, purgeBatch) })
		h.purge(ctx, func() (bool, error) { return st.Tables.PurgeTables(ctx, purgeBatch) })
		if now.Sub(pruned) >= pruneEvery {
			h.purge(ctx, func() (bool, error) { return pruner.Batch(ctx, now, purgeBatch) })
			h.purge(ctx, func() (bool, error) { return st.RateLimits.PurgeTokens(ctx, now.Add(-keepTokens), purgeBatch) })
			h.purge(ctx, func() (bool, error) {
				return st.Accounts.PurgeSessions(ctx, now, now.Add(-account.IdleTimeout), purgeBatch)
			})
			pruned = now
		}
		h.purge(ctx, func() (bool, error) { return st.Runs.PurgeRemains(ctx, purgeBatch) })
		h.purge(ctx, func() (bool, error) { return h.files.SweepExpired(ctx) })
		h.purge(ctx, func() (bool, error) { return false, h.files.SweepOrphans(ctx) })
		if now.Sub(expired) >= expireEvery {
			h.expire(ctx, now)
			expired = now
		}
	}
	return nil
}

func (h *housekeeper) expire(ctx context.Context, now time.Time) {
	st := h.data.store
	h.purge(ctx, func() (bool, error) { return st.Idempotency.PurgeIdempotency(ctx, now, purgeBatch) })
	h.purge(ctx, func() (bool, error) { return st.Triggers.PurgeTriggerKeys(ctx, now, purgeBatch) })
	h.purge(ctx, func() (bool, error) { return st.State.PurgeKeys(ctx, now, purgeBatch) })
	h.purge(ctx, func() (bool, error) {
		return st.Triggers.PurgeRequests(ctx, now.Add(-trigger.RequestRetention), purgeBatch)
	})
	h.purge(ctx, func() (bool, error) {
		return st.Events.PurgeOld(ctx, now.Add(-event.Retention), purgeBatch/4) // it deletes from four tables
	})
	h.purge(ctx, func() (bool, error) { return st.Audit.PurgeAudit(ctx, now.Add(-audit.Retention), purgeBatch) })
}

// leads reports whether this node does a task that one node does for all.
func (h *housekeeper) leads(ctx context.Context, task string) bool {
	ctx, cancel := context.WithTimeout(ctx, housekeepEvery)
	defer cancel()
	mine, err := h.topology.TryLead(ctx, task, 3*housekeepEvery)
	return err == nil && mine
}

// retention returns the retention of each plan under the given setting.
func retention(setting config.KeepRuns) func(auth.Plan) auth.Retention {
	return func(plan auth.Plan) auth.Retention {
		keep := plan.Retention()
		switch {
		case setting.Forever:
			return auth.Retention{}
		case setting.For > 0:
			keep.KeepRuns = setting.For
		}
		return keep
	}
}

// purge runs batches until nothing is left. After each batch it pauses for as
// long as the batch took, so that others get at least half of the writer's time.
func (h *housekeeper) purge(ctx context.Context, batch func() (more bool, err error)) {
	for ctx.Err() == nil {
		began := clock.Monotonic()
		more, err := batch()
		if err != nil {
			h.log.Warn("cannot remove old data", "error", err)
		}
		if err != nil || !more {
			return
		}
		time.Sleep(max(purgePause, time.Since(began)))
	}
}
