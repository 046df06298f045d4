package app

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

const (
	// clockCheckEvery is how often a process that does not share its database compares
	// its clocks. Nodes do that with their heartbeats.
	clockCheckEvery = time.Second
	// clockRecordEvery is how often it records the steady time even if the clocks agree.
	// After a reboot with a wrong clock, the steady time continues from there.
	clockRecordEvery = time.Minute
	// clockSettleEvery is how often waits for a time of day are adjusted to a clock that
	// was set.
	clockSettleEvery = 2 * time.Second
)

// watchClock keeps the steady time going when the machine's clock is set, until the
// context ends.
func (s *Server) watchClock(ctx context.Context) error {
	recorded := clock.Monotonic()
	for clock.Sleep(ctx, clockCheckEvery) {
		if s.checkClock(ctx, time.Since(recorded) >= clockRecordEvery) {
			recorded = clock.Monotonic()
		}
	}
	return nil
}

// checkClock corrects the steady time if the clock has jumped, and records it then and
// if asked to. It reports whether it was recorded.
func (s *Server) checkClock(ctx context.Context, record bool) bool {
	correction, jumped := clock.Check()
	if !jumped && !record {
		return false
	}
	current := clock.Current()
	if jumped {
		current.Correction = correction
	}
	if err := s.data.store.Installation.SetServiceClock(ctx, current); err != nil {
		if ctx.Err() == nil {
			s.log.Warn("cannot record the clock", "error", err)
		}
		return false
	}
	if jumped {
		s.log.Warn("the clock of this machine has jumped; waits go on as if it had not", "by", clock.Correction()-correction)
		clock.Correct(correction)
		s.onClockJump()
	}
	return true
}

// onClockJump makes everything look at the clock again that waits for a time of day.
func (s *Server) onClockJump() {
	if s.runner.firers != nil {
		s.runner.wakeTriggers()
	}
}

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
