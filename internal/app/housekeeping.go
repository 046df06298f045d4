package app

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

const (
	housekeepEvery = 5 * time.Second
	// releaseEvery is after how many rounds a node releases webhooks that have
	// nothing to send.
	releaseEvery = 12
	// expireEvery is the interval for removing expired rows, pruneEvery the one for
	// removing old runs, which looks at all workflows.
	expireEvery = time.Minute
	pruneEvery  = 10 * time.Minute
	// purgeBatch and purgePause keep the purge from delaying other writes.
	purgeBatch = 500
	purgePause = 10 * time.Millisecond
	keepAudit  = 366 * 24 * time.Hour
	// keepTokens is far longer than the minute in which rate limit tokens count,
	// because the clocks of nodes differ.
	keepTokens = time.Hour
)

// housekeep periodically saves usage counts, times of last use and failed
// sign-ins, and counts the workspaces.
func (s *Server) housekeep(ctx context.Context) error {
	ticker := time.NewTicker(housekeepEvery)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			s.flush(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
		}
		s.flush(ctx)
		s.countWorkspaces(ctx)
		if s.cluster != nil && n%releaseEvery == 0 {
			if err := s.core.store.ReturnWebhooks(ctx); err != nil {
				s.log.Warn("cannot release idle webhooks", "error", err)
			}
		}
	}
}

// countWorkspaces finds out whether this process or another one has created a
// second workspace. Workspaces are never deleted.
func (s *Server) countWorkspaces(ctx context.Context) {
	if s.shared.Load() {
		return
	}
	several, err := s.core.store.HasSeveralWorkspaces(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.log.Warn("cannot count the workspaces", "error", err)
	case several:
		s.shareCapacity()
	}
}

// shareCapacity keeps one workspace from using all slots for runs or scripts. On
// several nodes, the store limits the runs of a workspace.
func (s *Server) shareCapacity() {
	if s.shared.Swap(true) {
		return
	}
	s.scripts.Share()
	if alone, ok := s.dispatch.(*local.Dispatcher); ok {
		alone.Share()
	}
}

func (s *Server) flush(ctx context.Context) {
	if err := s.usage.Flush(ctx); err != nil {
		s.log.Warn("cannot save usage counts", "error", err)
	}
	if err := s.inbox.Flush(ctx); err != nil {
		s.log.Warn("cannot save recent webhook calls", "error", err)
	}
	if err := s.core.auth.FlushLastUsed(ctx); err != nil {
		s.log.Warn("cannot save when API keys were last used", "error", err)
	}
	if err := s.core.accounts.FlushLastUsed(ctx); err != nil {
		s.log.Warn("cannot save when sessions were last used", "error", err)
	}
	if err := s.core.accounts.FlushFailures(ctx); err != nil {
		s.log.Warn("cannot record failed sign-ins", "error", err)
	}
}

// sweep removes deleted and old rows in batches. It runs separately from
// housekeep, because it can take long after large deletions.
func (s *Server) sweep(ctx context.Context) error {
	ticker := time.NewTicker(housekeepEvery)
	defer ticker.Stop()
	st, pruner := s.core.store, run.NewPruner(s.core.store, retention(s.config.KeepRuns))
	var expired, pruned time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if !s.leadsCleanup(ctx) {
			continue
		}
		now := clock.Now()
		s.purge(ctx, func() (bool, error) { return st.PurgeDeleted(ctx, purgeBatch) })
		if now.Sub(pruned) >= pruneEvery {
			s.purge(ctx, func() (bool, error) { return pruner.Batch(ctx, now, purgeBatch) })
			s.purge(ctx, func() (bool, error) { return st.PurgeTokens(ctx, now.Add(-keepTokens), purgeBatch) })
			s.purge(ctx, func() (bool, error) { return st.PurgeSessions(ctx, now, now.Add(-account.IdleTimeout), purgeBatch) })
			pruned = now
		}
		s.purge(ctx, func() (bool, error) { return st.PurgeRemains(ctx, purgeBatch) })
		if now.Sub(expired) >= expireEvery {
			s.expire(ctx, now)
			expired = now
		}
	}
}

// expire removes expired rows.
func (s *Server) expire(ctx context.Context, now time.Time) {
	st := s.core.store
	s.purge(ctx, func() (bool, error) { return st.PurgeIdempotency(ctx, now, purgeBatch) })
	s.purge(ctx, func() (bool, error) { return st.PurgeTriggerKeys(ctx, now, purgeBatch) })
	s.purge(ctx, func() (bool, error) { return st.PurgeRequests(ctx, now.Add(-trigger.RequestRetention), purgeBatch) })
	s.purge(ctx, func() (bool, error) {
		return st.PurgeOld(ctx, now.Add(-event.Retention), purgeBatch/4) // it deletes from four tables
	})
	s.purge(ctx, func() (bool, error) { return st.PurgeAudit(ctx, now.Add(-keepAudit), purgeBatch) })
}

// leadsCleanup reports whether this node removes old rows; in a cluster, one does.
func (s *Server) leadsCleanup(ctx context.Context) bool {
	if s.cluster == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, housekeepEvery)
	defer cancel()
	mine, err := s.core.pg.TryLead(ctx, "tidy", s.node, 3*housekeepEvery)
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
func (s *Server) purge(ctx context.Context, batch func() (more bool, err error)) {
	for ctx.Err() == nil {
		began := clock.Monotonic()
		more, err := batch()
		if err != nil {
			s.log.Warn("cannot remove old data", "error", err)
		}
		if err != nil || !more {
			return
		}
		time.Sleep(max(purgePause, time.Since(began)))
	}
}
