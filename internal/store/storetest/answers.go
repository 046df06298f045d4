package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// waitingStep returns a step that waits for what its action awaits.
func waitingStep(path string, seq int, awaits action.Awaits) run.Step {
	step := newStep(path, seq, run.StepWaiting)
	until := step.StartedAt.Add(time.Hour)
	step.WakeAt, step.Awaits, step.Reason = &until, awaits, "waits"
	return step
}

// ask starts a run whose steps wait for an answer. No node owns it.
func (w *harness) ask(t *testing.T, of workflow.Workflow, paths ...string) run.Run {
	t.Helper()
	r := w.start(t, of, "node_1")
	var steps []run.Step
	for i, path := range paths {
		steps = append(steps, waitingStep(path, i+1, action.AwaitsAnswer))
	}
	decision := run.Decision{Rev: 1, Steps: steps, Release: true, WakeAt: *steps[0].WakeAt}
	returns(w.Commit(t.Context(), firstLease(r), r, decision))(t, "wait for answers", true)
	w.notified.take()
	return r
}

func newAnswer(r run.Run, path, value string) run.Answer {
	return run.Answer{
		WorkspaceID: r.WorkspaceID, RunID: r.ID, StepID: path, Value: json.RawMessage(value), At: clock.Now(),
		Entry: newEntry(r.WorkspaceID, "run.answered", r.ID),
	}
}

func testAnswers(t *testing.T, w *harness) {
	ws := w.workspace(t)
	t.Run("for a run without an owner", func(t *testing.T) { testAnswerWakes(t, w, ws) })
	t.Run("for a run with an owner", func(t *testing.T) { testAnswerWhileOwned(t, w, ws) })
	t.Run("that are rejected", func(t *testing.T) { testAnswerRejected(t, w, ws) })
	t.Run("concurrently", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		for range 10 {
			r := w.ask(t, wf, "a")
			values := make([]run.Answer, 16)
			for i := range values {
				values[i] = newAnswer(r, "a", fmt.Sprintf(`{"n":%d}`, i))
			}
			equal(t, "winners", concurrently(t, len(values), func(i int) (bool, error) { return w.Runs.AnswerStep(t.Context(), values[i]) }), 1)
			equal(t, "audit entries", w.audited(t, ws.ID, r.ID), 1)
		}
		w.notified.take()
	})
	t.Run("before the step waits", func(t *testing.T) { testEarlyAnswers(t, w, ws) })
	t.Run("over a link", func(t *testing.T) { testAsked(t, w, ws) })
	t.Run("that are pending", func(t *testing.T) { testApprovals(t, w) })
}

func testAnswerWakes(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	r := w.ask(t, wf, "a", "b[0].c")
	answer := newAnswer(r, "b[0].c", `{"approved":true}`)
	returns(w.Runs.AnswerStep(ctx, answer))(t, "answer", true)
	wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: answer.At, Plan: ws.Plan}
	equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}})
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &answer.At})
	equal(t, "answers", w.answers(t, r.ID), map[string]json.RawMessage{"b[0].c": answer.Value})
	steps := found(w.Leases.Snapshot(ctx, r.ID))(t).Steps
	equal(t, "the step", steps[1].Answer, answer.Value)
	equal(t, "the other step", steps[0].Answer, nil)
	equal(t, "audit entries", w.audited(t, ws.ID, r.ID), 1)
	returns(w.Runs.AnswerStep(ctx, newAnswer(r, "b[0].c", `{"approved":false}`)))(t, "again", false)
	equal(t, "answers", w.answers(t, r.ID), map[string]json.RawMessage{"b[0].c": answer.Value})
	equal(t, "notifications", w.notified.take(), notifications{})

	lease, ok, err := w.Leases.Activate(ctx, wake, "node_2")
	returns(ok, err)(t, "activate", true)
	done := steps[1]
	done.Status, done.Awaits, done.WakeAt = run.StepSucceeded, "", nil
	returns(w.Commit(ctx, lease, r, run.Decision{Rev: 2, Steps: []run.Step{done}}))(t, "commit", true)
	equal(t, "answers for open steps", must(w.Leases.Answers(ctx, r.ID))(t), nil)
	equal(t, "revs", mapped(found(w.Runs.Run(ctx, ws.ID, r.ID))(t).Steps, func(s run.Step) int { return s.Rev }), []int{1, 2})
}

