package crash_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/sink"
	"github.com/stepmill/stepmill/test/tables"
)

// failpoints are where a server is killed, with how often it passes them at least before
// that. A run passes five calls and six checkpoints.
var failpoints = []struct {
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

// A server is killed at each failpoint under load. Accepted runs end exactly once, and a
// call is only repeated, with the same key, if it was in flight at a death.
func TestKillAtEachFailpoint(t *testing.T) {
	t.Parallel()
	seed := harness.Seed(t)
	for stream, m := range failpoints {
		random := harness.Random(seed, stream)
		t.Run(m.point, func(t *testing.T) {
			t.Parallel()
			deaths := lane.Pick(1, 3)
			target := sink.New(t)
			s := harness.Start(t, t.TempDir(), egress)
			l := newCallLoad(t, s, target)
			s.Stop(t)
			for range deaths {
				fail := fmt.Sprintf("%s:kill:#%d", m.point, m.least+random.Int64N(m.least))
				dying := startDoomed(t, s.Dir, fail)
				if dying.Client != nil {
					l.work(dying, dying.Exited)
				}
				awaitDeath(t, dying)
				l.recordDeath(s.Dir)
			}
			repeated := l.verify(restart(t, s, egress))
			t.Logf("%d runs, %d calls repeated after %d deaths", len(l.runs), repeated, deaths)
			if m.point == "after_effect" && repeated < deaths {
				t.Errorf("%d calls were repeated, want at least %d: each death lost the result of a call", repeated, deaths)
			}
		})
	}
}

// The process dies around the commit of a start, before it responds. A retry with the
// same idempotency key returns the run that was started.
func TestStartRetriedAfterCrash(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before_accept_commit", "after_accept_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := harness.Start(t, t.TempDir())
			id := createWorkflow(t, s.Client, "once", chain{{"add", 1}})
			s.Stop(t)
			for n := range lane.Pick[int64](1, 4) {
				dying := startDoomed(t, s.Dir, point+":kill")
				dying.Key = s.Key
				header := []string{"Idempotency-Key", fmt.Sprintf("order-%d", n)}
				path := "/v1/workflows/" + id + "/runs"
				if response, err := dying.Do(t.Context(), "POST", path, payload(n), header...); err == nil {
					t.Fatalf("response to the start is %d %s, want none", response.Status, response.Body)
				}
				awaitDeath(t, dying)
				written := tables.Texts(t, openCopy(t, s.Dir), "SELECT id FROM runs WHERE payload LIKE $1", fmt.Sprintf(`%%"n":%d}`, n))
				if durable := point == "after_accept_commit"; durable != (len(written) == 1) {
					t.Fatalf("%d runs were written before the death", len(written))
				}
				now := restart(t, s)
				var first, second runBody
				now.Expect(t, 201, "POST", path, payload(n), header...).Decode(t, &first)
				now.Expect(t, 201, "POST", path, payload(n), header...).Decode(t, &second)
				if len(written) == 1 && first.ID != written[0] || second.ID != first.ID {
					t.Errorf("INVARIANT: the retries returned %s and %s, want the committed run %v", first.ID, second.ID, written)
				}
				if end := awaitEnd(t, now.Client, first.ID); end.Status != succeeded {
					t.Errorf("run %s is %s", end.ID, end.Status)
				}
				now.Stop(t)
				if runs := tables.Number(t, openCopy(t, s.Dir), "SELECT count(*) FROM runs"); int64(runs) != n+1 {
					t.Errorf("INVARIANT: %d runs, want %d", runs, n+1)
				}
			}
		})
	}
}

// A panic in an action fails only its step. The process and all other runs continue.
func TestPanicFailsOnlyItsStep(t *testing.T) {
	t.Parallel()
	target := sink.New(t)
	s := harness.StartWith(t, harness.Options{Dir: t.TempDir(), Args: []string{egress}, Failpoint: "before_effect@/bad:panic,after_effect@/late:panic"})
	good := flow.Define(t, s.Client, flow.HTTP("one", target.URL), flow.HTTP("two", target.URL))
	bad := flow.Define(t, s.Client, flow.HTTP("one", target.URL), flow.HTTP("bad", target.URL, "on_error", "continue"), flow.HTTP("two", target.URL), flow.HTTP("late", target.URL))
	var fine, broken []string
	for n := range int64(20) {
		fine = append(fine, startRun(t, s.Client, good, n).ID)
		broken = append(broken, startRun(t, s.Client, bad, n).ID)
	}
	for _, id := range fine {
		if end := awaitEnd(t, s.Client, id); end.Status != succeeded {
			t.Errorf("run %s beside a panic is %s: %+v", id, end.Status, end.Error)
		}
	}
	for _, id := range broken {
		end := awaitEnd(t, s.Client, id)
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
	checkTables(t, openCopy(t, s.Dir), "")
}

// A server is killed during the migration. The next one completes it.
func TestKillDuringMigration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range lane.Pick(1, 3) {
		awaitDeath(t, startDoomed(t, dir, "during_migration:kill"))
	}
	s := harness.StartProcess(t, harness.Options{Dir: dir})
	s.AwaitListening(t)
	s.With(s.AwaitKey(t)).Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "works"})
	s.Stop(t)
	checkTables(t, openCopy(t, dir), "")
}
