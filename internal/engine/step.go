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

// result is what came of executing a step.
type result struct {
	at     place
	result action.Result
	err    error
	log    *logbook
	took   time.Duration // that the action was at work
}

// advance starts, skips and finishes steps as far as that is possible without
// an effect outside the run. Those that have one become pending: they may only
// start once everything they depend on is committed.
func (d *driver) advance(ctx context.Context, f *frame) {
	for again := true; again && ctx.Err() == nil && !d.full(); {
		again = false
		for i := 0; i < len(f.plan.Steps) && d.over == nil; i++ {
			p := place{f, i}
			switch d.move(ctx, p) {
			case settledNow:
				again = true
			case mustLaunch:
				if !slices.Contains(d.pending, p) {
					d.pending = append(d.pending, p)
				}
			}
		}
	}
}

type moved int

const (
	nothing moved = iota
	settledNow
	mustLaunch
)

func (d *driver) move(ctx context.Context, p place) moved {
	step := p.step()
	if step == nil {
		return d.begin(ctx, p)
	}
	_, flying := d.inFlight[step]
	switch {
	case flying || step.Status.Settled():
		return nothing
	case step.Status == run.StepWaiting && step.Answer == nil && (step.WakeAt == nil || step.WakeAt.After(clock.Now())):
		return nothing
	case p.planned().Block != nil:
		d.wakeBlock(p)
		return d.moveBlock(ctx, p)
	case step.Status == run.StepWaiting && step.Error != nil:
		d.again(p)
	}
	return d.execute(ctx, p)
}

// begin gives a step that has not started its verdict.
func (d *driver) begin(ctx context.Context, p place) moved {
	planned := p.planned()
	verdict, reason := judge(p.plan, p.i, p.status)
	if verdict == notYet {
		return nothing
	}
	if limit := d.limits.StepsPerRun; d.seq >= limit {
		d.giveUp(run.Failure{Code: run.CodeStepLimit, Message: fmt.Sprintf("The run has executed %d steps, which is the most the %s plan allows.", limit, d.snap.Plan)})
		return nothing
	}
	now := clock.Now()
	p.env.Now = now
	d.seq++
	p.steps[p.i] = &run.Step{
		Path: p.prefix + planned.ID, Seq: d.seq, Name: planned.Title(), Type: planned.Kind(),
		Status: run.StepRunning, Attempt: 1, StartedAt: now, AttemptAt: now,
	}
	d.change(p.step())
	if verdict == skip {
		return d.skip(p, reason)
	}
	if planned.When != nil {
		holds, err := planned.When.EvalBool(p.env, expr.Budget{})
		if err != nil {
			d.settleFailed(p, d.failureOf(p.step(), err))
			d.countOutcome(p.step())
			return settledNow
		}
		if !holds {
			return d.skip(p, "its condition is false")
		}
	}
	if pin, pinned := d.root.plan.Pins[planned.ID]; pinned {
		return d.answerPinned(p, pin)
	}
	if planned.Block != nil {
		return d.moveBlock(ctx, p)
	}
	return d.execute(ctx, p)
}

// answerPinned settles a step of a draft with its pin.
func (d *driver) answerPinned(p place, pin json.RawMessage) moved {
	step, now := p.step(), clock.Now()
	step.Pin(d.maskOf(step).JSON(pin))
	step.FinishedAt = &now
	d.keep(len(step.Output))
	d.settle(p)
	return settledNow
}

func (d *driver) skip(p place, reason string) moved {
	step := p.step()
	step.Status, step.Reason, step.Attempt = run.StepSkipped, reason, 0
	step.FinishedAt = &step.StartedAt
	d.settle(p)
	return settledNow
}

// execute runs a pure action on the spot; one with effects is left to launch.
func (d *driver) execute(ctx context.Context, p place) moved {
	if err := d.render(ctx, p); err != nil {
		d.settleFailed(p, d.failureOf(p.step(), err))
		d.countOutcome(p.step())
		return settledNow
	}
	if !p.planned().Pure {
		return mustLaunch
	}
	call, _ := d.prepare(p)
	begun := clock.Mark()
	r := call(ctx)
	r.took = time.Since(begun)
	d.apply(r)
	if p.step().Status.Settled() {
		return settledNow
	}
	return nothing
}

// render evaluates the step's input and keeps it, once.
func (d *driver) render(ctx context.Context, p place) error {
	step := p.step()
	if step.Answer != nil && step.Input != nil {
		return nil // what it was asked with has done its part
	}
	if len(p.planned().Secrets)+len(p.planned().Links) > 0 {
		if err := d.missing(p); err != nil {
			return err
		}
		input, err := d.renderSecretly(ctx, p)
		if err != nil {
			return err
		}
		return d.checkInput(step, input)
	}
	if step.Input != nil && !d.lost(step) {
		return nil
	}
	p.env.Now = step.StartedAt
	value, err := p.planned().Input.Eval(p.env, expr.Budget{})
	if err != nil {
		return err
	}
	input, err := strictjson.Encode(value)
	if err != nil {
		return err
	}
	if step.Input == nil {
		step.Input = d.mask.JSON(input)
		d.keep(len(input))
		d.change(step)
	}
	object, _ := value.(map[string]any)
	if !bytes.Equal(step.Input, input) {
		d.inputs[step] = object
	}
	return d.checkInput(step, object)
}

