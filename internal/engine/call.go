package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/duration"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
)

// grace is how long an action may take to notice that its time is over.
const grace = time.Second

// launch executes a step with effects beside the driver, within its time. An
// action that does not notice the end of its time is left to itself: from here
// on it works on nothing that the driver changes.
func (d *driver) launch(ctx context.Context, p place) {
	if len(d.inFlight) == 0 {
		d.busySince = clock.Now()
	}
	d.inFlight[p.step()] = p
	limit := p.planned().Limit
	call, book := d.prepare(p)
	ctx, cancel := context.WithTimeout(ctx, limit)
	done := make(chan result, 1)
	begun := clock.Mark()
	go func() { done <- call(ctx) }()
	go func() {
		defer cancel()
		r := d.supervise(ctx, p, limit, done)
		r.log, r.took = book, time.Since(begun)
		d.results <- r
	}()
}

// landed notes that a step is not executed any more.
func (d *driver) landed(step *run.Step) {
	if _, flying := d.inFlight[step]; !flying {
		return
	}
	d.ran = d.ranSoFar()
	d.busySince = clock.Now()
	delete(d.inFlight, step)
}

func (d *driver) supervise(ctx context.Context, p place, limit time.Duration, done <-chan result) result {
	select {
	case r := <-done:
		return timedOut(ctx, limit, r)
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return timedOut(ctx, limit, r)
	case <-timer.C:
		d.log.Error("an action goes on although its time is over", "step", p.planned().ID)
		d.engine.stuck.Add(1)
		go func() {
			<-done
			d.engine.stuck.Add(-1)
		}()
		return timedOut(ctx, limit, result{at: p, err: ctx.Err()})
	}
}

// timedOut gives the failure of a step whose time was over its name.
func timedOut(ctx context.Context, limit time.Duration, r result) result {
	if r.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.err = &action.Failure{
			Code: action.TimedOut, Retryable: true,
			Message: fmt.Sprintf("the step did not end within %s", duration.Format(limit)),
		}
	}
	return r
}

// prepare returns the call of the step's action, and the log that it writes.
// Whatever goes wrong inside it stays inside this step.
func (d *driver) prepare(p place) (func(context.Context) result, *logbook) {
	step, log := p.step(), d.log.With("step", p.step().Path)
	req, err := d.request(step)
	book := &logbook{path: step.Path, attempt: step.Attempt, mask: d.maskOf(step)}
	req.Log = book.write
	do := p.planned().Action.Action
	return func(ctx context.Context) (out result) {
		out.at, out.log = p, book
		defer func() {
			if cause := recover(); cause != nil {
				log.Error("panic in an action", "panic", cause, "stack", string(debug.Stack()))
				out.err = &action.Failure{Code: run.CodeInternal, Message: "The step failed for a reason inside Stepmill."}
			}
		}()
		if out.err = err; err == nil {
			out.err = ctx.Err() // the run may have been taken away before this began
		}
		if out.err == nil {
			failpoint.Hit(failpoint.BeforeEffect, req.IdempotencyKey)
			out.result, out.err = do.Run(ctx, req)
			failpoint.Hit(failpoint.AfterEffect, req.IdempotencyKey)
		}
		return out
	}, book
}

// request is what the action of a step is given.
func (d *driver) request(step *run.Step) (action.Request, error) {
	req := action.Request{
		Now: clock.Now(), Began: step.StartedAt, Workspace: d.snap.WorkspaceID, IdempotencyKey: d.snap.ID + "/" + step.Path,
		Run: action.Run{ID: d.snap.ID, Path: step.Path, Depth: d.snap.Depth, Trial: d.trial},
	}
	if step.WakeAt != nil {
		req.WokenAt = *step.WakeAt
	}
	if req.Input = d.inputs[step]; req.Input == nil {
		value, err := expr.FromJSON(step.Input)
		if err != nil {
			return req, err
		}
		req.Input, _ = value.(map[string]any)
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
