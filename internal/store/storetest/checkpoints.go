package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
)

// testCheckpoints writes, replaces and removes the states of steps.
func testCheckpoints(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	states := func(t *testing.T, r run.Run) (states []string) {
		t.Helper()
		for _, step := range found(w.Leases.Snapshot(ctx, r.ID))(t).Steps {
			states = append(states, string(step.State))
		}
		return states
	}
	const sealed = "\x00\xff\xc3\"'"

	t.Run("replace each other", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		for i, state := range []string{"first", sealed} {
			d := checkpoint(i+1, i+3, state)
			returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
			equal(t, "states", states(t, r), []string{state})
			step := found(w.Leases.Snapshot(ctx, r.ID))(t).Steps[0]
			equal(t, "attempt", step.CheckpointAttempt, i+3)
			equal(t, "failures", step.Failures(), 1)
		}
	})

	t.Run("need a valid lease", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		returns(w.Commit(ctx, firstLease(r), r, checkpoint(1, 1, "old")))(t, "commit", true)
		_, ok, err := w.Leases.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
		returns(ok, err)(t, "takeover", true)
		returns(w.Commit(ctx, firstLease(r), r, checkpoint(2, 1, "new")))(t, "commit of the old node", false)
		equal(t, "states", states(t, r), []string{"old"})
	})

	t.Run("survive a release", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		d := checkpoint(1, 1, sealed)
		d.Executing, d.Release, d.WakeAt = nil, true, clock.Now()
		returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
		equal(t, "states", states(t, r), []string{sealed})
	})

	t.Run("are removed when the step settles", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		returns(w.Commit(ctx, firstLease(r), r, checkpoint(1, 1, sealed)))(t, "commit", true)
		settled := newStep("a", 1, run.StepSucceeded)
		returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, Steps: []run.Step{settled}}))(t, "commit", true)
		equal(t, "states", states(t, r), []string{""})
		equal(t, "rows", w.count(t, `SELECT count(*) FROM steps WHERE run_id = $1 AND state IS NULL AND checkpoint_attempt = 0`, r.ID), 1)
	})

	t.Run("are removed when the run is cut short", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		returns(w.Commit(ctx, firstLease(r), r, checkpoint(1, 1, sealed)))(t, "commit", true)
		d := newFinish(t, r, run.Failed)
		d.Finish.CutShort = true
		returns(w.Commit(ctx, firstLease(r), r, d))(t, "end", true)
		equal(t, "states", states(t, r), []string{""})
		equal(t, "rows", w.count(t, `SELECT count(*) FROM steps WHERE run_id = $1 AND state IS NULL AND checkpoint_attempt = 0`, r.ID), 1)
	})

	t.Run("have chunks", func(t *testing.T) { testChunks(t, w) })
	t.Run("hold and release files", func(t *testing.T) { testCheckpointFiles(t, w) })
	t.Run("lose the references of an earlier attempt", func(t *testing.T) { testFilesOfAttempts(t, w) })
}

// testChunks adds chunks to states, replaces and removes them.
func testChunks(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	start := func(t *testing.T) run.Run {
		t.Helper()
		r := w.start(t, wf, "node_1")
		for i := range 12 { // "10" follows "9"
			d := checkpoint(i+1, 1, "state")
			d.Chunks = []run.Chunk{{Path: "a", Number: i, Data: []byte{0, 0xff, byte(i)}}}
			for range 2 { // a commit can be repeated
				returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
			}
		}
		return r
	}
	chunks := func(t *testing.T, r run.Run) (chunks []run.Chunk) {
		t.Helper()
		return found(w.Leases.Snapshot(ctx, r.ID))(t).Chunks
	}
	r := start(t)
	var all []run.Chunk
	for i := range 12 {
		all = append(all, run.Chunk{Path: "a", Number: i, Data: []byte{0, 0xff, byte(i)}})
	}
	equal(t, "chunks", chunks(t, r), all)

	lost := checkpoint(13, 1, "state")
	lost.DroppedChunks, lost.Chunks = []string{"a"}, []run.Chunk{{Path: "a", Data: []byte("lost")}}
	lease := firstLease(r)
	lease.Epoch++
	returns(w.Commit(ctx, lease, r, lost))(t, "commit under another lease", false)
	equal(t, "chunks", chunks(t, r), all)

	replaced := []run.Chunk{{Path: "a", Data: []byte("all")}, {Path: "b", Data: []byte("other")}}
	d := checkpoint(13, 1, "state")
	d.Chunks, d.DroppedChunks = replaced, []string{"a"}
	returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
	equal(t, "replaced", chunks(t, r), replaced)
	d = run.Decision{Rev: 14, DroppedChunks: []string{"a"}}
	returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
	equal(t, "those of the other step", chunks(t, r), replaced[1:])

	r = start(t)
	cut := newFinish(t, r, run.Failed)
	cut.Finish.CutShort = true
	returns(w.Commit(ctx, firstLease(r), r, cut))(t, "end", true)
	equal(t, "rows of the run that was cut short", w.count(t, `SELECT count(*) FROM step_chunks WHERE run_id = $1`, r.ID), 0)
}

