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

// waitingStep is a step that waits for what its action said.
func waitingStep(path string, seq int, awaits action.Awaits) run.Step {
	step := newStep(path, seq, run.StepWaiting)
	until := step.StartedAt.Add(time.Hour)
	step.WakeAt, step.Awaits, step.Reason = &until, awaits, "waits"
	return step
}

// ask starts a run whose steps wait for an answer; it is held by nobody.
func (w *world) ask(t *testing.T, of workflow.Workflow, paths ...string) run.Run {
	t.Helper()
	r := w.start(t, of, "node_1")
	var steps []run.Step
	for i, path := range paths {
		steps = append(steps, waitingStep(path, i+1, action.AwaitsAnswer))
	}
	decision := run.Decision{Rev: 1, Steps: steps, Release: true, WakeAt: *steps[0].WakeAt}
	answers(w.Commit(t.Context(), firstLease(r), r, decision))(t, "wait for answers", true)
	w.told.take()
	return r
}

func newAnswer(r run.Run, path, value string) run.Answer {
	return run.Answer{
		WorkspaceID: r.WorkspaceID, RunID: r.ID, StepID: path, Value: json.RawMessage(value), At: clock.Now(),
		Entry: newEntry(r.WorkspaceID, "run.answered", r.ID),
	}
}

func testAnswers(t *testing.T, w *world) {
	ws := w.workspace(t)
	t.Run("of a run that nobody holds", func(t *testing.T) { testAnswerWakes(t, w, ws) })
	t.Run("of a run that is held", func(t *testing.T) { testAnswerStirs(t, w, ws) })
	t.Run("that come to nothing", func(t *testing.T) { testAnswerRefused(t, w, ws) })
	t.Run("at once", func(t *testing.T) {
		wf := w.workflow(t, ws.ID)
		for range 10 {
			r := w.ask(t, wf, "a")
			values := make([]run.Answer, 16)
			for i := range values {
				values[i] = newAnswer(r, "a", fmt.Sprintf(`{"n":%d}`, i))
			}
			same(t, "winners", together(t, len(values), func(i int) (bool, error) { return w.AnswerStep(t.Context(), values[i]) }), 1)
			same(t, "audit entries", w.audited(t, ws.ID, r.ID), 1)
		}
		w.told.take()
	})
	t.Run("before they are waited for", func(t *testing.T) { testEarlyAnswers(t, w, ws) })
	t.Run("over a link", func(t *testing.T) { testAsked(t, w, ws) })
	t.Run("still to come", func(t *testing.T) { testApprovals(t, w) })
}

func testAnswerWakes(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	r := w.ask(t, wf, "a", "b[0].c")
	answer := newAnswer(r, "b[0].c", `{"approved":true}`)
	answers(w.AnswerStep(ctx, answer))(t, "answer", true)
	wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: answer.At, Plan: ws.Plan}
	same(t, "told", w.told.take(), heard{Wakes: []run.Wake{wake}})
	same(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &answer.At})
	same(t, "answers", must(w.Answers(ctx, r.ID))(t), map[string]json.RawMessage{"b[0].c": answer.Value})
	steps := found(w.Snapshot(ctx, r.ID))(t).Steps
	same(t, "the step", steps[1].Answer, answer.Value)
	same(t, "the other step", steps[0].Answer, nil)
	same(t, "audit entries", w.audited(t, ws.ID, r.ID), 1)
	answers(w.AnswerStep(ctx, newAnswer(r, "b[0].c", `{"approved":false}`)))(t, "once more", false)
	same(t, "answers", must(w.Answers(ctx, r.ID))(t), map[string]json.RawMessage{"b[0].c": answer.Value})
	same(t, "told", w.told.take(), heard{})

	lease, ok, err := w.Activate(ctx, wake, "node_2")
	answers(ok, err)(t, "activate", true)
	done := steps[1]
	done.Status, done.Awaits, done.WakeAt = run.StepSucceeded, "", nil
	answers(w.Commit(ctx, lease, r, run.Decision{Rev: 2, Steps: []run.Step{done}}))(t, "commit", true)
	same(t, "answers for open steps", must(w.Answers(ctx, r.ID))(t), nil)
	same(t, "revs", mapped(found(w.Run(ctx, ws.ID, r.ID))(t).Steps, func(s run.Step) int { return s.Rev }), []int{1, 2})
}

