package crash_test

import (
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// A workflow is changed and paused while its runs wait, and the server is killed. The
// runs finish the version they started with; only new runs are rejected.
func TestEditAndPauseWithActiveRuns(t *testing.T) {
	lane.LongOnly(t)
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
	checkRejected := func() {
		t.Helper()
		if response := s.Expect(t, 409, "POST", "/v1/workflows/"+id+"/runs", payload(1)); !strings.Contains(string(response.Body), "workflow_paused") {
			t.Errorf("response of a paused workflow is %s", response.Body)
		}
	}
	checkRejected()
	s.Kill(t)
	s = restart(t, s)
	checkRejected()
	for i, started := range runs {
		now := awaitEnd(t, s.Client, started.ID)
		if want := 2 + i/each; now.WorkflowVersion != want || now.Status != succeeded {
			t.Errorf("run %s of version %d ended %s with version %d", now.ID, want, now.Status, now.WorkflowVersion)
		}
		for _, v := range versions[now.WorkflowVersion].violations(now) {
			t.Error(v)
		}
	}
}
