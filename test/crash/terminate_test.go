package crash_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/tables"
)

// A server is repeatedly asked to stop under load. It exits with code 0 every time and
// loses nothing, and waiting runs continue on the next one.
func TestTerminateUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := lane.Pick(3, 10)
	seed := harness.Seed(t)
	random := harness.Random(seed, clients)
	l := newLoad(t, seed)
	s := harness.Start(t, t.TempDir(), egress)
	hook := l.prepare(s)

	var slowest time.Duration
	for round := range rounds {
		first, wait := l.run(s)
		l.awaitRandomMoment(t, first, random)
		if round == rounds-1 {
			l.awaitEnough(t, minRuns)
		}
		exit := s.Terminate(t)
		wait()
		if exit.Code != 0 {
			t.Errorf("round %d: exit code %d, want 0\n%s", round, exit.Code, s.Excerpt())
		}
		slowest = max(slowest, exit.Took)
		if _, err := os.Stat(filepath.Join(s.Dir, "stepmill.db-wal")); err == nil {
			t.Errorf("round %d: the write-ahead log was left behind", round)
		}
		openCopy(t, s.Dir)
		s = restart(t, s, egress)
		l.verifySome(t, s, random, sample)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("slowest stop: %v", slowest.Round(time.Millisecond))
	l.finish(t, s, hook)
	l.summarize(t)
}

// A server can be asked to stop right after it has printed that it is ready, even while
// it recovers many runs.
func TestTerminateRightAfterStart(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	rounds, orphans := lane.Pick(2, 4), lane.Pick(400, 1200)
	s := harness.Start(t, t.TempDir())
	id := createWorkflow(t, s.Client, "waits", chain{{"wait", 3_600_000}})
	run := startRun(t, s.Client, id, 1).ID
	awaitWaiting(t, s.Client, run)
	s.Stop(t)
	makeOrphans(t, s.Dir, run, orphans)
	for round := range rounds {
		s := harness.StartProcess(t, harness.Options{Dir: s.Dir})
		s.AwaitListening(t)
		time.Sleep(time.Duration(round) * time.Millisecond)
		if exit := s.Terminate(t); exit.Code != 0 {
			t.Errorf("round %d: exit code %d, want 0\n%s", round, exit.Code, s.Excerpt())
		}
	}
	db := openCopy(t, s.Dir)
	checkTables(t, db, "")
	if n := tables.Number(t, db, "SELECT count(*) FROM run_queue"); n != orphans+1 {
		t.Errorf("%d runs are queued, want %d", n, orphans+1)
	}
}

// While a server drains, it is not ready but still responds. A request that waits for a
// run returns the current state of the run, which continues on the next server.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, t.TempDir(), "--drain-delay=1h")
	asks := flow.Define(t, s.Client, flow.Step("ask", "flow.approval", `{"message":"continue?"}`), flow.Step("after", "data.set", `{"values":{"n":1}}`))
	id := startRun(t, s.Client, asks, 20).ID

	waited := make(chan harness.Response, 1)
	go func() {
		response, err := s.DoUntilAvailable(t.Context(), "POST", "/v1/workflows/"+asks+"/runs", payload(1), "Prefer", "wait=60")
		if err != nil {
			t.Errorf("start with Prefer: wait: %v", err)
		}
		waited <- response
	}()
	for len(list(t, s.Client, "/v1/workflows/"+asks+"/runs").Data) < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	s.Signal(t, syscall.SIGTERM)
	response := <-waited
	var r runBody
	response.Decode(t, &r)
	if response.Status != 201 || r.Status != running {
		t.Errorf("start with Prefer: wait returned %d %s", response.Status, response.Body)
	}
	awaitUnready(t, s)
	getRun(t, s.Client, id)
	started := startRun(t, s.Client, asks, 5).ID
	if s.Exited() {
		t.Error("the server did not wait for the end of the drain delay")
	}
	s.Kill(t)

	s = restart(t, s)
	for _, id := range []string{id, r.ID, started} {
		awaitReason(t, s.Client, id, "approval")
		s.Expect(t, 200, "POST", "/v1/runs/"+id+"/steps/ask/resume", map[string]any{"approved": true})
		if end := awaitEnd(t, s.Client, id); end.Status != succeeded || len(end.Steps) != 2 {
			t.Errorf("run %s is %s after %d steps: %+v", id, end.Status, len(end.Steps), end.Error)
		}
	}
	s.Stop(t)
}

// The server waits for the drain delay and then exits with code 0.
func TestDrainDelay(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	const delay = 300 * time.Millisecond
	s := harness.Start(t, t.TempDir(), "--drain-delay="+delay.String())
	begun := time.Now()
	s.Stop(t)
	if took := time.Since(begun); took < delay {
		t.Errorf("the server exited after %v, want at least the drain delay of %v", took, delay)
	}
}

func awaitUnready(t *testing.T, s *harness.Server) {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; {
		response, err := s.Do(t.Context(), "GET", "/readyz", nil)
		switch {
		case err != nil:
			t.Fatalf("request during the drain: %v", err)
		case response.Status == 503:
			if !strings.Contains(string(response.Body), "shutting down") {
				t.Errorf("/readyz does not give the reason: %s", response.Body)
			}
			return
		case time.Now().After(deadline):
			t.Fatal("still ready after SIGTERM")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A second signal ends a server at once, as safely as a crash.
func TestSecondSignal(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGINT) { // it is ignored in background jobs of a shell
		signals = append(signals, syscall.SIGINT)
	}
	for _, second := range signals {
		s := harness.Start(t, t.TempDir(), "--drain-delay=1h")
		does := chain{{"add", 5}, {"wait", 300}, {"times", 3}}
		id := createWorkflow(t, s.Client, "waits", does)
		var started []string
		for n := range int64(10) {
			started = append(started, startRun(t, s.Client, id, n).ID)
		}
		s.Signal(t, syscall.SIGTERM)
		awaitUnready(t, s)
		started = append(started, startRun(t, s.Client, id, 99).ID)
		s.Signal(t, second)
		if exit := s.Wait(t); exit.Code == 0 {
			t.Errorf("%v while draining: exit code 0, want a failure", second)
		}
		checkTables(t, openCopy(t, s.Dir), "")
		s = restart(t, s)
		for _, id := range started {
			for _, v := range does.violations(awaitEnd(t, s.Client, id)) {
				t.Error(v)
			}
		}
		s.Stop(t)
	}
}
