package engine

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// LongestTry is how long a step that is only tried out may take: somebody waits for
// the answer.
const LongestTry = 50 * time.Second

// Try executes a step by itself, once. It implements run.Executor.
func (e *Engine) Try(ctx context.Context, x run.Experiment) (run.Tried, error) {
	planned := x.Step
	planned.After, planned.When, planned.Policy.MaxAttempts = nil, nil, 1
	plan := &workflow.Plan{Steps: []workflow.PlannedStep{planned}, Secrets: planned.Secrets}
	d := &driver{
		engine: e, log: e.log, limits: x.Plan.Limits(), trial: true,
		inFlight: map[*run.Step]place{}, inputs: map[*run.Step]map[string]any{}, masks: map[*run.Step]*mask.Masker{},
	}
	d.snap.ID, d.snap.WorkspaceID, d.snap.Plan = uid.New(uid.Run), x.WorkspaceID, x.Plan
	if _, err := d.fetchValues(ctx, plan); err != nil {
		return run.Tried{}, err
	}
	env := *x.Env
	env.Secrets = d.secrets
	now := clock.Now()
	p := place{newFrame(plan, "", &env), 0}
	p.steps[0] = &run.Step{
		Path: planned.ID, Seq: 1, Name: planned.Title(), Type: planned.Kind(), Status: run.StepRunning, Attempt: 1, StartedAt: now, AttemptAt: now,
	}
	if err := d.render(ctx, p); err != nil {
		d.settleFailed(p, d.failureOf(p.step(), err))
	} else {
		d.apply(d.executeNow(ctx, p, min(planned.Limit, LongestTry)))
	}
	step := p.step()
	return run.Tried{
		Status: step.Status, Input: step.Input, Output: step.Output, Error: step.Error, Reason: step.Reason, Logs: d.logs,
		Duration: clock.Now().Sub(now),
	}, nil
}

// executeNow executes a step and waits for it.
func (d *driver) executeNow(ctx context.Context, p place, limit time.Duration) result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	call, book := d.prepare(p)
	done := make(chan result, 1)
	go func() { done <- call(ctx) }()
	r := d.supervise(ctx, p, limit, done)
	r.log = book
	return r
}
