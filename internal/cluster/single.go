package cluster

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/webhook"
)

// single is the topology of a process that has its database to itself.
type single struct {
	Config
	node.Registry
	dispatch *local.Dispatcher
}

// NewSingle returns the topology of a process that has its database to itself. Like
// joining a cluster, it compares the clocks.
func NewSingle(ctx context.Context, config Config) Topology {
	s := &single{
		Config: config, Registry: node.Alone(config.Self),
		dispatch: local.New(config.Store.Leases, config.Self.ID, config.Capacity, config.Log),
	}
	s.checkClock(ctx, true)
	return s
}

func (s *single) Dispatcher() dispatch.Dispatcher { return s.dispatch }
func (s *single) Outbox() webhook.Outbox          { return s.Store.Webhooks }
func (s *single) NewRateLimits() ratelimit.Limits { return ratelimit.New() }
func (s *single) HoldsLease() bool                { return true } // nobody else can take over the runs
func (s *single) Others() node.Others             { return node.Others{} }
func (s *single) Publish(byte, string)            {}
func (s *single) Leave(context.Context)           {}
func (s *single) Close()                          {}

func (s *single) TryLead(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (s *single) Collect(m *telemetry.Scrape) {
	m.Set(telemetry.RunsResumed, float64(s.dispatch.Stats().Resumed))
}

const (
	// clockCheckEvery is how often the clocks are compared. Nodes do that with their
	// heartbeats.
	clockCheckEvery = time.Second
	// clockRecordEvery is how often the steady time is recorded even if the clocks agree.
	// After a reboot with a wrong clock, it continues from there.
	clockRecordEvery = time.Minute
)

// Run keeps the steady time going when the machine's clock is set.
func (s *single) Run(ctx context.Context) error {
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
func (s *single) checkClock(ctx context.Context, record bool) bool {
	correction, jumped := clock.Check()
	if !jumped && !record {
		return false
	}
	current := clock.Current()
	if jumped {
		current.Correction = correction
	}
	if err := s.Store.Installation.SetServiceClock(ctx, current); err != nil {
		if ctx.Err() == nil {
			s.Log.Warn("cannot record the clock", "error", err)
		}
		return false
	}
	if jumped {
		s.Log.Warn("the clock of this machine has jumped; waits go on as if it had not", "by", clock.Correction()-correction)
		clock.Correct(correction)
		s.Process.OnClockJump()
	}
	return true
}
