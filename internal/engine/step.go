package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// result is the result of executing a step.
type result struct {
	at     stepRef
	result action.Result
	err    error
	log    *stepLog
	took   time.Duration // by the action
}

// advance starts, skips and finishes steps as far as possible without effects
// outside the run. Steps with effects become pending: they start once everything
// they depend on is committed.
func (d *driver) advance(ctx context.Context, f *frame) {
	for again := true; again && ctx.Err() == nil && !d.batchFull(); {
		again = false
		for i := 0; i < len(f.program.Steps) && d.earlyEnd == nil; i++ {
			p := stepRef{f, i}
			switch d.move(ctx, p) {
			case stepSettled:
				again = true
			case needsExecution:
				if !slices.Contains(d.pending, p) {
					d.pending = append(d.pending, p)
				}
			}
		}
	}
}

type stepChange int

const (
	noChange stepChange = iota
	stepSettled
	needsExecution
)

func (d *driver) move(ctx context.Context, p stepRef) stepChange {
	step := p.step()
	if step == nil {
		return d.startStep(ctx, p)
	}
	_, inFlight := d.inFlight[step]
	switch {
	case inFlight || step.Status.Settled():
		return noChange
	case step.Status == run.StepWaiting && step.Answer == nil && (step.WakeAt == nil || step.WakeAt.After(clock.Now())):
		return noChange
	case p.compiled().Block != nil:
		d.wakeBlock(p)
		return d.moveBlock(ctx, p)
	case step.Status == run.StepWaiting && step.Error != nil:
		d.startNextAttempt(p)
	}
	return d.execute(ctx, p)
}

// startStep starts or skips a step that is ready.
func (d *driver) startStep(ctx context.Context, p stepRef) stepChange {
	compiled := p.compiled()
	verdict, reason := readiness(p.program, p.i, p.status)
	if verdict == notYet {
		return noChange
	}
	if limit := d.limits.StepsPerRun; d.seq >= limit {
		d.failEarly(run.Failure{Code: run.CodeStepLimit, Message: fmt.Sprintf("The run has executed %d steps, the most the %s plan allows.", limit, d.snap.Plan)})
		return noChange
	}
	now := clock.Now()
	p.env.Now = now
	d.seq++
	p.steps[p.i] = &run.Step{
		Path: p.prefix + compiled.ID, Seq: d.seq, Name: compiled.Title(), Type: compiled.Kind(),
		Status: run.StepRunning, Attempt: 1, StartedAt: now, AttemptAt: now,
	}
	d.change(p.step())
	if verdict == skip {
		return d.skip(p, reason)
	}
	if compiled.When != nil {
		holds, err := compiled.When.EvalBool(p.env, expr.Budget{})
		if err != nil {
			d.settleFailed(p, d.failureOf(p.step(), err))
			d.countOutcome(p.step())
			return stepSettled
		}
		if !holds {
			return d.skip(p, "its condition is false")
		}
	}
	if pin, pinned := d.root.program.Pins[compiled.ID]; pinned {
		return d.usePinnedOutput(p, pin)
	}
	if compiled.Block != nil {
		return d.moveBlock(ctx, p)
	}
	return d.execute(ctx, p)
}

// usePinnedOutput settles a step of a draft with its pinned output.
func (d *driver) usePinnedOutput(p stepRef, pin json.RawMessage) stepChange {
	step, now := p.step(), clock.Now()
	step.Pin(d.maskOf(step).JSON(pin))
	step.FinishedAt = &now
	d.addSize(len(step.Output))
	d.settle(p)
	return stepSettled
}

func (d *driver) skip(p stepRef, reason string) stepChange {
	step := p.step()
	step.Status, step.Reason, step.Attempt = run.StepSkipped, reason, 0
	step.FinishedAt = &step.StartedAt
	d.settle(p)
	return stepSettled
}

