package crash_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// poisoned lets a server die a while after it has begun the step poison.
const poisoned = "before_effect@/poison:pause=1500ms,before_effect@/poison:exit"

// deadly is the exit code of a server that died at a failpoint.
const deadly = 3

// One run kills the process whenever it is executed. After the second time it is
// executed by itself; after three more it is given up. Nobody else is: neither
// those that came to their end between two deaths, nor those that never had the
// time to.
func TestPoisonIsQuarantined(t *testing.T) {
	t.Parallel()
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	poison := define(t, s.Client, nil, calls("before", outside.URL), calls("poison", outside.URL), calls("after", outside.URL))
	slow := define(t, s.Client, nil, calls("slow", outside.URL+"?ms=3000"), calls("after", outside.URL))
	quick := define(t, s.Client, nil, calls("one", outside.URL+"?ms=50"), calls("two", outside.URL+"?ms=50"))
	s.Stop(t)

	var culprit string
	var suspects, innocent []string
	for death := 1; death <= 5; death++ {
		dying := spawn(t, s.Dir, poisoned)
		dying.Key = s.Key
		if death == 1 {
			culprit = startRun(t, dying.Client, poison, 1).ID
			suspects = []string{startRun(t, dying.Client, slow, 1).ID, startRun(t, dying.Client, slow, 2).ID}
		}
		for n := range int64(3) {
			innocent = append(innocent, startRun(t, dying.Client, quick, n).ID)
		}
		if death > 2 {
			checkLane(t, dying, culprit, suspects)
		}
		if exit := dying.Wait(t, 20*time.Second); exit.Code != deadly {
			t.Fatalf("death %d: exit code %d, want %d", death, exit.Code, deadly)
		}
		checkTables(t, checkFile(t, s.Dir), "")
	}

	alive := harness.StartWith(t, harness.Options{Dir: s.Dir, Args: []string{egress}, Fail: poisoned})
	alive.Key = s.Key
	alive.ExpectErrors("a run is quarantined")
	end := awaitEnd(t, alive.Client, culprit, 20*time.Second)
	if end.Status != failed || end.Error.Code != "quarantined" || !strings.Contains(end.Error.Message, "5 times") {
		t.Errorf("the run that kills the process is %s: %+v", end.Status, end.Error)
	}
	for _, id := range append(suspects, innocent...) {
		if end := awaitEnd(t, alive.Client, id, settleTime); end.Status != succeeded {
			t.Errorf("run %s is %s: %+v", id, end.Status, end.Error)
		}
	}
	alive.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
	retryQuarantined(t, restart(t, s, egress), outside, culprit)
}

// checkLane looks at the suspects while the culprit is executed: the others wait
// until it is their turn to be executed by themselves.
func checkLane(t *testing.T, s *harness.Server, culprit string, others []string) {
	t.Helper()
	soon := time.Second
	if harness.OnPostgres() {
		// The time of the node before has to run out, and the others may come first.
		soon = 15 * time.Second
	}
	sink.Within(t, soon, "the other suspects wait", func() bool {
		waiting := 0
		for _, id := range others {
			now := getRun(t, s.Client, id)
			if w := now.WaitingFor; w != nil && strings.Contains(w.Reason, "by itself") || harness.OnPostgres() && now.Status == succeeded {
				waiting++
			}
		}
		return waiting == len(others) && getRun(t, s.Client, culprit).WaitingFor == nil
	})
}

// retryQuarantined executes a run again that was given up, once its cause is
// gone: from the step at which it was caught.
func retryQuarantined(t *testing.T, s *harness.Server, outside *sink.Sink, culprit string) {
	t.Helper()
	var again runBody
	s.Expect(t, 201, "POST", "/v1/runs/"+culprit+"/retry", nil).Decode(t, &again)
	end := awaitEnd(t, s.Client, again.ID, 20*time.Second)
	if end.Status != succeeded || end.RetryOf == nil || *end.RetryOf != culprit {
		t.Errorf("the retry is %s: %+v", end.Status, end)
	}
	counted := outside.Counted()
	for key, want := range map[string]int{
		culprit + "/before": 1, culprit + "/poison": 0, culprit + "/after": 0,
		again.ID + "/before": 0, again.ID + "/poison": 1, again.ID + "/after": 1,
	} {
		if counted[key] != want {
			t.Errorf("%s was called %d times, want %d", key, counted[key], want)
		}
	}
	if now := getRun(t, s.Client, culprit); now.Error == nil || now.Error.Code != "quarantined" {
		t.Errorf("after its retry the run is %s: %+v", now.Status, now.Error)
	}
}

