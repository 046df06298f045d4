package api_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
)

// givenOldRun makes a finished run with a step, both of the given age.
func givenOldRun(w *world, name string, age time.Duration) {
	w.t.Helper()
	at := time.Now().Add(-age)
	id := (&uid.Source{}).New(uid.Run, at)
	w.names[name] = id
	w.server.rows(w.t, `INSERT INTO runs (id, workspace_id, workflow_id, workflow_version, status, started_at, finished_at, trigger_type, payload)
		VALUES (?, ?, ?, 1, 'succeeded', ?, ?, 'manual', '{}')`, id, w.id, w.names["wf"], at.UnixMicro(), at.UnixMicro())
	w.server.rows(w.t, `INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, finished_at)
		VALUES (?, 'set', 0, 'set', 'data.set', 'succeeded', 1, ?, ?, ?)`, id, at.UnixMicro(), at.UnixMicro(), at.UnixMicro())
}

// A server removes old runs by itself: they vanish from lists and cannot be
// read.
func TestOldRunsAreRemoved(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	s := newServer(t)
	free, pro := s.newWorldOn(t, `{"name": "n", "plan": "free"}`), s.newWorldOn(t, `{"name": "n", "plan": "pro"}`)
	for _, w := range []*world{free, pro} {
		w.workflow("wf")
		givenOldRun(w, "older", 31*day)
		givenOldRun(w, "old", 8*day)
		givenOldRun(w, "young", 6*day)
		w.finish("new", "wf", "")
	}
	s.restart(t)
	eventually(t, "old runs are removed", func() bool {
		return s.rows(t, `SELECT count(*) FROM runs`)[0][0] == "5" && s.rows(t, `SELECT count(*) FROM steps`)[0][0] == "3"
	})
	for w, want := range map[*world][]string{free: {"new", "young"}, pro: {"new", "young", "old"}} {
		ids := []string{}
		for _, name := range want {
			ids = append(ids, w.names[name])
			w.call("GET", "/v1/runs/$"+name, "").want(200)
		}
		for _, path := range []string{"/v1/runs", "/v1/workflows/$wf/runs", "/v1/runs?status=succeeded", "/v1/runs?workflow_id=$wf&status=succeeded"} {
			if got := w.call("GET", path, "").want(200).column("id"); !slices.Equal(got, ids) {
				t.Errorf("%s lists %v, want %v", path, got, ids)
			}
		}
	}
	for _, path := range []string{"/v1/runs/$old", "/v1/runs/$old/steps", "/v1/runs/$old/steps/set"} {
		free.call("GET", path, "").want(404, "run_not_found")
	}
	if got := free.call("GET", "/v1/runs?text=$old", "").want(200).items(); len(got) != 0 {
		t.Errorf("it is still found: %v", got)
	}
}
