package api_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/test/lane"
)

// setupOldRun creates a finished run with a step, both of the given age.
func setupOldRun(w *testWorkspace, name string, age time.Duration) {
	w.t.Helper()
	at := time.Now().Add(-age)
	id := (&uid.Source{}).New(uid.Run, at)
	w.names[name] = id
	w.server.query(w.t, `INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, finished_at, trigger_type, payload)
		VALUES (?, ?, ?, 1, 'succeeded', ?, ?, 'manual', '{}')`, id, w.id, w.names["wf"], at.UnixMicro(), at.UnixMicro())
	w.server.query(w.t, `INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, finished_at)
		VALUES (?, 'set', 0, 'set', 'data.set', 'succeeded', 1, ?, ?, ?)`, id, at.UnixMicro(), at.UnixMicro(), at.UnixMicro())
}

// A server deletes old runs: they disappear from lists and cannot be read.
func TestRunRetention(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	const day = 24 * time.Hour
	s := newServer(t)
	free, pro := s.newTestWorkspaceWith(t, `{"name": "n", "plan": "free"}`), s.newTestWorkspaceWith(t, `{"name": "n", "plan": "pro"}`)
	for _, w := range []*testWorkspace{free, pro} {
		w.workflow("wf")
		setupOldRun(w, "older", 31*day)
		setupOldRun(w, "old", 8*day)
		setupOldRun(w, "young", 6*day)
		w.runToEnd("new", "wf", "")
	}
	s.restart(t)
	eventually(t, "old runs are removed", func() bool {
		return s.query(t, `SELECT count(*) FROM runs`)[0][0] == "5" && s.query(t, `SELECT count(*) FROM steps`)[0][0] == "3"
	})
	for w, want := range map[*testWorkspace][]string{free: {"new", "young"}, pro: {"new", "young", "old"}} {
		ids := []string{}
		for _, name := range want {
			ids = append(ids, w.names[name])
			w.call("GET", "/v1/runs/$"+name, "").wantStatus(200)
		}
		for _, path := range []string{"/v1/runs", "/v1/workflows/$wf/runs", "/v1/runs?status=succeeded", "/v1/runs?workflow_id=$wf&status=succeeded"} {
			if got := w.call("GET", path, "").wantStatus(200).column("id"); !slices.Equal(got, ids) {
				t.Errorf("%s lists %v, want %v", path, got, ids)
			}
		}
	}
	for _, path := range []string{"/v1/runs/$old", "/v1/runs/$old/steps", "/v1/runs/$old/steps/set"} {
		free.call("GET", path, "").wantStatus(404, "run_not_found")
	}
	if got := free.call("GET", "/v1/runs?text=$old", "").wantStatus(200).items(); len(got) != 0 {
		t.Errorf("it is still found: %v", got)
	}
}
