package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// begin creates the row of a step.
func (s *runState) begin(p stepRef) {
	now := clock.Now()
	p.env.Now = now
	s.seq++
	p.steps[p.i] = &run.Step{
		Path: p.prefix + p.compiled().ID, Seq: s.seq, Name: p.compiled().Title(), Type: p.compiled().Kind(),
		Status: run.StepRunning, Attempt: 1, StartedAt: now, AttemptAt: now,
	}
	s.changes.add(p.step())
}

func (s *runState) skip(p stepRef, reason string) {
	step := p.step()
	step.Status, step.Reason, step.Attempt = run.StepSkipped, reason, 0
	step.FinishedAt = &step.StartedAt
	s.settle(p)
}

// usePinnedOutput settles a step of a draft with its pinned output.
func (s *runState) usePinnedOutput(p stepRef, pin workflow.Pin) {
	step, now := p.step(), clock.Now()
	output, err := s.maskOutput(p, pin.Output, pin.Files)
	if err != nil {
		s.fail(p, s.failureOf(step, err))
		return
	}
	step.Pin(output.shown)
	step.OutputFiles = output.files
	step.FinishedAt = &now
	s.addSize(len(output.shown))
	s.setUnmasked(step, output.unmasked)
	s.settle(p)
}

// setInput stores the input of a step.
func (s *runState) setInput(step *run.Step, input json.RawMessage) {
	step.Input = input
	s.addSize(len(input))
	s.changes.add(step)
}

// wait suspends a step.
func (s *runState) wait(step *run.Step, wait action.Wait) {
	now := clock.Steady()
	until := now.Add(wait.For).Truncate(time.Microsecond)
	step.Status, step.WakeAt, step.Reason, step.Awaits = run.StepWaiting, &until, s.secrets.maskOf(step).Text(wait.Reason), wait.Awaits
	step.Deadline = nil
	switch {
	case wait.Awaits == action.AwaitsTime:
		moment := wait.Until.UTC().Truncate(time.Microsecond)
		until, step.Deadline = clock.AtWall(moment), &moment
	case wait.Longest > wait.For:
		deadline := now.Add(wait.Longest).Truncate(time.Microsecond)
		step.Deadline = &deadline
	}
}

// checkTimes adjusts the waits until a time of day to a clock that was set.
func (s *runState) checkTimes() {
	for p := range s.root.unsettled() {
		if step := p.step(); step.Status == run.StepWaiting && step.Awaits == action.AwaitsTime && step.Deadline != nil {
			until := clock.AtWall(*step.Deadline)
			step.WakeAt = &until
		}
	}
}

// operate makes the operation of a step part of the next commit, which answers the
// step.
func (s *runState) operate(p stepRef, op action.Operation) error {
	if !p.compiled().Action.Spec.Writes {
		return fmt.Errorf("the action %s returned an operation", p.step().Type)
	}
	s.changes.operations = append(s.changes.operations, stepOperation{p.step(), op})
	return nil
}

// handleFailure schedules the next attempt of a step if the failure is retryable and
// attempts are left. Otherwise the step fails.
func (s *runState) handleFailure(p stepRef, err error) {
	step, policy, failure := p.step(), p.compiled().Policy, s.failureOf(p.step(), err)
	passing, ok := errors.AsType[*action.Failure](err)
	if ok {
		s.storeFailedOutput(p, passing.Output)
	}
	if !ok || !passing.Retryable || step.Failures() >= policy.MaxAttempts {
		s.fail(p, failure)
		return
	}
	now := clock.Now()
	next := clock.Steady().Add(backoff(policy, step.Failures(), passing.RetryAfter)).Truncate(time.Microsecond)
	if step.Answer != nil && p.compiled().Action.Spec.Writes { // of the operation that failed
		step.Answer = nil
		s.changes.retried = append(s.changes.retried, step.Path)
	}
	s.changes.attempts = append(s.changes.attempts, run.Attempt{
		Path: step.Path, Number: step.Attempt, StartedAt: step.AttemptAt, FinishedAt: now, Error: failure,
	})
	failure.StepID = step.Path
	step.Status, step.WakeAt, step.Error = run.StepWaiting, &next, &failure
	step.Deadline, step.Awaits = nil, "" // of a wait for its connection, which is over
	step.Reason = fmt.Sprintf("attempt %d of %d failed; retrying at %s", step.Failures(), policy.MaxAttempts, clock.Format(clock.Wall(next)))
}

