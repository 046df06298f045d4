package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
)

// stopGrace is how long an action may take to stop after its timeout or cancellation.
const stopGrace = time.Second

// executeAsync executes a step with effects in the background.
func (d *driver) executeAsync(ctx context.Context, p stepRef) {
	d.executions.begin(p)
	call, lines := d.prepare(p)
	go func() {
		r := d.executeWithin(ctx, p, p.compiled().Limit, call)
		r.log = lines
		d.executions.results <- r
	}()
}

// executeWithin waits until the action of a step may run and calls it. The limit
// applies to the call only. It abandons an action that does not stop after its
// timeout; the action shares no state with the driver.
func (d *driver) executeWithin(ctx context.Context, p stepRef, limit time.Duration, call func(context.Context) result) result {
	release, err := d.acquire(ctx, p)
	if err != nil {
		return result{at: p, err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan result, 1)
	begun := clock.Monotonic()
	go func() {
		r := call(ctx)
		release() // even if the action was abandoned, not before it returns
		done <- r
	}()
	r := d.supervise(ctx, p, limit, done)
	r.took = time.Since(begun)
	return r
}

// acquire waits until the action of a step may run. Only a step test has a deadline
// here; a run that waits is bounded by its own timeout.
func (d *driver) acquire(ctx context.Context, p stepRef) (release func(), err error) {
	entry := p.compiled().Action
	if entry.Acquire == nil {
		return func() {}, nil
	}
	release, err = entry.Acquire(ctx, d.state.snap.WorkspaceID)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &action.Failure{
			Code: action.TimedOut, Retryable: true,
			Message: fmt.Sprintf("%s could not start in time because the server is busy; try again later", entry.Spec.Name),
		}
	}
	return release, err
}

func (d *driver) supervise(ctx context.Context, p stepRef, limit time.Duration, done <-chan result) result {
	select {
	case r := <-done:
		return timedOut(ctx, limit, r)
	case <-ctx.Done():
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case r := <-done:
		return timedOut(ctx, limit, r)
	case <-timer.C:
		d.log.Warn("an action is still running after it was told to stop; continuing without it", "step", p.compiled().ID)
		d.engine.stuck.Add(1)
		go func() {
			<-done
			d.engine.stuck.Add(-1)
		}()
		return timedOut(ctx, limit, result{at: p, err: ctx.Err()})
	}
}

// timedOut replaces the error of a step that exceeded its timeout.
func timedOut(ctx context.Context, limit time.Duration, r result) result {
	if r.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.err = &action.Failure{
			Code: action.TimedOut, Retryable: true,
			Message: fmt.Sprintf("the step did not finish within %s", clock.FormatDuration(limit)),
		}
	}
	return r
}

// prepare returns a function that calls the action of a step, and the log that the
// action writes. A panic in the action makes only this step fail.
func (d *driver) prepare(p stepRef) (func(context.Context) result, *stepLog) {
	step, log := p.step(), d.log.With("step", p.step().Path)
	req, err := d.request(step)
	lines := &stepLog{path: step.Path, attempt: step.Attempt, mask: d.secrets.maskOf(step), late: p.compiled().Masked != nil}
	req.Log = lines.write
	do := p.compiled().Action.Action
	return func(ctx context.Context) (out result) {
		out.at, out.log = p, lines
		defer func() {
			if cause := recover(); cause != nil {
				log.Error("panic in an action", "panic", cause, "stack", string(debug.Stack()))
				out.err = &action.Failure{Code: run.CodeInternal, Message: "The step failed because of an internal error in Stepmill."}
			}
		}()
		if out.err = err; err == nil {
			out.err = ctx.Err() // the run may have been aborted already
		}
		if out.err == nil {
			failpoint.Hit(failpoint.BeforeEffect, req.IdempotencyKey)
			out.result, out.err = do.Run(ctx, req)
			failpoint.Hit(failpoint.AfterEffect, req.IdempotencyKey)
		}
		return out
	}, lines
}

// request returns the request for the action of a step.
func (d *driver) request(step *run.Step) (action.Request, error) {
	req := action.Request{
		Now: clock.Now(), Began: step.StartedAt, Workspace: d.state.snap.WorkspaceID, IdempotencyKey: d.state.snap.ID + "/" + step.Path,
		Run:   action.Run{ID: d.state.snap.ID, Path: step.Path, Depth: d.state.snap.Depth, Trial: d.isTest},
		State: step.State, MaxOutput: d.state.limits.OutputBytes,
	}
	if step.WakeAt != nil {
		req.WokenAt = *step.WakeAt
	}
	value, err := expr.FromJSON(step.Input)
	if err != nil {
		return req, err
	}
	req.MaskedInput, _ = value.(map[string]any)
	if req.Input = d.secrets.inputs[step]; req.Input == nil {
		req.Input = req.MaskedInput
	}
	if step.Answer != nil {
		value, err := expr.FromJSON(step.Answer)
		if err != nil {
			return req, err
		}
		req.Answer, _ = value.(map[string]any)
	}
	return req, nil
}
