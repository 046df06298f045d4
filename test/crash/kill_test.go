package crash_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

const (
	// The server is killed after a random delay between these after the first
	// acknowledgement of a round, or later on a slow machine.
	minDelay = 50 * time.Millisecond
	maxDelay = 600 * time.Millisecond
	// minResponses is how many responses clients get in a round before that.
	minResponses = 25
	// sample is how much of the ledger is checked after every restart.
	sample = 25
	// checkTablesEvery is after how many rounds the invariants are checked.
	checkTablesEvery = 3
)

const (
	// egress allows calls and webhooks to this machine.
	egress = "--egress-allow=127.0.0.0/8"
	// longLease is for tests that count calls and kill no server while it executes
	// runs: on a busy machine a server on PostgreSQL could lose a short lease and
	// repeat calls.
	longLease = "--node-lease=1m"
)

// A server is repeatedly killed under load. Everything it acknowledged still exists
// afterwards, unchanged and once.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := lane.Pick(6, 30)
	seed := harness.Seed(t)
	random := harness.Random(seed, clients)
	l := newLoad(t, seed)
	s := harness.Start(t, t.TempDir(), egress)
	hook := l.prepare(s)

	for round := range rounds {
		first, wait := l.run(s)
		l.awaitRandomMoment(t, first, random)
		if round == rounds-1 {
			l.awaitEnough(t, minRuns)
		}
		s.Kill(t)
		wait()
		if db := openCopy(t, s.Dir); round%checkTablesEvery == 0 {
			checkTables(t, db, hook)
		}
		s = restart(t, s, egress)
		l.verifySome(t, s, random, sample)
		if t.Failed() {
			t.Fatalf("round %d failed", round)
		}
	}
	l.finish(t, s, hook)
	l.summarize(t)
}

// finish checks everything after the last fault, before and after a clean restart.
func (l *load) finish(t *testing.T, s *harness.Server, hook string) {
	t.Helper()
	l.settle(t, s)
	l.verifyAll(t, s)
	s.Stop(t)
	db := openCopy(t, s.Dir)
	checkTables(t, db, hook)
	if left := tables.Number(t, db, "SELECT count(*) FROM run_queue"); left != 0 {
		t.Errorf("INVARIANT: %d runs have not ended", left)
	}
	s = restart(t, s, egress)
	l.verifyAll(t, s)
}
