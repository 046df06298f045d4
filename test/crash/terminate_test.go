package crash_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

const terminateRounds = 10

// A server is asked to stop again and again under load. It ends well every
// time, has lost nothing, and what was waiting goes on with the next one.
func TestTerminateUnderLoad(t *testing.T) {
	seed := harness.Seed(t)
	t.Logf("%d rounds", terminateRounds)
	random := harness.Random(seed, clients)
	l := newLoad(t, seed)
	s := harness.Start(t, t.TempDir(), egress)
	hook := l.prepare(s)

	var slowest time.Duration
	for round := range terminateRounds {
		first, wait := l.run(s)
		l.awaitMoment(t, first, random)
		exit := s.Terminate(t)
		wait()
		if exit.Code != 0 {
			t.Errorf("round %d: exit code %d, want 0\n%s", round, exit.Code, s.Log())
		}
		slowest = max(slowest, exit.Took)
		if _, err := os.Stat(filepath.Join(s.Dir, "stepmill.db-wal")); err == nil {
			t.Errorf("round %d: the write-ahead log was left behind", round)
		}
		checkFile(t, s.Dir)
		s = restart(t, s, egress)
		l.verifySome(t, s, random, sample)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("slowest stop: %v", slowest.Round(time.Millisecond))
	l.finish(t, s, hook)
	l.summarize(t, longLoad)
}

// A stop may be asked for at any moment after the ready line, the first one
// included, when there is much to take up again.
func TestTerminateAtOnce(t *testing.T) {
	const rounds, orphans = 4, 1200
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "waits", chain{{"wait", 3_600_000}})
	run := startRun(t, s.Client, id, 1).ID
	awaitWaiting(t, s.Client, run)
	s.Stop(t)
	orphan(t, s.Dir, run, orphans)
	for round := range rounds {
		s, err := harness.Spawn(harness.Options{Dir: s.Dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(t) })
		if err := s.AwaitReadyLine(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		if exit := s.Terminate(t); exit.Code != 0 {
			t.Errorf("round %d: exit code %d, want 0\n%s", round, exit.Code, s.Log())
		}
	}
	db := checkFile(t, s.Dir)
	checkTables(t, db, "")
	if n := number(t, db, "SELECT count(*) FROM run_queue"); n != orphans+1 {
		t.Errorf("%d runs are queued, want %d", n, orphans+1)
	}
}

// While a server drains it is unready but answers; who waits for a run is told
// where it stands; the run goes on with the next server.
func TestDrain(t *testing.T) {
	s := harness.Start(t, t.TempDir(), "--drain-delay=1500ms")
	long := createWorkflow(t, s.Client, "long", chain{{"add", 1}, {"wait", 3000}, {"times", 2}})
	id := startRun(t, s.Client, long, 20).ID

	waited := make(chan harness.Answer, 1)
	go func() {
		answer, err := s.Do(t.Context(), "POST", "/v1/workflows/"+long+"/runs", payload(1), "Prefer", "wait=30")
		if err != nil {
			t.Errorf("the request that waits for its run: %v", err)
		}
		waited <- answer
	}()
	for len(list(t, s.Client, "/v1/workflows/"+long+"/runs").Data) < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	begun := time.Now()
	s.Signal(t, syscall.SIGTERM)
	answer := <-waited
	var r runBody
	answer.Decode(t, &r)
	if answer.Status != 201 || r.Status != running || time.Since(begun) > time.Second {
		t.Errorf("the request that waits for its run was answered after %v with %d %s", time.Since(begun), answer.Status, answer.Body)
	}
	awaitUnready(t, s)
	if took := time.Since(begun); took > time.Second {
		t.Errorf("unready only after %v", took)
	}
	getRun(t, s.Client, id)
	started := startRun(t, s.Client, long, 5).ID
	if exit := s.Wait(t, 30*time.Second); exit.Code != 0 {
		t.Errorf("exit code %d, want 0", exit.Code)
	}
	if took := time.Since(begun); took < 1500*time.Millisecond {
		t.Errorf("it stopped after %v, before the drain delay was over", took)
	}

	s = restart(t, s)
	for _, id := range []string{id, r.ID, started} {
		now := awaitEnd(t, s.Client, id, 20*time.Second)
		for _, v := range (chain{{"add", 1}, {"wait", 3000}, {"times", 2}}).violations(now) {
			t.Error(v)
		}
	}
}

func awaitUnready(t *testing.T, s *harness.Server) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; {
		answer, err := s.Do(t.Context(), "GET", "/readyz", nil)
		switch {
		case err != nil:
			t.Fatalf("while it drains: %v", err)
		case answer.Status == 503:
			if !strings.Contains(string(answer.Body), "shutting down") {
				t.Errorf("unready does not say why: %s", answer.Body)
			}
			return
		case time.Now().After(deadline):
			t.Fatal("still ready after SIGTERM")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// The second signal ends a server at once, as safely as a crash would.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGINT) { // it is for what a shell starts in the background
		signals = append(signals, syscall.SIGINT)
	}
	for _, second := range signals {
		s := harness.Start(t, t.TempDir(), "--drain-delay=20s")
		does := chain{{"add", 5}, {"wait", 300}, {"times", 3}}
		id := createWorkflow(t, s.Client, "waits", does)
		var started []string
		for n := range int64(10) {
			started = append(started, startRun(t, s.Client, id, n).ID)
		}
		s.Signal(t, syscall.SIGTERM)
		awaitUnready(t, s)
		started = append(started, startRun(t, s.Client, id, 99).ID)
		time.Sleep(50 * time.Millisecond)
		s.Signal(t, second)
		if exit := s.Wait(t, 2*time.Second); exit.Code == 0 {
			t.Errorf("%v while draining: exit code 0, as if the drain had come to its end", second)
		}
		checkTables(t, checkFile(t, s.Dir), "")
		s = restart(t, s)
		for _, id := range started {
			for _, v := range does.violations(awaitEnd(t, s.Client, id, 20*time.Second)) {
				t.Error(v)
			}
		}
		s.Stop(t)
	}
}