// checkInput holds an input against the schema of its action, now that every
// value is known.
func (d *driver) checkInput(step *run.Step, input map[string]any) error {
	known := func(string) bool { return false }
	if problems := d.engine.plans.Catalog().Check(step.Type, input, known); len(problems) > 0 {
		return &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("with%s: %s", problems[0].Pointer, problems[0].Message)}
	}
	return nil
}

// apply takes the outcome of a step into the state.
func (d *driver) apply(r result) {
	step := r.at.step()
	d.landed(step)
	d.change(step)
	d.record(r.log.take())
	awaited := step.Awaits != "" && step.Answer == nil
	switch {
	case r.err != nil:
		d.failed(r.at, r.err)
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

// stopRun ends the run because a step says so.
func (d *driver) stopRun(p place, stop action.Stop) {
	if !stop.Failed {
		d.over = &finale{status: run.Succeeded}
		return
	}
	message := stop.Message
	if message == "" {
		message = fmt.Sprintf("Step %q stopped the run.", p.step().Name)
	}
	d.giveUp(run.Failure{Code: run.CodeStopped, Message: run.Clip(d.maskOf(p.step()).Text(message), maxMessage), StepID: p.step().Path})
}

// keep counts what the run keeps from now on.
func (d *driver) keep(bytes int) {
	d.size += bytes
	if limit := d.limits.StateBytes; d.size > limit {
		d.giveUp(run.Failure{Code: run.CodeStateTooLarge, Message: fmt.Sprintf("The inputs and outputs of the run have more than %d bytes, which is the most the %s plan allows.", limit, d.snap.Plan)})
	}
}

// failed plans the next attempt of a step that failed for a passing reason and
// has one left; else the step has failed.
func (d *driver) failed(p place, err error) {
	step, policy, failure := p.step(), p.planned().Policy, d.failureOf(p.step(), err)
	passing, ok := errors.AsType[*action.Failure](err)
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
	step.Reason = fmt.Sprintf("attempt %d of %d failed; the next is at %s", step.Attempt, policy.MaxAttempts, clock.Format(next))
}

// again begins the next attempt of a step that waited for it.
func (d *driver) again(p place) {
	step := p.step()
	step.Attempt++
	step.Status, step.AttemptAt = run.StepRunning, clock.Now()
	step.WakeAt, step.Deadline, step.Error, step.Awaits, step.Reason = nil, nil, nil, "", ""
	d.change(step)
}

func (d *driver) succeed(p place, value any) {
	output, err := d.encodeOutput(value, d.maskOf(p.step()))
	if err != nil {
		d.settleFailed(p, d.failureOf(p.step(), err))
		return
	}
	p.step().Status, p.step().Output = run.StepSucceeded, output
	d.end(p)
}

// encodeOutput writes an output as an object: a bare value is wrapped.
func (d *driver) encodeOutput(value any, masker *mask.Masker) (json.RawMessage, error) {
	switch value.(type) {
	case map[string]any:
	case nil:
		value = map[string]any{}
	default:
		value = map[string]any{"value": value}
	}
	output, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	output = masker.JSON(output)
	if limit := d.limits.OutputBytes; len(output) > limit {
		return nil, &action.Failure{Code: run.CodeOutputTooLarge, Message: fmt.Sprintf("the output has %d bytes; the %s plan keeps at most %d", len(output), d.snap.Plan, limit)}
	}
	d.keep(len(output))
	return output, nil
}

func (d *driver) settleFailed(p place, failure run.Failure) {
	step := p.step()
	if failure.StepID == "" {
		failure.StepID = step.Path
	}
	step.Status, step.Error = run.StepFailed, &failure
	d.end(p)
}

func (d *driver) end(p place) {
	now := clock.Now()
	step := p.step()
	delete(d.inputs, step)
	delete(d.masks, step)
	step.FinishedAt, step.WakeAt, step.Deadline, step.Awaits, step.Reason = &now, nil, nil, "", ""
	d.settle(p)
}

func (d *driver) settle(p place) {
	d.change(p.step())
	if err := p.publish(); err != nil {
		// The output was encoded a moment ago, so this cannot happen.
		d.log.Error("cannot read back a step's output", "step", p.step().Path, "error", err)
	}
}

const maxMessage = 4 << 10

// failureOf says what an error means for the one who wrote the workflow.
func (d *driver) failureOf(step *run.Step, err error) run.Failure {
	var (
		fromAction *action.Failure
		fromExpr   *expr.Error
	)
	failure := run.Failure{Code: run.CodeInternal, Message: "The step failed for a reason inside Stepmill."}
	switch {
	case errors.As(err, &fromAction):
		failure = run.Failure{Code: fromAction.Code, Message: fromAction.Message}
	case errors.As(err, &fromExpr):
		failure = run.Failure{Code: fromExpr.Code, Message: fromExpr.Error()}
	}
	failure.Message = run.Clip(d.maskOf(step).Text(failure.Message), maxMessage)
	return failure
}
