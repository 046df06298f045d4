package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// stopGrace is how long an action may take to stop after its timeout or cancellation.
const stopGrace = time.Second

// executeAsync executes a step with effects in the background.
func (d *driver) executeAsync(ctx context.Context, p stepRef) {
	d.executions.begin(p)
	call := d.prepare(p)
	go func() {
		d.executions.results <- d.executeWithin(ctx, p, p.compiled().Limit, call)
	}()
}

// executeWithin opens the connection of a step, waits until its action may run and
// calls it. The limit applies to the wait for a token and to each call.
func (d *driver) executeWithin(ctx context.Context, p stepRef, limit time.Duration, call *call) result {
	name := p.compiled().Connection
	if name == "" {
		return d.callWithin(ctx, p, limit, call)
	}
	r := result{at: p, log: call.log}
	err := d.engine.connections.Use(ctx, d.state.snap.WorkspaceID, name, limit, func(ctx context.Context, c action.Connection) error {
		if !d.isTest && !d.engine.holdsLease() { // it may have waited for a token for long
			return &connection.StoreError{Name: name, Cause: errMayBeElsewhere}
		}
		call.connect(c)
		r = d.callWithin(ctx, p, limit, call)
		return r.err
	})
	r.err = err
	return r
}

// errMayBeElsewhere is the reason why a node does not execute a step.
var errMayBeElsewhere = errors.New("another node may own the run")

// callWithin abandons an action that does not stop after its timeout; the action
// shares no state with the driver.
func (d *driver) callWithin(ctx context.Context, p stepRef, limit time.Duration, call *call) result {
	release, err := d.acquire(ctx, p)
	if err != nil {
		return result{at: p, err: err, log: call.log}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	files := d.newCallFiles()
	if files != nil {
		call.req.Files = files
	}
	done := make(chan result, 1)
	begun := clock.Monotonic()
	go func() {
		r := call.do(ctx)
		release() // even if the action was abandoned, not before it returns
		done <- r
	}()
	r := d.supervise(ctx, p, limit, done, call.log)
	r.took = time.Since(begun)
	if r.files = files; r.err != nil {
		files.drop() // also if the action was abandoned
	}
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

func (d *driver) supervise(ctx context.Context, p stepRef, limit time.Duration, done <-chan result, log *stepLog) result {
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
		return timedOut(ctx, limit, result{at: p, err: ctx.Err(), log: log})
	}
}

// timedOut replaces the error of a step that exceeded its timeout, unless the action says
// that it must not be retried.
func timedOut(ctx context.Context, limit time.Duration, r result) result {
	failure, ok := errors.AsType[*action.Failure](r.err)
	isFinal := ok && !failure.Retryable
	if r.err != nil && !isFinal && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.err = &action.Failure{
			Code: action.TimedOut, Retryable: true,
			Message: fmt.Sprintf("the step did not finish within %s", clock.FormatDuration(limit)),
		}
	}
	return r
}

// call is a call of the action of a step. It shares no state with the driver.
type call struct {
	at     stepRef
	action action.Action
	req    action.Request
	err    error // of the request; the action is not called then
	log    *stepLog
	logger *slog.Logger
	mask   outputMask
}

// prepare prepares the call of the action of a step.
func (d *driver) prepare(p stepRef) *call {
	step := p.step()
	c := &call{
		at: p, action: p.compiled().Action.Action, logger: d.log.With("step", step.Path),
		log: &stepLog{path: step.Path, attempt: step.Attempt, mask: d.secrets.maskOf(step), late: p.compiled().Masked != nil},
	}
	c.mask = d.state.outputMask(p)
	c.req, c.err = d.request(step)
	c.req.Log, c.req.Secrets = c.log.write, c.mask.values.secrets
	c.req.Mask = func(output map[string]any) (map[string]any, error) { return c.mask.apply(output) }
	return c
}

// connect gives the action a connection, whose secrets are kept out of the log.
func (c *call) connect(connection action.Connection) {
	c.req.Connection = &connection
	c.mask.values.secrets = mask.Join(c.mask.values.secrets, connection.Mask)
	c.req.Secrets = c.mask.values.secrets
	c.log.hide(c.req.Secrets)
}

// do calls the action. A panic makes only this step fail.
func (c *call) do(ctx context.Context) (out result) {
	out.at, out.log = c.at, c.log
	if c.req.Connection != nil {
		out.secrets = c.req.Connection.Mask
	}
	defer func() {
		if cause := recover(); cause != nil {
			c.logger.Error("panic in an action", "panic", cause, "stack", string(debug.Stack()))
			out.err = &action.Failure{Code: run.CodeInternal, Message: "The step failed because of an internal error in Stepmill."}
		}
	}()
	if out.err = c.err; c.err == nil {
		out.err = ctx.Err() // the run may have been aborted already
	}
	if out.err == nil {
		failpoint.Hit(failpoint.BeforeEffect, c.req.IdempotencyKey)
		out.result, out.err = c.action.Run(ctx, c.req)
		failpoint.Hit(failpoint.AfterEffect, c.req.IdempotencyKey)
	}
	if out.err == nil && out.result.Wait == nil && out.result.Checkpoint == nil {
		out.err = c.encode(ctx, &out)
	}
	return out
}

// encode encodes the output of the action. Lists that make it too large become list
// files.
func (c *call) encode(ctx context.Context, out *result) error {
	output := action.Object(out.result.Output)
	encoded, err := strictjson.Encode(output)
	if err != nil {
		return err
	}
	if c.req.Files != nil && len(encoded) > c.req.MaxOutput {
		s := spiller{files: c.req.Files, mask: c.mask, limit: c.req.MaxOutput}
		if output, err = s.spill(ctx, output, len(encoded)); err != nil {
			return err
		}
		if encoded, err = strictjson.Encode(output); err != nil {
			return err
		}
	}
	out.result.Output, out.encoded = output, encoded
	return nil
}

func (d *driver) request(step *run.Step) (action.Request, error) {
	req := action.Request{
		Now: clock.Now(), Began: step.StartedAt, Workspace: d.state.snap.WorkspaceID, IdempotencyKey: d.state.snap.ID + "/" + step.Path,
		Run:         action.Run{ID: d.state.snap.ID, WorkflowID: d.state.snap.WorkflowID, Path: step.Path, Depth: d.state.snap.Depth, Trial: d.isTest},
		Interrupted: d.state.interrupted[step], Retried: step.Failures() > 1,
		State: step.State, Chunks: step.Chunks, MaxOutput: d.state.limits.OutputBytes, Plan: d.state.snap.Plan,
	}
	if step.WakeAt != nil {
		req.WokenAt, req.Left = *step.WakeAt, clock.UntilSteady(*step.Until())
	}
	value, err := expr.FromJSON(step.Input)
	if err != nil {
		return req, err
	}
	req.MaskedInput, _ = value.(map[string]any)
	if req.Input = d.secrets.inputs[step]; req.Input == nil {
		req.Input = req.MaskedInput
	} else if d.state.files {
		req.MaskedInput, _ = expr.CopyFiles(req.MaskedInput, req.Input).(map[string]any)
	}
	if step.Answer != nil {
		value, err := expr.FromJSONWithFiles(step.Answer, step.AnswerFiles)
		if err != nil {
			return req, err
		}
		req.Answer, _ = value.(map[string]any)
	}
	return req, nil
}