// News that comes while a run is held is not lost when the run is given back.
func testAnswerStirs(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	r := w.start(t, wf, "node_1")
	step := waitingStep("a", 1, action.AwaitsAnswer)
	answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}}))(t, "a step that waits", true)
	w.told.take()
	answer := newAnswer(r, "a", `{"approved":true}`)
	answers(w.AnswerStep(ctx, answer))(t, "answer", true)
	same(t, "told", w.told.take(), heard{Stirred: []string{r.ID}})
	same(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, Node: new("node_1"), WakeAt: &answer.At})
	// The holder does not know of it yet.
	step.Reason = "still waits"
	answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 2, Steps: []run.Step{step}, Release: true, WakeAt: *step.WakeAt}))(t, "release", true)
	same(t, "queue", w.queue(t, r.ID), &queued{Epoch: 1, WakeAt: &answer.At})
	wake := run.Wake{RunID: r.ID, WorkspaceID: ws.ID, WorkflowID: wf.ID, Epoch: 1, At: answer.At, Plan: ws.Plan}
	same(t, "told", w.told.take(), heard{Wakes: []run.Wake{wake}})
	same(t, "answers", must(w.Answers(ctx, r.ID))(t), map[string]json.RawMessage{"a": answer.Value})
	_, ok, err := w.Activate(ctx, wake, "node_2")
	answers(ok, err)(t, "activate", true)
	same(t, "queue", w.queue(t, r.ID), &queued{Epoch: 2, Node: new("node_2")})
}

func testAnswerRefused(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf, other := t.Context(), w.workflow(t, ws.ID), w.workspace(t)
	r := w.ask(t, wf, "a")
	foreign := newAnswer(r, "a", `{}`)
	foreign.WorkspaceID = other.ID
	answers(w.AnswerStep(ctx, foreign))(t, "from another workspace", false)
	answers(w.AnswerStep(ctx, newAnswer(r, "b", `{}`)))(t, "for a step that is not there", false)
	answers(w.AnswerStep(ctx, newAnswer(run.Run{ID: "run_none", WorkspaceID: ws.ID}, "a", `{}`)))(t, "for a run that is not there", false)

	mixed := w.start(t, wf, "node_1")
	steps := []run.Step{waitingStep("time", 1, ""), waitingStep("run", 2, action.AwaitsRun), newStep("runs", 3, run.StepRunning), newStep("done", 4, run.StepSucceeded)}
	answers(w.Commit(ctx, firstLease(mixed), mixed, run.Decision{Rev: 1, Steps: steps}))(t, "steps", true)
	w.told.take()
	for _, step := range steps {
		answers(w.AnswerStep(ctx, newAnswer(mixed, step.Path, `{}`)))(t, "for the step "+step.Path, false)
	}
	cancelled := w.ask(t, wf, "a")
	answers(w.CancelRun(ctx, newCancellation(t, cancelled)))(t, "cancel", true)
	w.told.take()
	answers(w.AnswerStep(ctx, newAnswer(cancelled, "a", `{}`)))(t, "for a cancelled run", false)
	same(t, "answers", must(w.Answers(ctx, r.ID))(t), nil)
	same(t, "told", w.told.take(), heard{})
	w.deleteWorkflow(t, wf)
	w.told.take()
	answers(w.AnswerStep(ctx, newAnswer(r, "a", `{}`)))(t, "for a deleted workflow", false)
	same(t, "audit entries", w.audited(t, ws.ID, r.ID), 0)
	same(t, "told", w.told.take(), heard{})
}

func earlyAnswer(r run.Run, path, value string) run.Answer {
	a := newAnswer(r, path, value)
	a.Early = true
	return a
}

