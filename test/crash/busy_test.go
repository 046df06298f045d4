//go:build unix

package crash_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// busyFor is longer than a write waits for another process.
const busyFor = 6500 * time.Millisecond

// Another process holds the database while a server takes up the runs that the
// last one left. None of them is forgotten.
func TestBusyStoreDuringRecovery(t *testing.T) {
	harness.EmbeddedOnly(t, "a lock on the whole file")
	t.Parallel()
	const orphans = 250
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "short", chain{{"add", 1}, {"wait", 1500}, {"times", 2}})
	run := startRun(t, s.Client, id, 1).ID
	awaitWaiting(t, s.Client, run)
	s.Stop(t)
	orphan(t, s.Dir, run, orphans)

	key := s.Key
	s, err := harness.Spawn(harness.Options{Dir: s.Dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	s.ExpectErrors("database is locked")
	if err := s.AwaitReadyLine(); err != nil {
		t.Fatal(err)
	}
	s.Key = key
	unlock := lockTables(t, s)
	time.Sleep(busyFor)
	unlock()
	for deadline := time.Now().Add(settleTime); ; {
		left := list(t, s.Client, "/v1/workflows/"+id+"/runs").Data
		open := 0
		for _, r := range left {
			if r.Status == running {
				open++
			}
		}
		if open == 0 && len(left) == orphans+1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d runs were not taken up again", open, len(left))
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// lockTables keeps a server that has just started from writing. The server
// stands still meanwhile, so that it has not gone far.
func lockTables(t *testing.T, s *harness.Server) (unlock func()) {
	t.Helper()
	s.Signal(t, syscall.SIGSTOP)
	defer s.Signal(t, syscall.SIGCONT)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Dir, "stepmill.db")+"?_pragma=busy_timeout(100)")
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
	for deadline := time.Now().Add(10 * time.Second); exec("BEGIN IMMEDIATE") != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the tables cannot be locked")
		}
		s.Signal(t, syscall.SIGCONT)
		time.Sleep(time.Millisecond)
		s.Signal(t, syscall.SIGSTOP)
	}
	if waiting := number(t, openTables(t, s.Dir), "SELECT count(*) FROM run_queue WHERE node = 'node_gone'"); waiting == 0 {
		t.Error("every run had been taken up before the tables were locked")
	}
	return func() {
		if err := exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}
