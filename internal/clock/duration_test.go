package clock_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "15m": 15 * time.Minute, "2h": 2 * time.Hour, "3d": 72 * time.Hour,
		"1h30m": 90 * time.Minute, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond, "0.5d": 12 * time.Hour,
	} {
		if got, err := clock.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "0s", "5", "-1s", "+1s", "1w", "d", "1h2d", "3 d", "9999999999999d", "1e3s", "1d-1h", "1d0"} {
		if got, err := clock.ParseDuration(text); err == nil {
			t.Errorf("%q was accepted as %v", text, got)
		}
	}
}
