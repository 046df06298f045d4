package crash_test

import (
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const (
	killRounds = 30
	// The server is killed at a random time within these after the first
	// acknowledgement of a round, or later on a slow machine.
	soonest = 50 * time.Millisecond
	latest  = 600 * time.Millisecond
	// Before that, so many requests of the round have been answered.
	leastAnswers = 25
	// sample is how much of the ledger is looked at after every restart.
	sample = 25
	// The tables are held against their invariants every so many rounds.
	tablesEvery = 3
)

// egress lets webhooks point at this machine: a test sends nothing elsewhere.
const egress = "--egress-allow=127.0.0.0/8"

// A server is killed again and again under load. Whatever it has acknowledged
// is there afterwards, unchanged and once.
func TestKillUnderLoad(t *testing.T) {
	seed := harness.Seed(t)
	t.Logf("%d rounds", killRounds)
	random := harness.Random(seed, clients)
	l := newLoad(t, seed)
	s := harness.Start(t, t.TempDir(), egress)
	hook := l.prepare(s)

	var slowest time.Duration
	for round := range killRounds {
		first, wait := l.run(s)
		l.awaitMoment(t, first, random)
		s.Kill(t)
		wait()
		if db := checkFile(t, s.Dir); round%tablesEvery == 0 {
			checkTables(t, db, hook)
		}
		s = restart(t, s, egress)
		slowest = max(slowest, s.Ready)
		l.verifySome(t, s, random, sample)
		if t.Failed() {
			t.Fatalf("round %d failed", round)
		}
	}
	t.Logf("slowest restart: %v", slowest.Round(time.Millisecond))
	if slowest > quick {
		t.Errorf("a restart took %v, more than %v", slowest, quick)
	}
	l.finish(t, s, hook)
	l.summarize(t, 200)
}

// finish ends the faults: everything is looked at, before and after a clean
// restart.
func (l *load) finish(t *testing.T, s *harness.Server, hook string) {
	t.Helper()
	l.settle(t, s)
	l.verifyAll(t, s)
	s.Stop(t)
	db := checkFile(t, s.Dir)
	checkTables(t, db, hook)
	if left := number(t, db, "SELECT count(*) FROM run_queue"); left != 0 {
		t.Errorf("%d runs have not ended", left)
	}
	s = restart(t, s, egress)
	l.verifyAll(t, s)
}