// checkpoint returns a decision with a step that has a state.
func checkpoint(rev, attempt int, state string) run.Decision {
	step := newStep("a", 1, run.StepRunning)
	step.Attempt, step.State, step.CheckpointAttempt = attempt, []byte(state), attempt
	return run.Decision{Rev: rev, Steps: []run.Step{step}, Executing: []string{"a"}}
}

func testCheckpointFiles(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	r := w.start(t, w.workflow(t, ws.ID), "node_1")
	a, b := newFile(ws.ID, "checkpoint a").File, newFile(ws.ID, "checkpoint b").File
	first := checkpoint(1, 1, "first")
	first.Files = []file.File{a, b}
	returns(w.Commit(ctx, firstLease(r), r, first))(t, "commit", true)
	equal(t, "held", w.count(t, `SELECT count(*) FROM file_refs WHERE holder = $1`, r.ID), 2)
	second := checkpoint(2, 1, "second")
	second.Releases = []string{a.ID}
	for range 2 { // a commit can be repeated
		returns(w.Commit(ctx, firstLease(r), r, second))(t, "commit", true)
		equal(t, "held", w.count(t, `SELECT count(*) FROM file_refs WHERE holder = $1`, r.ID), 1)
		equal(t, "expired", w.count(t, `SELECT count(*) FROM files WHERE id = $1 AND expires_at IS NOT NULL`, a.ID), 1)
		w.checkFiles(t, ws.ID)
	}
	lost := checkpoint(3, 1, "lost")
	lost.Releases = []string{b.ID}
	lease := firstLease(r)
	lease.Epoch++
	returns(w.Commit(ctx, lease, r, lost))(t, "commit under another lease", false)
	equal(t, "held", w.count(t, `SELECT count(*) FROM file_refs WHERE holder = $1`, r.ID), 1)

	last := newFinish(t, r, run.Succeeded)
	last.Releases = []string{b.ID}
	returns(w.Commit(ctx, firstLease(r), r, last))(t, "end", true)
	must(w.Runs.PurgeRuns(ctx, r.WorkflowID, []string{r.ID}, 100))(t)
	for must(w.Runs.PurgeRemains(ctx, 100))(t) { // the first batch has little time
	}
	equal(t, "usage of the deleted run", w.count(t, `SELECT count(*) FROM file_usage WHERE owner = $1`, r.ID), 0)
}

// testFilesOfAttempts replaces the input of a step with one that looks the same but
// refers to no file.
func testFilesOfAttempts(t *testing.T, w *harness) {
	ctx := t.Context()
	r := w.start(t, w.workflow(t, w.workspace(t).ID), "node_1")
	step := newStep("a", 1, run.StepRunning)
	step.Input, step.InputFiles = []byte(`{"body": {"$file": "file_1"}}`), []string{"/body"}
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}}))(t, "commit", true)
	step.Attempt, step.InputFiles = 2, nil
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, Steps: []run.Step{step}}))(t, "commit", true)
	equal(t, "steps with references", w.count(t, `SELECT count(*) FROM steps WHERE run_id = $1 AND input_files IS NOT NULL`, r.ID), 0)
}