// testAnswerWhileOwned checks that an answer that arrives while a node owns the
// run is not lost when the run is released.
func testAnswerWhileOwned(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	step := waitingStep("a", 1, action.AwaitsAnswer)
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}}))(t, "a step that waits", true)
	w.notified.take()
	answer := newAnswer(r, "a", `{"approved":true}`)
	returns(w.Runs.AnswerStep(ctx, answer))(t, "answer", true)
	equal(t, "notifications", w.notified.take(), notifications{AnswersArrived: []string{r.ID}})
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1"), WakeAt: &answer.At})
	// The owner does not know of it yet.
	step.Reason = "still waits"
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, Steps: []run.Step{step}, Release: true, WakeAt: *step.WakeAt}))(t, "release", true)
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &answer.At})
	wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: answer.At, Plan: ws.Plan}
	equal(t, "notifications", w.notified.take(), notifications{Wakes: []run.Wake{wake}})
	equal(t, "answers", w.answers(t, r.ID), map[string]json.RawMessage{"a": answer.Value})
	_, ok, err := w.Leases.Activate(ctx, wake, "node_2")
	returns(ok, err)(t, "activate", true)
	equal(t, "queue", w.queue(t, r.ID), &queued{Epoch: 2, Node: new("node_2")})
}

func testAnswerRejected(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf, other := t.Context(), w.workflow(t, ws.ID), w.workspace(t)
	r := w.ask(t, wf, "a")
	foreign := newAnswer(r, "a", `{}`)
	foreign.WorkspaceID = other.ID
	returns(w.Runs.AnswerStep(ctx, foreign))(t, "from another workspace", false)
	returns(w.Runs.AnswerStep(ctx, newAnswer(r, "b", `{}`)))(t, "for a step that is not there", false)
	returns(w.Runs.AnswerStep(ctx, newAnswer(run.Run{ID: "run_none", WorkspaceID: ws.ID}, "a", `{}`)))(t, "for a run that is not there", false)

	mixed := w.start(t, wf, "node_1")
	steps := []run.Step{waitingStep("time", 1, ""), waitingStep("run", 2, action.AwaitsRun), newStep("runs", 3, run.StepRunning), newStep("done", 4, run.StepSucceeded)}
	returns(w.Commit(ctx, firstLease(mixed), mixed, run.Decision{Rev: 1, Steps: steps}))(t, "steps", true)
	w.notified.take()
	for _, step := range steps {
		returns(w.Runs.AnswerStep(ctx, newAnswer(mixed, step.Path, `{}`)))(t, "for the step "+step.Path, false)
	}
	cancelled := w.ask(t, wf, "a")
	returns(w.Runs.CancelRun(ctx, newCancellation(t, cancelled)))(t, "cancel", true)
	w.notified.take()
	returns(w.Runs.AnswerStep(ctx, newAnswer(cancelled, "a", `{}`)))(t, "for a cancelled run", false)
	equal(t, "answers", must(w.Leases.Answers(ctx, r.ID))(t), nil)
	equal(t, "notifications", w.notified.take(), notifications{})
	w.deleteWorkflow(t, wf)
	w.notified.take()
	returns(w.Runs.AnswerStep(ctx, newAnswer(r, "a", `{}`)))(t, "for a deleted workflow", false)
	equal(t, "audit entries", w.audited(t, ws.ID, r.ID), 0)
	equal(t, "notifications", w.notified.take(), notifications{})
}

func earlyAnswer(r run.Run, path, value string) run.Answer {
	a := newAnswer(r, path, value)
	a.Early = true
	return a
}

// testEarlyAnswers checks that an early answer is stored for its step, whatever
// state the run is in.
func testEarlyAnswers(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	for _, released := range []bool{true, false} {
		r := w.start(t, wf, "node_1")
		foreign := earlyAnswer(r, "a", `{}`)
		foreign.WorkspaceID = w.workspace(t).ID
		returns(w.Runs.AnswerStep(ctx, foreign))(t, "from another workspace", false)
		returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":1}`)))(t, "early", true)
		returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":1}`)))(t, "the same again", true)
		returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":2}`)))(t, "another one", false)
		w.notified.take()
		step := waitingStep("a", 1, action.AwaitsAnswer)
		other := waitingStep("b", 2, action.AwaitsAnswer)
		decision := run.Decision{Rev: 1, Steps: []run.Step{step, other}, Release: released, WakeAt: *step.WakeAt}
		returns(w.Commit(ctx, firstLease(r), r, decision))(t, "wait", true)
		equal(t, "answers", w.answers(t, r.ID), map[string]json.RawMessage{"a": json.RawMessage(`{"n":1}`)})
		notified := w.notified.take()
		if released {
			equal(t, "woken", mapped(notified.Wakes, func(k run.Wake) time.Time { return k.At }), []time.Time{step.StartedAt})
		} else {
			equal(t, "answers arrived", notified.AnswersArrived, []string{r.ID})
		}
		returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":3}`)))(t, "after that", false)
		returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "b", `{"n":4}`)))(t, "for one that waits", true)
		returns(w.Runs.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "c", `{}`)))(t, "for a run that has ended", false)
		w.notified.take()
	}
	r := w.start(t, wf, "node_1")
	running := newStep("a", 1, run.StepRunning)
	returns(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{running}}))(t, "a step that runs", true)
	returns(w.Runs.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":5}`)))(t, "for one that runs", true)
	equal(t, "answers", w.answers(t, r.ID), map[string]json.RawMessage{"a": json.RawMessage(`{"n":5}`)})
	w.notified.take()

	// Of many concurrent answers, sent while the step starts to wait, one counts.
	for range 10 {
		r := w.start(t, wf, "node_1")
		step := waitingStep("a", 1, action.AwaitsAnswer)
		won := concurrently(t, 9, func(i int) (bool, error) {
			if i == 4 {
				_, err := w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}, Release: true, WakeAt: *step.WakeAt})
				return false, err
			}
			return w.Runs.AnswerStep(ctx, earlyAnswer(r, "a", fmt.Sprintf(`{"n":%d}`, i)))
		})
		equal(t, "winners", won, 1)
		equal(t, "answers", len(must(w.Leases.Answers(ctx, r.ID))(t)), 1)
	}
	w.notified.take()
}

