package app

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

const (
	housekeepEvery = 5 * time.Second
	// purgeBatch and purgePause keep the purge from holding up other writes.
	purgeBatch = 200
	purgePause = 10 * time.Millisecond
	// keepEvents is longer than the attempts to deliver one go on.
	keepEvents = 7 * 24 * time.Hour
	keepAudit  = 366 * 24 * time.Hour
)

// housekeep writes counts and times of use, and removes what is gone, a little
// at a time.
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
		s.purge(ctx, func() (bool, error) { return s.core.store.PurgeDeleted(ctx, purgeBatch) })
		now := clock.Now()
		s.purge(ctx, func() (bool, error) { return s.core.store.PurgeIdempotency(ctx, now, purgeBatch) })
		s.purge(ctx, func() (bool, error) {
			return s.core.store.PurgeOld(ctx, now.Add(-keepEvents), now.Add(-keepAudit), purgeBatch)
		})
	}
}

func (s *Server) flush(ctx context.Context) {
	if err := s.usage.Flush(ctx); err != nil {
		s.log.Warn("cannot write usage counts", "error", err)
	}
	if err := s.core.auth.FlushUse(ctx); err != nil {
		s.log.Warn("cannot write when keys were used", "error", err)
	}
}

func (s *Server) purge(ctx context.Context, batch func() (more bool, err error)) {
	for ctx.Err() == nil {
		more, err := batch()
		if err != nil {
			s.log.Warn("cannot purge", "error", err)
		}
		if err != nil || !more {
			return
		}
		time.Sleep(purgePause)
	}
}
