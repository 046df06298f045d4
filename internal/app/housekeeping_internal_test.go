package app

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/config"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for setting, want := range map[string]map[auth.Plan]auth.Retention{
		"plan": {
			auth.Free: {KeepRuns: 7 * day, RunsPerWorkflow: 10_000}, auth.Pro: {KeepRuns: 30 * day}, auth.Enterprise: {KeepRuns: 30 * day},
		},
		"90d":     {auth.Free: {KeepRuns: 90 * day, RunsPerWorkflow: 10_000}, auth.Pro: {KeepRuns: 90 * day}, auth.Enterprise: {KeepRuns: 90 * day}},
		"1h":      {auth.Free: {KeepRuns: time.Hour, RunsPerWorkflow: 10_000}, auth.Pro: {KeepRuns: time.Hour}, auth.Enterprise: {KeepRuns: time.Hour}},
		"forever": {auth.Free: {}, auth.Pro: {}, auth.Enterprise: {}},
	} {
		var keep config.KeepRuns
		if err := keep.UnmarshalText([]byte(setting)); err != nil {
			t.Fatal(err)
		}
		for plan, want := range want {
			if got := retention(keep)(plan); got != want {
				t.Errorf("--keep-runs %s on %s: %+v, want %+v", setting, plan, got, want)
			}
		}
	}
	for _, setting := range []string{"", "0", "-1d", "never", "90", "plans"} {
		if err := new(config.KeepRuns).UnmarshalText([]byte(setting)); err == nil {
			t.Errorf("--keep-runs %q is accepted", setting)
		}
	}
}