// A process that dies five times in a row before it is ready is started without
// executing runs, and says so, until it is told to leave safe mode.
func TestCrashLoopLeadsToSafeMode(t *testing.T) {
	harness.EmbeddedOnly(t, "starts are counted in the data directory; of several nodes the others go on")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	does := chain{{"add", 1}, {"wait", 100}, {"times", 2}}
	id := createWorkflow(t, s.Client, "accepted", does)
	s.Kill(t)
	for range 5 {
		if exit := spawnDead(t, s.Dir); exit.Code != deadly {
			t.Fatalf("exit code %d, want %d", exit.Code, deadly)
		}
	}

	var runs []string
	for range 2 { // it stays, also over further starts
		safe := startSafe(t, s)
		answer := safe.Expect(t, 503, "GET", "/readyz", nil)
		if !strings.Contains(string(answer.Body), "safe mode") || !strings.Contains(string(answer.Body), "--leave-safe-mode") {
			t.Errorf("/readyz does not say why: %s", answer.Body)
		}
		safe.Expect(t, 200, "GET", "/healthz", nil)
		for n := range int64(10) {
			runs = append(runs, startRun(t, safe.Client, id, n).ID)
		}
		time.Sleep(300 * time.Millisecond) // long enough for each of them
		for _, run := range runs {
			if now := getRun(t, safe.Client, run); now.Status != running || len(now.Steps) != 0 {
				t.Errorf("run %s was executed in safe mode: %+v", run, now)
			}
		}
		if answer := safe.Expect(t, 200, "POST", "/v1/runs/"+startRun(t, safe.Client, id, 1).ID+"/cancel", nil); !strings.Contains(string(answer.Body), `"cancelled"`) {
			t.Errorf("a cancel in safe mode was answered with %s", answer.Body)
		}
		if exit := safe.Terminate(t); exit.Code != 0 {
			t.Errorf("exit code %d", exit.Code)
		}
	}

	s = restart(t, s, "--leave-safe-mode")
	for _, run := range runs {
		for _, v := range does.violations(awaitEnd(t, s.Client, run, 20*time.Second)) {
			t.Error(v)
		}
	}
	s.Stop(t)
	s = restart(t, s)
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// spawnDead starts a server that dies at once.
func spawnDead(t *testing.T, dir string) harness.Exit {
	t.Helper()
	s, err := harness.Spawn(harness.Options{Dir: dir, Fail: "at_start:exit"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	return s.Wait(t, 20*time.Second)
}

// startSafe starts a server that is expected not to become ready.
func startSafe(t *testing.T, was *harness.Server, args ...string) *harness.Server {
	t.Helper()
	s, err := harness.Spawn(harness.Options{Dir: was.Dir, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	s.ExpectErrors("safe mode")
	if err := s.AwaitReadyLine(); err != nil {
		t.Fatal(err)
	}
	s.Key = was.Key
	return s
}

// Kills do not lead to safe mode, however many there are, when they come after
// the service was ready, nor do four deaths before it was.
func TestKillsDoNotLeadToSafeMode(t *testing.T) {
	harness.EmbeddedOnly(t, "starts are counted in the data directory; of several nodes the others go on")
	t.Parallel()
	s := harness.Start(t, t.TempDir())
	for range 6 {
		s.Kill(t)
		s = restart(t, s)
	}
	s.Kill(t)
	for range 2 {
		for range 4 {
			spawnDead(t, s.Dir)
		}
		s = restart(t, s) // and the count begins anew
		s.Kill(t)
	}
}
