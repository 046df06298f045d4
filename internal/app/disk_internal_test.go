package app

import (
	"log/slog"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

// The restriction begins below the reserve and ends a quarter above it.
func TestDiskReserveDoesNotFlap(t *testing.T) {
	t.Parallel()
	d := &disk{log: slog.New(slog.DiscardHandler), reserve: 1000, awaitsSpace: func() bool { return false }}
	for _, step := range []struct {
		free int64
		low  bool
	}{{1000, false}, {999, true}, {1000, true}, {1249, true}, {1250, false}, {1000, false}, {0, true}, {-1, false}} {
		d.checkSpace(step.free)
		if err := d.admitRun(); (err != nil) != step.low || step.low && !fault.Is(err, fault.StorageFull) {
			t.Errorf("with %d bytes: %v", step.free, err)
		}
		if got := len(d.messages()); (got == 1) != step.low {
			t.Errorf("with %d bytes there are %d warnings", step.free, got)
		}
	}
}
