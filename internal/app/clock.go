package app

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// clockSettleEvery is how often waits for a time of day are adjusted to a clock that
// was set.
const clockSettleEvery = 2 * time.Second

// settleClock adjusts waits for a time of day to a clock that was set, until the context
// ends. On several nodes, one of them does it.
func (h *housekeeper) settleClock(ctx context.Context) error {
	for clock.Sleep(ctx, clockSettleEvery) {
		if !h.leads(ctx, "clock") {
			continue
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = h.data.store.Installation.SettleServiceClock(ctx); err != nil && ctx.Err() == nil {
				h.log.Warn("cannot adjust waits to a clock that was set; retrying", "error", err)
			}
		}
	}
	return nil
}