func testAsked(t *testing.T, w *harness, ws auth.Workspace) {
	ctx, wf, other := t.Context(), w.workflow(t, ws.ID), w.workspace(t)
	r := w.ask(t, wf, "a")
	equal(t, "owner", must(w.Runs.RunOwner(ctx, r.ID))(t), ws.ID)
	equal(t, "owner of an unknown run", must(w.Runs.RunOwner(ctx, "run_none"))(t), "")
	asked := found(w.Runs.LinkedStep(ctx, ws.ID, r.ID, "a"))(t)
	equal(t, "workspace", asked.Workspace.Name, ws.Name)
	equal(t, "workflow", asked.WorkflowName, wf.Name)
	equal(t, "status", asked.AnswerStatus(), run.AnswerStatus{State: run.Open})
	equal(t, "not begun", found(w.Runs.LinkedStep(ctx, ws.ID, r.ID, "z"))(t).AnswerStatus(), run.AnswerStatus{State: run.NotYetOpen})
	equal(t, "of others", must(w.Runs.LinkedStep(ctx, other.ID, r.ID, "a"))(t), nil)
	w.deleteWorkflow(t, wf)
	equal(t, "of a deleted workflow", must(w.Runs.LinkedStep(ctx, ws.ID, r.ID, "a"))(t), nil)
	w.notified.take()
}

func testApprovals(t *testing.T, w *harness) {
	ctx, ws, other := t.Context(), w.workspace(t), w.workspace(t)
	wf, deleted := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	w.ask(t, w.workflow(t, other.ID), "foreign")
	old := w.ask(t, wf, "c", "a", "b[10].x", "b[9].x")
	newer := w.ask(t, deleted, "a")
	list := func(what string, want ...string) {
		t.Helper()
		var got []string
		page := paging.Request{Limit: 2}
		for {
			found := must(w.Runs.Approvals(ctx, ws.ID, page))(t)
			for _, a := range found.Items {
				got = append(got, a.RunID+" "+a.StepID)
			}
			if found.Next == "" {
				break
			}
			page.After = found.Next
		}
		equal(t, what, got, want)
	}
	list("in order", newer.ID+" a", old.ID+" a", old.ID+" b[10].x", old.ID+" b[9].x", old.ID+" c")
	first := must(w.Runs.Approvals(ctx, ws.ID, fullPage))(t).Items[0]
	step := found(w.Runs.Run(ctx, ws.ID, newer.ID))(t).Steps[0]
	equal(t, "an approval", first, run.Approval{
		RunID: newer.ID, StepID: "a", WorkflowID: deleted.ID, WorkflowName: deleted.Name, StepName: step.Name, Input: step.Input, Since: step.StartedAt, Until: step.WakeAt,
	})
	returns(w.Runs.AnswerStep(ctx, newAnswer(old, "b[10].x", `{}`)))(t, "answer", true)
	list("after an answer", newer.ID+" a", old.ID+" a", old.ID+" b[9].x", old.ID+" c")
	w.deleteWorkflow(t, deleted)
	list("after a deletion", old.ID+" a", old.ID+" b[9].x", old.ID+" c")
	returns(w.Runs.CancelRun(ctx, newCancellation(t, old)))(t, "cancel", true)
	list("after a cancellation")
	w.notified.take()
}

// answers returns the answers to the open steps of a run.
func (w *harness) answers(t *testing.T, runID string) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	for path, answer := range must(w.Leases.Answers(t.Context(), runID))(t) {
		equal(t, "files of "+path, answer.Files, nil)
		out[path] = answer.Value
	}
	return out
}
