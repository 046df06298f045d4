package app

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

const (
	housekeepEvery = 5 * time.Second
	// returnEvery is how many rounds pass before webhooks are given back for
	// which there is nothing to send.
	returnEvery = 12
	// expireEvery is how long what has had its time waits to be removed, and
	// pruneEvery how long old runs wait for the next look at all workflows.
	expireEvery = time.Minute
	pruneEvery  = 10 * time.Minute
	// purgeBatch and purgePause keep the purge from holding up other writes.
	purgeBatch = 500
	purgePause = 10 * time.Millisecond
	keepAudit  = 366 * 24 * time.Hour
	// keepTokens is far more than the minute for which they count: clocks of
	// nodes differ.
	keepTokens = time.Hour
)

// housekeep writes counts and times of use.
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
		if s.cluster != nil && n%returnEvery == 0 {
			if err := s.core.store.ReturnWebhooks(ctx); err != nil {
				s.log.Warn("cannot give webhooks back", "error", err)
			}
		}
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
	if err := s.core.people.FlushUse(ctx); err != nil {
		s.log.Warn("cannot write when sessions were used", "error", err)
	}
}

// sweep removes what is gone or old, a little at a time. After much was deleted
// that takes a while, so nothing else waits for it.
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
		if !s.tidies(ctx) {
			continue
		}
		now := clock.Now()
		s.purge(ctx, func() (bool, error) { return st.PurgeDeleted(ctx, purgeBatch) })
		if now.Sub(pruned) >= pruneEvery {
			s.purge(ctx, func() (bool, error) { return pruner.Batch(ctx, now, purgeBatch) })
			s.purge(ctx, func() (bool, error) { return st.PurgeTokens(ctx, now.Add(-keepTokens), purgeBatch) })
			s.purge(ctx, func() (bool, error) { return st.PurgeSessions(ctx, now, now.Add(-account.IdleLife), purgeBatch) })
			pruned = now
		}
		s.purge(ctx, func() (bool, error) { return st.PurgeRemains(ctx, purgeBatch) })
		if now.Sub(expired) >= expireEvery {
			s.expire(ctx, now)
			expired = now
		}
	}
}

// expire removes what has had its time.
func (s *Server) expire(ctx context.Context, now time.Time) {
	st := s.core.store
	s.purge(ctx, func() (bool, error) { return st.PurgeIdempotency(ctx, now, purgeBatch) })
	s.purge(ctx, func() (bool, error) { return st.PurgeTriggerKeys(ctx, now, purgeBatch) })
	s.purge(ctx, func() (bool, error) { return st.PurgeRequests(ctx, now.Add(-trigger.RequestsFor), purgeBatch) })
	s.purge(ctx, func() (bool, error) {
		return st.PurgeOld(ctx, now.Add(-event.Keep), now.Add(-keepAudit), purgeBatch/4) // of four kinds
	})
}

// tidies tells whether this node removes what is old: among several, one does.
func (s *Server) tidies(ctx context.Context) bool {
	if s.cluster == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, housekeepEvery)
	defer cancel()
	mine, err := s.core.pg.Serve(ctx, "tidy", s.node, 3*housekeepEvery)
	return err == nil && mine
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
		began := clock.Mark()
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
