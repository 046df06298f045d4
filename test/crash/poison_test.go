package crash_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
)

// poisonFailpoint pauses a server in the step poison, so that the test can kill it there.
const poisonFailpoint = "before_effect@/poison:pause=10m"

// failpointExit is the exit code of a server that died at a failpoint.
const failpointExit = 3

// One run executes whenever the process dies. After the second death it is executed
// alone; after three more it is quarantined. No other run is, neither those that ended
// between two deaths nor those that had no time to.
func TestPoisonRunIsQuarantined(t *testing.T) {
	t.Parallel()
	target := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	poison := flow.Define(t, s.Client, flow.HTTP("before", target.URL), flow.HTTP("poison", target.URL, "timeout", "10m"), flow.HTTP("after", target.URL))
	slow := flow.Define(t, s.Client, flow.HTTP("slow", target.URL+"?hang"), flow.HTTP("after", target.URL))
	quick := flow.Define(t, s.Client, flow.HTTP("one", target.URL), flow.HTTP("two", target.URL))
	s.Stop(t)

	var culprit string
	var suspects, innocent []string
	epoch := 0 // of the culprit's last execution
	for death := 1; death <= 5; death++ {
		dying := harness.StartWith(t, harness.Options{Dir: s.Dir, Args: []string{egress}, Failpoint: poisonFailpoint})
		dying.Key = s.Key
		if death == 1 {
			culprit = startRun(t, dying.Client, poison, 1).ID
			suspects = []string{startRun(t, dying.Client, slow, 1).ID, startRun(t, dying.Client, slow, 2).ID}
		}
		for n := range int64(3) {
			innocent = append(innocent, startRun(t, dying.Client, quick, n).ID)
		}
		for _, id := range innocent[len(innocent)-3:] {
			awaitEnd(t, dying.Client, id)
		}
		epoch = awaitExecuted(t, dying, culprit, epoch)
		if death <= 2 {
			target.Await(t, "the other suspects are executing", death*len(suspects), func(c *sink.Call) bool { return slices.Contains(suspects, c.Run()) })
		} else {
			checkLane(t, dying, culprit, suspects)
		}
		dying.Kill(t)
		checkTables(t, openCopy(t, s.Dir), "")
		if death == 2 {
			target.AwaitClosed(t)
			target.Release() // from now on they end when it is their turn
		}
	}

	alive := harness.StartWith(t, harness.Options{Dir: s.Dir, Args: []string{egress}, Failpoint: poisonFailpoint})
	alive.Key = s.Key
	end := awaitEnd(t, alive.Client, culprit)
	if end.Status != failed || end.Error.Code != "quarantined" || !strings.Contains(end.Error.Message, "5 times") {
		t.Errorf("the poison run is %s, want failed: %+v", end.Status, end.Error)
	}
	for _, id := range append(suspects, innocent...) {
		if end := awaitEnd(t, alive.Client, id); end.Status != succeeded {
			t.Errorf("run %s is %s: %+v", id, end.Status, end.Error)
		}
	}
	alive.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
	retryQuarantined(t, restart(t, s, egress), target, culprit)
}

// awaitExecuted waits until a run executes in a later epoch, and returns that epoch.
func awaitExecuted(t *testing.T, s *harness.Server, run string, epoch int) int {
	t.Helper()
	now := 0
	harness.Eventually(t, "the run executes again", func() bool {
		now = number(t, s.Dir, `SELECT COALESCE(max(epoch), 0) FROM run_queue WHERE run_id = $1 AND executing LIKE '%poison%'`, run)
		return now > epoch
	})
	return now
}

// checkLane checks that while the culprit executes, the other suspects wait to be
// executed alone.
func checkLane(t *testing.T, s *harness.Server, culprit string, others []string) {
	t.Helper()
	harness.Eventually(t, "the other suspects wait", func() bool {
		waiting := 0
		for _, id := range others {
			now := getRun(t, s.Client, id)
			// On PostgreSQL the others may come first.
			if w := now.WaitingFor; w != nil && strings.Contains(w.Reason, "in isolation") || harness.OnPostgres() && now.Status == succeeded {
				waiting++
			}
		}
		return waiting == len(others) && getRun(t, s.Client, culprit).WaitingFor == nil
	})
}

