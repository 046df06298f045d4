package crash_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// corruptions corrupt the rows of a run.
var corruptions = []string{
	`UPDATE runs SET payload = '{"n":' WHERE id = $1`,
	`UPDATE steps SET output = '{"n' WHERE run_id = $1 AND path = 's1'`,
	`UPDATE steps SET path = 'nowhere' WHERE run_id = $1 AND path = 's1'`,
}

// The rows of some runs are corrupt. These runs fail once; the others are not affected.
func TestCorruptRunsFailAlone(t *testing.T) {
	t.Parallel()
	const runs = 31
	s := harness.Start(t, t.TempDir())
	does := chain{{"add", 1}, {"wait", 3_600_000}, {"times", 2}}
	id := createWorkflow(t, s.Client, "some are corrupt", does)
	var started []string
	for n := range int64(runs) {
		started = append(started, startRun(t, s.Client, id, n).ID)
	}
	for _, run := range started {
		awaitWaiting(t, s.Client, run)
	}
	s.Stop(t)
	corrupt := map[string]bool{}
	db := openForWriting(t, s.Dir)
	for i, statement := range corruptions {
		run := started[7+11*i]
		if _, err := db.ExecContext(t.Context(), statement, run); err != nil {
			t.Fatal(err)
		}
		corrupt[run] = true
	}
	// Pretend that the hour has passed.
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
	for _, run := range started {
		if !corrupt[run] {
			for _, v := range does.violations(awaitEnd(t, s.Client, run)) {
				t.Error(v)
			}
			continue
		}
		harness.Eventually(t, "a corrupt run has failed", func() bool {
			return len(tables.Texts(t, openTables(t, s.Dir), "SELECT id FROM runs WHERE id = $1 AND status = 'failed' AND error_code = 'corrupt_state'", run)) == 1
		})
	}
	for run := range corrupt {
		if !strings.Contains(s.Log(), `"msg":"the stored state of a run cannot be read","run_id":"`+run+`"`) {
			t.Errorf("the log does not name %s", run)
		}
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}
