package crash_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

// A workflow is changed, paused and killed under runs that wait. They come to
// the end of the version they started with; only new runs are refused.
func TestEditAndPauseWithLiveRuns(t *testing.T) {
	t.Parallel()
	const each = 10
	s := harness.Start(t, t.TempDir())
	versions := map[int]chain{
		2: {{"add", 1}, {"wait", 1500}, {"times", 2}},
		3: {{"times", 5}, {"wait", 1500}, {"add", 7}, {"times", 3}},
	}
	id := createWorkflow(t, s.Client, "edited", versions[2])
	var runs []runBody
	for n := range int64(each) {
		runs = append(runs, startRun(t, s.Client, id, n))
	}
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": versions[3].steps()})
	for n := range int64(each) {
		runs = append(runs, startRun(t, s.Client, id, n))
	}
	s.Expect(t, 200, "PATCH", "/v1/workflows/"+id, map[string]any{"steps": []step{}, "state": "paused"})
	refuses := func() {
		t.Helper()
		if answer := s.Expect(t, 409, "POST", "/v1/workflows/"+id+"/runs", payload(1)); !strings.Contains(string(answer.Body), "workflow_paused") {
			t.Errorf("a paused workflow answers %s", answer.Body)
		}
	}
	refuses()
	s.Kill(t)
	s = restart(t, s)
	refuses()
	for i, started := range runs {
		now := awaitEnd(t, s.Client, started.ID, 20*time.Second)
		if want := 2 + i/each; now.WorkflowVersion != want || now.Status != succeeded {
			t.Errorf("run %s of version %d ended as %s of version %d", now.ID, want, now.Status, now.WorkflowVersion)
		}
		for _, v := range versions[now.WorkflowVersion].violations(now) {
			t.Error(v)
		}
	}
}