// retryQuarantined retries a quarantined run after its cause is fixed. The retry
// starts at the step in which the process died.
func retryQuarantined(t *testing.T, s *harness.Server, target *sink.Sink, culprit string) {
	t.Helper()
	var again runBody
	s.Expect(t, 201, "POST", "/v1/runs/"+culprit+"/retry", nil).Decode(t, &again)
	end := awaitEnd(t, s.Client, again.ID)
	if end.Status != succeeded || end.RetryOf == nil || *end.RetryOf != culprit {
		t.Errorf("the retry is %s: %+v", end.Status, end)
	}
	counted := target.Counts()
	for key, want := range map[string]int{
		culprit + "/before": 1, culprit + "/poison": 0, culprit + "/after": 0,
		again.ID + "/before": 0, again.ID + "/poison": 1, again.ID + "/after": 1,
	} {
		if counted[key] != want {
			t.Errorf("%s was called %d times, want %d", key, counted[key], want)
		}
	}
	if now := getRun(t, s.Client, culprit); now.Error == nil || now.Error.Code != "quarantined" {
		t.Errorf("after its retry the run is %s, want quarantined: %+v", now.Status, now.Error)
	}
}

// A server that dies five times in a row before it is ready starts in safe mode. It
// executes no runs and says so until it is started with --leave-safe-mode.
func TestCrashLoopLeadsToSafeMode(t *testing.T) {
	lane.LongOnly(t)
	harness.EmbeddedOnly(t, "starts are counted in the data directory")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	does := chain{{"add", 1}, {"wait", 100}, {"times", 2}}
	id := createWorkflow(t, s.Client, "accepted", does)
	s.Kill(t)
	for range 5 {
		if exit := startAndExit(t, s.Dir); exit.Code != failpointExit {
			t.Fatalf("exit code %d, want %d", exit.Code, failpointExit)
		}
	}

	var runs []string
	for range 2 { // safe mode persists across starts
		safe := startInSafeMode(t, s)
		response := safe.Expect(t, 503, "GET", "/readyz", nil)
		if !strings.Contains(string(response.Body), "safe mode") || !strings.Contains(string(response.Body), "--leave-safe-mode") {
			t.Errorf("/readyz does not give the reason: %s", response.Body)
		}
		safe.Expect(t, 200, "GET", "/healthz", nil)
		for n := range int64(10) {
			runs = append(runs, startRun(t, safe.Client, id, n).ID)
		}
		time.Sleep(300 * time.Millisecond) // long enough to execute them
		for _, run := range runs {
			if now := getRun(t, safe.Client, run); now.Status != running || len(now.Steps) != 0 {
				t.Errorf("run %s was executed in safe mode: %+v", run, now)
			}
		}
		if response := safe.Expect(t, 200, "POST", "/v1/runs/"+startRun(t, safe.Client, id, 1).ID+"/cancel", nil); !strings.Contains(string(response.Body), `"cancelled"`) {
			t.Errorf("response to a cancel in safe mode is %s", response.Body)
		}
		if exit := safe.Terminate(t); exit.Code != 0 {
			t.Errorf("exit code %d, want 0", exit.Code)
		}
	}

	s = restart(t, s, "--leave-safe-mode")
	for _, run := range runs {
		for _, v := range does.violations(awaitEnd(t, s.Client, run)) {
			t.Error(v)
		}
	}
	s.Stop(t)
	s = restart(t, s)
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// startAndExit starts a server that exits at once.
func startAndExit(t *testing.T, dir string) harness.Exit {
	t.Helper()
	s := harness.StartProcess(t, harness.Options{Dir: dir, Failpoint: "at_start:exit"})
	return s.Wait(t)
}

// startInSafeMode starts a server that will be in safe mode.
func startInSafeMode(t *testing.T, was *harness.Server, args ...string) *harness.Server {
	t.Helper()
	s := harness.StartProcess(t, harness.Options{Dir: was.Dir, Args: args})
	s.AwaitListening(t)
	s.Key = was.Key
	return s
}

// Neither kills after the server was ready nor four deaths before that lead to safe mode.
func TestKillsDoNotLeadToSafeMode(t *testing.T) {
	lane.LongOnly(t)
	harness.EmbeddedOnly(t, "starts are counted in the data directory")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	for range 6 {
		s.Kill(t)
		s = restart(t, s)
	}
	s.Kill(t)
	for range 2 {
		for range 4 {
			startAndExit(t, s.Dir)
		}
		s = restart(t, s) // this resets the count
		s.Kill(t)
	}
}
