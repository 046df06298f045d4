package crash_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/tables"
)

// Another process locks the database while a server recovers the runs of the previous
// one. None of them is lost.
func TestLockedDatabaseDuringRecovery(t *testing.T) {
	harness.EmbeddedOnly(t, "a lock on the whole file")
	t.Parallel()
	const orphans = 600 // more than are recovered at a time
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "long", chain{{"add", 1}, {"wait", 3_600_000}, {"times", 2}})
	run := startRun(t, s.Client, id, 1).ID
	awaitWaiting(t, s.Client, run)
	s.Stop(t)
	makeOrphans(t, s.Dir, run, orphans)

	// Recovered runs pause until the tables are locked.
	s = harness.StartProcess(t, harness.Options{Dir: s.Dir, Failpoint: "after_claim:pause=1s"})
	s.ExpectErrors("database is locked")
	s.AwaitListening(t)
	unlock := lockTables(t, s.Dir)
	waiting := tables.Number(t, openTables(t, s.Dir), "SELECT count(*) FROM run_queue WHERE node = 'node_gone'")
	s.AwaitLog(t, "(database is locked)")
	unlock()
	if t.Logf("the tables were locked while %d of %d runs were not recovered", waiting, orphans); waiting == 0 {
		t.Log("inconclusive: every run had been recovered before")
	}
	harness.Eventually(t, "every run is recovered and waits", func() bool {
		return tables.Number(t, openTables(t, s.Dir), "SELECT count(*) FROM steps WHERE path = 's2' AND status = 'waiting'") == orphans+1
	})
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// lockTables keeps all other processes from writing.
func lockTables(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "stepmill.db")+"?_pragma=busy_timeout(100)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statement string) error {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), statement)
		return err
	}
	harness.Eventually(t, "the tables are locked", func() bool { return exec("BEGIN IMMEDIATE") == nil })
	return func() {
		if err := exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}
