package sqlite

import (
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

// stopwatch measures how long the current operation of a connection has taken.
type stopwatch struct {
	started atomic.Int64 // nanoseconds since processStart; zero if it is stopped
}

var processStart = clock.Monotonic()

func (s *stopwatch) start() { s.started.Store(max(1, int64(time.Since(processStart)))) }

func (s *stopwatch) stop() { s.started.Store(0) }

// elapsed returns zero if the stopwatch is stopped.
func (s *stopwatch) elapsed() time.Duration {
	started := s.started.Load()
	if started == 0 {
		return 0
	}
	return time.Since(processStart) - time.Duration(started)
}
