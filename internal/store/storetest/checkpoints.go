package storetest

import (
	"testing"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// testCheckpoints writes, replaces and removes the states of steps.
func testCheckpoints(t *testing.T, w *harness) {
	ctx, ws := t.Context(), w.workspace(t)
	wf := w.workflow(t, ws.ID)
	states := func(t *testing.T, r run.Run) (states []string) {
		t.Helper()
		for _, step := range found(w.Snapshot(ctx, r.ID))(t).Steps {
			states = append(states, string(step.State))
		}
		return states
	}
	// checkpoint returns a decision with a step that has a state.
	checkpoint := func(rev, attempt int, state string) run.Decision {
		step := newStep("a", 1, run.StepRunning)
		step.Attempt, step.State, step.CheckpointAttempt = attempt, []byte(state), attempt
		return run.Decision{Rev: rev, Steps: []run.Step{step}, Executing: []string{"a"}}
	}
	const sealed = "\x00\xff\xc3\"'"

	t.Run("replace each other", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		for i, state := range []string{"first", sealed} {
			d := checkpoint(i+1, i+3, state)
			returns(w.Commit(ctx, firstLease(r), r, d))(t, "commit", true)
			equal(t, "states", states(t, r), []string{state})
			step := found(w.Snapshot(ctx, r.ID))(t).Steps[0]
			equal(t, "attempt", step.CheckpointAttempt, i+3)
			equal(t, "failures", step.Failures(), 1)
		}
	})

	t.Run("need a valid lease", func(t *testing.T) {
		r := w.start(t, wf, "node_1")
		returns(w.Commit(ctx, firstLease(r), r, checkpoint(1, 1, "old")))(t, "commit", true)
		_, ok, err := w.Activate(ctx, run.Wake{RunID: r.ID, Epoch: 1}, "node_2")
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
}
