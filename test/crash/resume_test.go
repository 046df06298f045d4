package crash_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// late is how long after its time a wait may end, on a busy machine.
const late = 5 * time.Second

// Waits survive a crash with the time they were given: they are not begun anew
// and do not end early, whether their time comes while nothing runs or later.
func TestResumeWaits(t *testing.T) {
	t.Parallel()
	const each = 8
	s := harness.Start(t, t.TempDir())
	waits := []int64{1000, 1500, 2000, 3000}
	promised := map[string]time.Time{}
	chains := map[string]chain{}
	for _, length := range waits {
		does := chain{{"add", 1}, {"wait", length}, {"times", 3}, {"wait", 50}, {"add", 2}}
		id := createWorkflow(t, s.Client, "waits", does)
		for n := range int64(each) {
			run := startRun(t, s.Client, id, n).ID
			promised[run] = *awaitWaiting(t, s.Client, run).WaitingFor.Until
			chains[run] = does
		}
	}
	s.Kill(t)
	// The first ones have their time now.
	time.Sleep(1200 * time.Millisecond)
	s = restart(t, s)
	back := time.Now()

	var latest time.Duration
	for run, until := range promised {
		now := awaitEnd(t, s.Client, run, 20*time.Second)
		for _, v := range chains[run].violations(now) {
			t.Error(v)
		}
		wait := now.Steps[1]
		due := until
		if due.Before(back) {
			due = back
		}
		latest = max(latest, wait.FinishedAt.Sub(due))
		switch {
		case !wait.Output.WaitedUntil.Equal(until):
			t.Errorf("run %s waited until %v, but was promised %v", run, wait.Output.WaitedUntil, until)
		case wait.FinishedAt.Before(until):
			t.Errorf("run %s went on at %v, before its time %v", run, wait.FinishedAt, until)
		case wait.FinishedAt.After(due.Add(late)):
			t.Errorf("run %s went on at %v, %v late", run, wait.FinishedAt, wait.FinishedAt.Sub(due))
		}
	}
	t.Logf("%d waits, the latest ended %v after its time", len(promised), latest.Round(time.Millisecond))
}