// execute executes a pure action synchronously. One with effects is left to
// executeAsync.
func (d *driver) execute(ctx context.Context, p stepRef) stepChange {
	if err := d.render(ctx, p); err != nil {
		d.settleFailed(p, d.failureOf(p.step(), err))
		d.countOutcome(p.step())
		return stepSettled
	}
	if !p.compiled().Pure {
		return needsExecution
	}
	call, _ := d.prepare(p)
	begun := clock.Monotonic()
	r := call(ctx)
	r.took = time.Since(begun)
	d.apply(r)
	if p.step().Status.Settled() {
		return stepSettled
	}
	return noChange
}

// render evaluates the input of a step once and stores it.
func (d *driver) render(ctx context.Context, p stepRef) error {
	step := p.step()
	if step.Answer != nil && step.Input != nil {
		return nil // the input was needed to ask; the answer is here
	}
	if len(p.compiled().Secrets)+len(p.compiled().Links) > 0 {
		if err := d.checkSecrets(p); err != nil {
			return err
		}
		input, err := d.renderWithSecrets(ctx, p)
		if err != nil {
			return err
		}
		return d.checkInput(step, input)
	}
	if step.Input != nil && !d.inputMasked(step) {
		return nil
	}
	p.env.Now = step.StartedAt
	value, err := p.compiled().Input.Eval(p.env, expr.Budget{})
	if err != nil {
		return err
	}
	input, err := strictjson.Encode(value)
	if err != nil {
		return err
	}
	if step.Input == nil {
		step.Input = d.mask.JSON(input)
		d.addSize(len(input))
		d.change(step)
	}
	object, _ := value.(map[string]any)
	if !bytes.Equal(step.Input, input) {
		d.inputs[step] = object
	}
	return d.checkInput(step, object)
}

// checkInput validates an input against the schema of its action, now that all
// values are known.
func (d *driver) checkInput(step *run.Step, input map[string]any) error {
	known := func(string) bool { return false }
	if problems := d.engine.programs.Catalog().Check(step.Type, input, known); len(problems) > 0 {
		return &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("with%s: %s", problems[0].Pointer, problems[0].Message)}
	}
	return nil
}

// apply applies the result of a step to the state.
func (d *driver) apply(r result) {
	step := r.at.step()
	d.removeInFlight(step)
	d.change(step)
	d.appendLogs(r.log.take())
	awaited := step.Awaits != "" && step.Answer == nil
	switch {
	case r.err != nil:
		d.handleFailure(r.at, r.err)
	case r.result.Wait != nil:
		until := r.result.Wait.Until.UTC().Truncate(time.Microsecond)
		step.Status, step.WakeAt, step.Reason, step.Awaits = run.StepWaiting, &until, d.maskOf(step).Text(r.result.Wait.Reason), r.result.Wait.Awaits
		step.Deadline = nil
		if deadline := r.result.Wait.Deadline.UTC().Truncate(time.Microsecond); deadline.After(until) {
			step.Deadline = &deadline
		}
	default:
		d.succeed(r.at, r.result.Output)
		if r.result.Stop != nil {
			d.stopRun(r.at, *r.result.Stop)
		}
	}
	if awaited && step.Status.Settled() {
		d.unanswered = append(d.unanswered, step.Path)
	}
	d.countExecution(step, r.took)
}

// stopRun ends the run on behalf of a step.
func (d *driver) stopRun(p stepRef, stop action.Stop) {
	if !stop.Failed {
		d.earlyEnd = &earlyEnd{status: run.Succeeded}
		return
	}
	message := stop.Message
	if message == "" {
		message = fmt.Sprintf("Step %q stopped the run.", p.step().Name)
	}
	d.failEarly(run.Failure{Code: run.CodeStopped, Message: run.Clip(d.maskOf(p.step()).Text(message), maxMessage), StepID: p.step().Path})
}

