package crash_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/sink"
)

// moments are where a server is killed, with how many times it passes there at
// least until then. A run passes five calls, and six checkpoints.
var moments = []struct {
	point string
	least int64
}{
	{"before_accept_commit", 30},
	{"after_accept_commit", 30},
	{"after_claim", 30},
	{"before_effect", 150},
	{"after_effect", 150},
	{"mid_checkpoint", 180},
	{"after_checkpoint", 180},
}

// A server is killed at each of the moments that matter, under load. Whatever
// was accepted ends once; a call is repeated only when it was under way at a
// death, and then with the same key.
func TestKillAtEachMoment(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	for stream, m := range moments {
		random := harness.Random(seed, stream)
		t.Run(m.point, func(t *testing.T) {
			t.Parallel()
			const deaths = 3
			outside := sink.New(t)
			s := harness.Start(t, t.TempDir(), egress)
			l := newCalling(t, s, outside)
			s.Stop(t)
			for range deaths {
				fail := fmt.Sprintf("%s:kill:#%d", m.point, m.least+random.Int64N(m.least))
				dying := spawn(t, s.Dir, fail)
				if dying.Client != nil {
					l.work(dying, func() bool { return gone(dying) })
				}
				awaitDeath(t, dying)
				l.bury(s.Dir)
			}
			repeated := l.verify(restart(t, s, egress))
			t.Logf("%d runs, %d calls repeated after %d deaths", len(l.runs), repeated, deaths)
			if m.point == "after_effect" && repeated < deaths {
				t.Errorf("%d calls were repeated; at each of %d deaths one had been made and not recorded", repeated, deaths)
			}
		})
	}
}

// A start was written and the process died before it could say so. The same
// order again is answered with the run that it had started.
func TestStartThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_accept_commit", "after_accept_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t, t.TempDir())
			id := createWorkflow(t, s.Client, "once", chain{{"add", 1}})
			s.Stop(t)
			for n := range int64(4) {
				dying := spawn(t, s.Dir, point+":kill")
				dying.Key = s.Key
				order := []string{"Idempotency-Key", fmt.Sprintf("order-%d", n)}
				path := "/v1/workflows/" + id + "/runs"
				if answer, err := dying.Do(t.Context(), "POST", path, payload(n), order...); err == nil {
					t.Fatalf("the start was answered with %d %s", answer.Status, answer.Body)
				}
				awaitDeath(t, dying)
				written := texts(t, checkFile(t, s.Dir), "SELECT id FROM runs WHERE payload LIKE $1", fmt.Sprintf(`%%"n":%d}`, n))
				if durable := point == "after_accept_commit"; durable != (len(written) == 1) {
					t.Fatalf("%d runs were written before the death", len(written))
				}
				now := restart(t, s)
				var first, second runBody
				now.Expect(t, 201, "POST", path, payload(n), order...).Decode(t, &first)
				now.Expect(t, 201, "POST", path, payload(n), order...).Decode(t, &second)
				if len(written) == 1 && first.ID != written[0] || second.ID != first.ID {
					t.Errorf("the order was answered with %s and %s; written was %v", first.ID, second.ID, written)
				}
				if end := awaitEnd(t, now.Client, first.ID, 20*time.Second); end.Status != succeeded {
					t.Errorf("run %s is %s", end.ID, end.Status)
				}
				now.Stop(t)
				if runs := number(t, checkFile(t, s.Dir), "SELECT count(*) FROM runs"); int64(runs) != n+1 {
					t.Errorf("%d runs after %d orders", runs, n+1)
				}
			}
		})
	}
}

// An action that panics fails its own step. The process lives, and so does
// everything else.
func TestPanicStaysInItsStep(t *testing.T) {
	t.Parallel()
	outside := sink.New(t)
	s := harness.StartWith(t, harness.Options{Dir: t.TempDir(), Args: []string{egress}, Fail: "before_effect@/bad:panic,after_effect@/late:panic"})
	s.ExpectErrors("panic in an action")
	good := define(t, s.Client, nil, calls("one", outside.URL), calls("two", outside.URL))
	bad := define(t, s.Client, nil, calls("one", outside.URL), calls("bad", outside.URL, "on_error", "continue"), calls("two", outside.URL), calls("late", outside.URL))
	var fine, broken []string
	for n := range int64(20) {
		fine = append(fine, startRun(t, s.Client, good, n).ID)
		broken = append(broken, startRun(t, s.Client, bad, n).ID)
	}
	for _, id := range fine {
		if end := awaitEnd(t, s.Client, id, 20*time.Second); end.Status != succeeded {
			t.Errorf("run %s beside a panic is %s: %+v", id, end.Status, end.Error)
		}
	}
	for _, id := range broken {
		end := awaitEnd(t, s.Client, id, 20*time.Second)
		if end.Status != failed || end.Error.Code != "internal_error" || strings.Contains(end.Error.Message, "failpoint") {
			t.Errorf("run %s with panics is %s: %+v", id, end.Status, end.Error)
		}
		var got []string
		for _, step := range end.Steps {
			got = append(got, fmt.Sprintf("%s %s %d", step.StepID, step.Status, step.Attempt))
		}
		if want := "one succeeded 1, bad failed 1, two succeeded 1, late failed 1"; strings.Join(got, ", ") != want {
			t.Errorf("run %s has the steps %v, want %s", id, got, want)
		}
	}
	s.Expect(t, 200, "GET", "/readyz", nil)
	s.Stop(t)
	checkTables(t, checkFile(t, s.Dir), "")
}

// A server is killed while it makes its tables. The next one makes them.
func TestKillDuringMigration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 3 {
		awaitDeath(t, spawn(t, dir, "during_migration:kill"))
	}
	s, err := harness.Spawn(harness.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t) })
	if err := s.AwaitReadyLine(); err != nil {
		t.Fatal(err)
	}
	s.With(s.AwaitKey(t)).Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "works"})
	s.Stop(t)
	checkTables(t, checkFile(t, dir), "")
}