// startNextAttempt starts the next attempt of a step that waited for its retry.
func (s *runState) startNextAttempt(step *run.Step) {
	step.Attempt++
	step.Status, step.AttemptAt = run.StepRunning, clock.Now()
	step.WakeAt, step.Deadline, step.Error, step.Awaits, step.Reason = nil, nil, nil, "", ""
	s.dropOutput(step)
	s.changes.add(step)
}

// succeed settles a step with an output. It is encoded already if encoded is not nil.
func (s *runState) succeed(p stepRef, value any, encoded []byte) {
	output, err := s.encodeOutput(p, action.Object(value), encoded)
	if err != nil {
		s.fail(p, s.failureOf(p.step(), err))
		return
	}
	p.step().Status, p.step().Output, p.step().OutputFiles = run.StepSucceeded, output.shown, output.files
	s.finish(p, output.unmasked)
}

// fail settles a step with a failure.
func (s *runState) fail(p stepRef, failure run.Failure) {
	step := p.step()
	if failure.StepID == "" {
		failure.StepID = step.Path
	}
	step.Status, step.Error = run.StepFailed, &failure
	s.finish(p, nil)
}

// finish settles a step that has succeeded or failed. The real output is that of a
// step whose output is stored masked.
func (s *runState) finish(p stepRef, unmasked json.RawMessage) {
	now := clock.Now()
	step := p.step()
	s.secrets.forget(step)
	s.dropState(step)
	s.setUnmasked(step, unmasked)
	step.FinishedAt, step.WakeAt, step.Deadline, step.Awaits, step.Reason = &now, nil, nil, "", ""
	s.settle(p)
}

// settle adds a settled step to the pending commit and shows it to expressions.
func (s *runState) settle(p stepRef) {
	s.changes.add(p.step())
	if err := p.publish(); err != nil {
		// The output was just encoded, so this cannot happen.
		s.log.Error("cannot read back a step's output", "step", p.step().Path, "error", err)
	}
}

// cancel cancels the open steps of a round that does not continue.
func (s *runState) cancel(f *frame) {
	now := clock.Now()
	for p := range f.unsettled() {
		step := p.step()
		step.Status, step.FinishedAt = run.StepCancelled, &now
		files := step.StateFiles
		s.dropState(step)
		s.release(files, step)
		s.changes.add(step)
	}
}

// stopRun ends the run on behalf of a step.
func (s *runState) stopRun(step *run.Step, stop action.Stop) {
	if !stop.Failed {
		s.earlyEnd = &earlyEnd{status: run.Succeeded}
		return
	}
	message := stop.Message
	if message == "" {
		message = fmt.Sprintf("Step %q stopped the run.", step.Name)
	}
	s.failEarly(run.Failure{Code: run.CodeStopped, Message: run.Clip(s.secrets.maskOf(step).Text(message), maxMessage), StepID: step.Path})
}

const maxMessage = 4 << 10

// failureOf returns the failure that users see for an error.
func (s *runState) failureOf(step *run.Step, err error) run.Failure {
	var (
		fromAction *action.Failure
		fromExpr   *expr.Error
	)
	failure := run.Failure{Code: run.CodeInternal, Message: "The step failed because of an internal error in Stepmill."}
	switch {
	case errors.As(err, &fromAction):
		failure = run.Failure{Code: fromAction.Code, Message: fromAction.Message}
	case errors.As(err, &fromExpr):
		failure = run.Failure{Code: fromExpr.Code, Message: fromExpr.Error()}
	}
	failure.Message = run.Clip(s.secrets.maskOf(step).Text(failure.Message), maxMessage)
	return failure
}