// An answer that comes early waits for its step, wherever the run is.
func testEarlyAnswers(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf := t.Context(), w.workflow(t, ws.ID)
	for _, released := range []bool{true, false} {
		r := w.start(t, wf, "node_1")
		foreign := earlyAnswer(r, "a", `{}`)
		foreign.WorkspaceID = w.workspace(t).ID
		answers(w.AnswerStep(ctx, foreign))(t, "from another workspace", false)
		answers(w.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":1}`)))(t, "early", true)
		answers(w.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":1}`)))(t, "the same once more", true)
		answers(w.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":2}`)))(t, "another one", false)
		w.told.take()
		step := waitingStep("a", 1, action.AwaitsAnswer)
		other := waitingStep("b", 2, action.AwaitsAnswer)
		decision := run.Decision{Rev: 1, Steps: []run.Step{step, other}, Release: released, WakeAt: *step.WakeAt}
		answers(w.Commit(ctx, firstLease(r), r, decision))(t, "wait", true)
		same(t, "answers", must(w.Answers(ctx, r.ID))(t), map[string]json.RawMessage{"a": json.RawMessage(`{"n":1}`)})
		told := w.told.take()
		if released {
			same(t, "woken", mapped(told.Wakes, func(k run.Wake) time.Time { return k.At }), []time.Time{step.StartedAt})
		} else {
			same(t, "stirred", told.Stirred, []string{r.ID})
		}
		answers(w.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":3}`)))(t, "after that", false)
		answers(w.AnswerStep(ctx, earlyAnswer(r, "b", `{"n":4}`)))(t, "for one that waits", true)
		answers(w.CancelRun(ctx, newCancellation(t, r)))(t, "cancel", true)
		answers(w.AnswerStep(ctx, earlyAnswer(r, "c", `{}`)))(t, "for a run that has ended", false)
		w.told.take()
	}
	r := w.start(t, wf, "node_1")
	running := newStep("a", 1, run.StepRunning)
	answers(w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{running}}))(t, "a step that runs", true)
	answers(w.AnswerStep(ctx, earlyAnswer(r, "a", `{"n":5}`)))(t, "for one that runs", true)
	same(t, "answers", must(w.Answers(ctx, r.ID))(t), map[string]json.RawMessage{"a": json.RawMessage(`{"n":5}`)})
	w.told.take()

	// Many at once, and the step begins to wait meanwhile: one counts.
	for range 10 {
		r := w.start(t, wf, "node_1")
		step := waitingStep("a", 1, action.AwaitsAnswer)
		won := together(t, 9, func(i int) (bool, error) {
			if i == 4 {
				_, err := w.Commit(ctx, firstLease(r), r, run.Decision{Rev: 1, Steps: []run.Step{step}, Release: true, WakeAt: *step.WakeAt})
				return false, err
			}
			return w.AnswerStep(ctx, earlyAnswer(r, "a", fmt.Sprintf(`{"n":%d}`, i)))
		})
		same(t, "winners", won, 1)
		same(t, "answers", len(must(w.Answers(ctx, r.ID))(t)), 1)
	}
	w.told.take()
}

func testAsked(t *testing.T, w *world, ws auth.Workspace) {
	ctx, wf, other := t.Context(), w.workflow(t, ws.ID), w.workspace(t)
	r := w.ask(t, wf, "a")
	same(t, "owner", must(w.RunOwner(ctx, r.ID))(t), ws.ID)
	same(t, "owner of nothing", must(w.RunOwner(ctx, "run_none"))(t), "")
	asked := found(w.Asked(ctx, ws.ID, r.ID, "a"))(t)
	same(t, "workspace", asked.Workspace.Name, ws.Name)
	same(t, "workflow", asked.WorkflowName, wf.Name)
	same(t, "status", asked.Verdict(), run.Verdict{Standing: run.Open})
	same(t, "not begun", found(w.Asked(ctx, ws.ID, r.ID, "z"))(t).Verdict(), run.Verdict{Standing: run.NotYetOpen})
	same(t, "of others", must(w.Asked(ctx, other.ID, r.ID, "a"))(t), nil)
	w.deleteWorkflow(t, wf)
	same(t, "of a deleted workflow", must(w.Asked(ctx, ws.ID, r.ID, "a"))(t), nil)
	w.told.take()
}

func testApprovals(t *testing.T, w *world) {
	ctx, ws, other := t.Context(), w.workspace(t), w.workspace(t)
	wf, doomed := w.workflow(t, ws.ID), w.workflow(t, ws.ID)
	w.ask(t, w.workflow(t, other.ID), "foreign")
	old := w.ask(t, wf, "c", "a", "b[10].x", "b[9].x")
	newer := w.ask(t, doomed, "a")
	list := func(what string, want ...string) {
		t.Helper()
		var got []string
		page := paging.Request{Limit: 2}
		for {
			found := must(w.Approvals(ctx, ws.ID, page))(t)
			for _, a := range found.Items {
				got = append(got, a.RunID+" "+a.StepID)
			}
			if found.Next == "" {
				break
			}
			page.After = found.Next
		}
		same(t, what, got, want)
	}
	list("in order", newer.ID+" a", old.ID+" a", old.ID+" b[10].x", old.ID+" b[9].x", old.ID+" c")
	first := must(w.Approvals(ctx, ws.ID, whole))(t).Items[0]
	step := found(w.Run(ctx, ws.ID, newer.ID))(t).Steps[0]
	same(t, "an approval", first, run.Approval{
		RunID: newer.ID, StepID: "a", WorkflowID: doomed.ID, WorkflowName: doomed.Name, StepName: step.Name, Input: step.Input, Since: step.StartedAt, Until: step.WakeAt,
	})
	answers(w.AnswerStep(ctx, newAnswer(old, "b[10].x", `{}`)))(t, "answer", true)
	list("after an answer", newer.ID+" a", old.ID+" a", old.ID+" b[9].x", old.ID+" c")
	w.deleteWorkflow(t, doomed)
	list("after a deletion", old.ID+" a", old.ID+" b[9].x", old.ID+" c")
	answers(w.CancelRun(ctx, newCancellation(t, old)))(t, "cancel", true)
	list("after a cancellation")
	w.told.take()
}
