package crash_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// A server is repeatedly asked to stop while calls are in flight and runs wait for
// approvals and for child runs. The calls finish: none is repeated or needs another
// attempt. Everything continues on the next server.
func TestTerminateWhileWaiting(t *testing.T) {
	t.Parallel()
	const perRound = 5
	rounds := lane.Pick(3, 12)
	random := harness.Random(harness.Seed(t), 0)
	target := sink.New(t)
	args := []string{egress, longLease}
	s := harness.Start(t, t.TempDir(), args...)
	parent := parentWorkflow(t, s.Client, target.URL+"?ms=40")
	asks := flow.Define(t, s.Client, flow.HTTP("before", target.URL+"?ms=40"), map[string]any{"id": "ask", "uses": "flow.approval"}, flow.HTTP("after", target.URL+"?ms=40"))
	parents := map[string]int64{}
	var waiting []string
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
			t.Fatalf("round %d: exit code %d\n%s", round, exit.Code, s.Excerpt())
		}
		db := openCopy(t, s.Dir)
		checkTables(t, db, "")
		// A run that was accepted and not claimed may still belong to the last process.
		if left := tables.Texts(t, db, "SELECT run_id FROM run_queue WHERE executing IS NOT NULL OR crashes > 0"); len(left) != 0 {
			t.Errorf("round %d: a stop was counted as a crash of %v", round, left)
		}
		s = restart(t, s, args...)
	}
	checkParents(t, s, parents)
	for _, id := range waiting {
		harness.Eventually(t, "a run with an approval has ended", func() bool {
			now := getRun(t, s.Client, id)
			if w := now.WaitingFor; w != nil && w.StepID != nil && *w.StepID == "ask" {
				// It may already be resumed and about to continue.
				_, _ = s.Do(t.Context(), "POST", "/v1/runs/"+id+"/steps/ask/resume", map[string]any{"approved": true})
			}
			return now.Status == succeeded
		})
	}
	for key, n := range target.Counts() {
		if n != 1 {
			t.Errorf("INVARIANT: %s was called %d times, want 1: no server was killed", key, n)
		}
	}
	s.Stop(t)
	checkTables(t, openCopy(t, s.Dir), "")
}

// A server that is asked to stop waits for calls in flight. A second signal ends it at
// once, and the next server repeats the calls with the same keys.
func TestSecondSignalDuringCall(t *testing.T) {
	lane.LongOnly(t)
	t.Parallel()
	const runs, attempts = 5, 3
	for range attempts {
		target := sink.New(t)
		s := harness.Start(t, t.TempDir(), egress)
		id := flow.Define(t, s.Client, flow.HTTP("one", target.URL), flow.HTTP("slow", target.URL+"?hang"), flow.HTTP("three", target.URL))
		var started []string
		for n := range int64(runs) {
			started = append(started, startRun(t, s.Client, id, n).ID)
		}
		target.Await(t, "the slow calls are in flight", 2*runs, func(*sink.Call) bool { return true })
		begun := time.Now()
		s.Signal(t, syscall.SIGTERM)
		harness.Eventually(t, "the server no longer accepts requests", func() bool {
			_, err := s.Do(t.Context(), "GET", "/healthz", nil)
			return err != nil
		})
		waited := !s.Exited()
		if !waited && time.Since(begun) < minDrain {
			t.Fatal("the server did not wait for calls in flight")
		}
		if waited {
			_ = s.TrySignal(syscall.SIGTERM) // it may have stopped waiting by now
		}
		exit := s.Wait(t)
		if time.Since(begun) >= minDrain {
			t.Log("the second signal came after the server had stopped waiting: trying again")
			continue
		}
		if exit.Code == 0 {
			t.Error("exit code 0 although calls were in flight")
		}
		checkTables(t, openCopy(t, s.Dir), "")
		target.AwaitClosed(t)
		target.Release()
		checkRepeated(t, restart(t, s, egress), target, started)
		return
	}
	t.Log("inconclusive: this machine was too slow for two signals in a row")
}

// minDrain is less than how long a server waits for calls in flight.
const minDrain = 20 * time.Second

// checkRepeated checks that only the slow call of each run was repeated.
func checkRepeated(t *testing.T, s *harness.Server, target *sink.Sink, runs []string) {
	t.Helper()
	for _, run := range runs {
		end := awaitEnd(t, s.Client, run)
		if end.Status != succeeded || end.Steps[1].Attempt != 1 {
			t.Errorf("run %s is %s: %+v", run, end.Status, end.Steps)
		}
		for step, want := range map[string]int{"one": 1, "slow": 2, "three": 1} {
			if n := target.Counts()[run+"/"+step]; n != want {
				t.Errorf("INVARIANT: %s/%s was called %d times, want %d", run, step, n, want)
			}
		}
	}
	s.Stop(t)
}