// addSize adds to the size of the run's stored state and enforces its limit.
func (d *driver) addSize(bytes int) {
	d.size += bytes
	if limit := d.limits.StateBytes; d.size > limit {
		d.failEarly(run.Failure{Code: run.CodeStateTooLarge, Message: fmt.Sprintf("The inputs and outputs of the run have more than %d bytes, the most the %s plan allows.", limit, d.snap.Plan)})
	}
}

// handleFailure schedules the next attempt of a step if the failure is retryable and
// attempts are left. Otherwise the step fails.
func (d *driver) handleFailure(p stepRef, err error) {
	step, policy, failure := p.step(), p.compiled().Policy, d.failureOf(p.step(), err)
	passing, ok := errors.AsType[*action.Failure](err)
	if ok {
		d.storeFailedOutput(step, passing.Output)
	}
	if !ok || !passing.Retryable || step.Attempt >= policy.MaxAttempts {
		d.settleFailed(p, failure)
		return
	}
	now := clock.Now()
	next := now.Add(backoff(policy, step.Attempt, passing.RetryAfter)).Truncate(time.Microsecond)
	d.attempts = append(d.attempts, run.Attempt{
		Path: step.Path, Number: step.Attempt, StartedAt: step.AttemptAt, FinishedAt: now, Error: failure,
	})
	failure.StepID = step.Path
	step.Status, step.WakeAt, step.Error = run.StepWaiting, &next, &failure
	step.Reason = fmt.Sprintf("attempt %d of %d failed; retrying at %s", step.Attempt, policy.MaxAttempts, clock.Format(next))
}

// startNextAttempt starts the next attempt of a step that waited for its retry.
func (d *driver) startNextAttempt(p stepRef) {
	step := p.step()
	step.Attempt++
	step.Status, step.AttemptAt = run.StepRunning, clock.Now()
	step.WakeAt, step.Deadline, step.Error, step.Awaits, step.Reason = nil, nil, nil, "", ""
	d.dropOutput(step)
	d.change(step)
}

func (d *driver) succeed(p stepRef, value any) {
	output, err := d.encodeOutput(value, d.maskOf(p.step()))
	if err != nil {
		d.settleFailed(p, d.failureOf(p.step(), err))
		return
	}
	p.step().Status, p.step().Output = run.StepSucceeded, output
	d.finishStep(p)
}

// encodeOutput encodes an output as an object. It wraps a bare value.
func (d *driver) encodeOutput(value any, masker *mask.Masker) (json.RawMessage, error) {
	output, err := strictjson.Encode(action.Object(value))
	if err != nil {
		return nil, err
	}
	output = masker.JSON(output)
	if limit := d.limits.OutputBytes; len(output) > limit {
		return nil, &action.Failure{Code: run.CodeOutputTooLarge, Message: fmt.Sprintf("the output has %d bytes; the %s plan allows at most %d", len(output), d.snap.Plan, limit)}
	}
	d.addSize(len(output))
	return output, nil
}

func (d *driver) settleFailed(p stepRef, failure run.Failure) {
	step := p.step()
	if failure.StepID == "" {
		failure.StepID = step.Path
	}
	step.Status, step.Error = run.StepFailed, &failure
	d.finishStep(p)
}

func (d *driver) finishStep(p stepRef) {
	now := clock.Now()
	step := p.step()
	delete(d.inputs, step)
	delete(d.masks, step)
	step.FinishedAt, step.WakeAt, step.Deadline, step.Awaits, step.Reason = &now, nil, nil, "", ""
	d.settle(p)
}

func (d *driver) settle(p stepRef) {
	d.change(p.step())
	if err := p.publish(); err != nil {
		// The output was just encoded, so this cannot happen.
		d.log.Error("cannot read back a step's output", "step", p.step().Path, "error", err)
	}
}

const maxMessage = 4 << 10

// failureOf returns the failure that users see for an error.
func (d *driver) failureOf(step *run.Step, err error) run.Failure {
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
	failure.Message = run.Clip(d.maskOf(step).Text(failure.Message), maxMessage)
	return failure
}
