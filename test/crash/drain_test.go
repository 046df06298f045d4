package crash_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// A server is asked to stop again and again while calls are under way and runs
// wait for answers and for each other. Calls come to their end: none is repeated
// and none burns an attempt. Everything goes on with the next server.
func TestTerminateWhileWaiting(t *testing.T) {
	t.Parallel()
	const rounds, perRound = 12, 5
	random := harness.Random(harness.Seed(t), 0)
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	parent := family(t, s.Client, outside.URL+"?ms=40")
	asks := define(t, s.Client, nil, calls("before", outside.URL+"?ms=40"), map[string]any{"id": "ask", "uses": "flow.approval"}, calls("after", outside.URL+"?ms=40"))
	parents := map[string]int64{}
	var waiting []string
	var slowest time.Duration
	for round := range rounds {
		for n := range int64(perRound) {
			parents[startRun(t, s.Client, parent, n).ID] = n
			waiting = append(waiting, startRun(t, s.Client, asks, n).ID)
		}
		time.Sleep(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
		for _, approval := range list(t, s.Client, "/v1/approvals").Data {
			s.Expect(t, 200, "POST", "/v1/runs/"+approval.RunID+"/steps/ask/resume", map[string]any{"approved": true})
		}
		exit := s.Terminate(t)
		if exit.Code != 0 {
			t.Fatalf("round %d: exit code %d\n%s", round, exit.Code, s.Log())
		}
		slowest = max(slowest, exit.Took)
		db := checkFile(t, s.Dir)
		checkTables(t, db, "")
		// One that was accepted and never taken up may still be in the hands of the last process.
		if left := texts(t, db, "SELECT run_id FROM run_queue WHERE executing IS NOT NULL OR crashes > 0"); len(left) != 0 {
			t.Errorf("round %d: a stop was counted as a crash of %v", round, left)
		}
		s = restart(t, s, egress)
	}
	t.Logf("slowest stop: %v", slowest.Round(time.Millisecond))
	checkFamilies(t, s, parents)
	for _, id := range waiting {
		sink.Within(t, settleTime, "a run that asked has ended", func() bool {
			now := getRun(t, s.Client, id)
			if w := now.WaitingFor; w != nil && w.StepID != nil && *w.StepID == "ask" {
				// It may have been answered before, and be about to go on.
				_, _ = s.Do(t.Context(), "POST", "/v1/runs/"+id+"/steps/ask/resume", map[string]any{"approved": true})
			}
			return now.Status == succeeded
		})
	}
	for key, n := range outside.Counted() {
		if n != 1 {
			t.Errorf("%s was called %d times, although nothing was killed", key, n)
		}
	}
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// While a call is under way a server that was asked to stop waits for it. A
// second signal ends it at once; the call is made again by the next server, with
// the same key.
func TestSecondSignalDuringACall(t *testing.T) {
	t.Parallel()
	const runs = 5
	outside := sink.New(t)
	s := harness.Start(t, t.TempDir(), egress)
	id := define(t, s.Client, nil, calls("one", outside.URL), calls("slow", outside.URL+"?ms=3000"), calls("three", outside.URL))
	var started []string
	for n := range int64(runs) {
		started = append(started, startRun(t, s.Client, id, n).ID)
	}
	outside.Await(t, "the slow calls are under way", 2*runs, func(*sink.Call) bool { return true })
	s.Signal(t, syscall.SIGTERM)
	time.Sleep(300 * time.Millisecond)
	if gone(s) {
		t.Fatal("the server did not wait for calls that are under way")
	}
	s.Signal(t, syscall.SIGTERM)
	if exit := s.Wait(t, time.Second); exit.Code == 0 {
		t.Error("exit code 0, as if the calls had come to their end")
	}
	checkTables(t, checkFile(t, s.Dir), "")
	s = restart(t, s, egress)
	for _, run := range started {
		end := awaitEnd(t, s.Client, run, 20*time.Second)
		if end.Status != succeeded || end.Steps[1].Attempt != 1 {
			t.Errorf("run %s is %s: %+v", run, end.Status, end.Steps)
		}
		for step, want := range map[string]int{"one": 1, "slow": 2, "three": 1} {
			if n := outside.Counted()[run+"/"+step]; n != want {
				t.Errorf("%s/%s was called %d times, want %d", run, step, n, want)
			}
		}
	}
	s.Stop(t)
}
