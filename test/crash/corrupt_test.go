package crash_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// damages are what can be wrong with the rows of one run.
var damages = []string{
	`UPDATE runs SET payload = '{"n":' WHERE id = $1`,
	`UPDATE steps SET output = '{"n' WHERE run_id = $1 AND path = 's1'`,
	`UPDATE steps SET path = 'nowhere' WHERE run_id = $1 AND path = 's1'`,
}

// Some of fifty runs cannot be read any more. Those fail, soon and once; the
// others do not notice.
func TestDamagedRunsFailAlone(t *testing.T) {
	t.Parallel()
	const runs = 50
	s := harness.Start(t, t.TempDir())
	does := chain{{"add", 1}, {"wait", 3_600_000}, {"times", 2}}
	id := createWorkflow(t, s.Client, "some are damaged", does)
	var started []string
	for n := range int64(runs) {
		started = append(started, startRun(t, s.Client, id, n).ID)
	}
	for _, run := range started {
		awaitWaiting(t, s.Client, run)
	}
	s.Stop(t)
	damaged := map[string]bool{}
	db := change(t, s.Dir)
	for i, statement := range damages {
		run := started[7+11*i]
		if _, err := db.ExecContext(t.Context(), statement, run); err != nil {
			t.Fatal(err)
		}
		damaged[run] = true
	}
	// The hour has passed.
	past := []string{`UPDATE run_queue SET wake_at = 1`, `UPDATE steps SET wake_at = 1 WHERE status = 'waiting'`}
	if harness.OnPostgres() {
		past = append(past, `UPDATE stepmill_river.river_job SET scheduled_at = now()`)
	}
	for _, statement := range past {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s = restart(t, s)
	s.ExpectErrors("the stored state of a run cannot be read")
	begun := time.Now()
	for _, run := range started {
		if !damaged[run] {
			for _, v := range does.violations(awaitEnd(t, s.Client, run, 20*time.Second)) {
				t.Error(v)
			}
			continue
		}
		sink.Within(t, 10*time.Second, "a damaged run has failed", func() bool {
			return len(texts(t, openTables(t, s.Dir), "SELECT id FROM runs WHERE id = $1 AND status = 'failed' AND error_code = 'corrupt_state'", run)) == 1
		})
	}
	t.Logf("the last run had ended %v after the restart", time.Since(begun).Round(time.Millisecond))
	// A run that cannot be read is not looked at again and again.
	time.Sleep(time.Second)
	if n := strings.Count(s.Log(), "the stored state of a run cannot be read"); n != len(damaged) {
		t.Errorf("%d damaged runs were complained of %d times", len(damaged), n)
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}
