package app

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

const (
	housekeepEvery = 5 * time.Second
	// pruneEvery is how long old runs wait for the next look at all workflows.
	pruneEvery = 10 * time.Minute
	// purgeBatch and purgePause keep the purge from holding up other writes.
	purgeBatch = 500
	purgePause = 10 * time.Millisecond
	keepAudit  = 366 * 24 * time.Hour
)

// housekeep writes counts and times of use.
func (s *Server) housekeep(ctx context.Context) error {
	ticker := time.NewTicker(housekeepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.flush(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
		}
		s.flush(ctx)
	}
}

func (s *Server) flush(ctx context.Context) {
	if err := s.usage.Flush(ctx); err != nil {
		s.log.Warn("cannot write usage counts", "error", err)
	}
	if err := s.inbox.Flush(ctx); err != nil {
		s.log.Warn("cannot write the calls of hooks", "error", err)
	}
	if err := s.core.auth.FlushUse(ctx); err != nil {
		s.log.Warn("cannot write when keys were used", "error", err)
	}
}

// sweep removes what is gone or old, a little at a time. After much was deleted
// that takes a while, so nothing else waits for it.
func (s *Server) sweep(ctx context.Context) error {
	ticker := time.NewTicker(housekeepEvery)
	defer ticker.Stop()
	st, pruner, pruned := s.core.store, run.NewPruner(s.core.store, retention(s.config.KeepRuns)), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := clock.Now()
		s.purge(ctx, func() (bool, error) { return st.PurgeDeleted(ctx, purgeBatch) })
		if now.Sub(pruned) >= pruneEvery {
			s.purge(ctx, func() (bool, error) { return pruner.Batch(ctx, now, purgeBatch) })
			pruned = now
		}
		s.purge(ctx, func() (bool, error) { return st.PurgeRemains(ctx, purgeBatch) })
		s.purge(ctx, func() (bool, error) { return st.PurgeIdempotency(ctx, now, purgeBatch) })
		s.purge(ctx, func() (bool, error) { return st.PurgeTriggerKeys(ctx, now, purgeBatch) })
		s.purge(ctx, func() (bool, error) { return st.PurgeRequests(ctx, now.Add(-trigger.RequestsFor), purgeBatch) })
		s.purge(ctx, func() (bool, error) {
			return st.PurgeOld(ctx, now.Add(-event.Keep), now.Add(-keepAudit), purgeBatch/4) // of four kinds
		})
	}
}

// retention says how much of the past a plan keeps under the given setting.
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

// purge runs batches until nothing is left. It pauses after each for as long as
// it took, so that others have at least half of the writer's time.
func (s *Server) purge(ctx context.Context, batch func() (more bool, err error)) {
	for ctx.Err() == nil {
		began := time.Now()
		more, err := batch()
		if err != nil {
			s.log.Warn("cannot purge", "error", err)
		}
		if err != nil || !more {
			return
		}
		time.Sleep(max(purgePause, time.Since(began)))
	}
}
