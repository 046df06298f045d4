package crash_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// Waits survive a crash with their original wake time. They neither restart nor
// end early, whether they are due while no server runs or later.
func TestWaitsSurviveKill(t *testing.T) {
	t.Parallel()
	const each = 5
	does := chain{{"add", 1}, {"wait", 3_600_000}, {"times", 3}, {"wait", 50}, {"add", 2}}
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "waits", does)
	var runs []string
	for n := range int64(3 * each) {
		runs = append(runs, startRun(t, s.Client, id, n).ID)
		awaitWaiting(t, s.Client, runs[n])
	}
	s.Kill(t)
	// The test does not wait for an hour: some of the waits are overdue, others are due
	// soon.
	wakeTimes := map[string]time.Time{}
	for i, run := range runs[:2*each] {
		wakeTimes[run] = time.Now().Add(-time.Minute).Truncate(time.Millisecond)
		if i >= each {
			wakeTimes[run] = time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
		}
		setWakeTime(t, s.Dir, run, wakeTimes[run])
	}
	s = restart(t, s)
	for run, until := range wakeTimes {
		now := awaitEnd(t, s.Client, run)
		for _, v := range does.later(now) {
			t.Error(v)
		}
		switch wait := now.Steps[1]; {
		case !wait.Output.WaitedUntil.Equal(until):
			t.Errorf("run %s waited until %v, want until %v", run, wait.Output.WaitedUntil, until)
		case wait.FinishedAt.Before(until):
			t.Errorf("run %s continued at %v, before its wake time %v", run, wait.FinishedAt, until)
		}
	}
	for _, run := range runs[2*each:] {
		if now := getRun(t, s.Client, run); now.WaitingFor == nil || time.Until(*now.WaitingFor.Until) < 30*time.Minute {
			t.Errorf("run %s no longer waits for an hour: %+v", run, now)
		}
	}
	s.Stop(t)
}

// setWakeTime changes the wake time of a waiting run while no server runs.
func setWakeTime(t *testing.T, dir, run string, until time.Time) {
	t.Helper()
	execOffline(t, dir, `UPDATE run_queue SET wake_at = $1 WHERE run_id = $2`, until.UnixMicro(), run)
	execOffline(t, dir, `UPDATE steps SET wake_at = $1 WHERE run_id = $2 AND status = 'waiting'`, until.UnixMicro(), run)
	if harness.OnPostgres() {
		execOffline(t, dir, `UPDATE stepmill_river.river_job SET scheduled_at = $1 WHERE args::text LIKE '%' || $2 || '%'`, until, run)
	}
}

// later returns where a run deviates from the chain, except in the length of its waits.
func (c chain) later(r runBody) (out []string) {
	for _, v := range c.violations(r) {
		if !strings.Contains(v, "waited from") {
			out = append(out, v)
		}
	}
	return out
}
