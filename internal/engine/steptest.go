package engine

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// maxTestDuration limits a step test, because an API request waits for its result.
const maxTestDuration = 50 * time.Second

// TestStep executes a single step, without retries. It implements run.Executor.
func (e *Engine) TestStep(ctx context.Context, x run.StepExecution) (run.StepTestResult, error) {
	compiled := x.Step
	compiled.After, compiled.When, compiled.Policy.MaxAttempts, compiled.Disabled = nil, nil, 1, false
	program := &workflow.Program{Steps: []workflow.CompiledStep{compiled}, Secrets: compiled.Secrets, Random: len(compiled.Input.Refs().Random) > 0}
	if compiled.Connection != "" {
		program.Connections = []string{compiled.Connection}
	}
	d := newDriver(e, e.log)
	d.isTest, d.state.limits, d.executions, d.state.files = true, x.Plan.Limits(), newExecutions(0, 0), true
	d.state.snap.ID, d.state.snap.WorkspaceID, d.state.snap.Plan = uid.New(uid.Run), x.WorkspaceID, x.Plan
	d.state.snap.WorkflowID = x.Env.Workflow.ID
	if _, err := d.fetchValues(ctx, program); err != nil {
		return run.StepTestResult{}, err
	}
	env := *x.Env
	env.Secrets = d.secrets.values
	now := clock.Now()
	p := stepRef{newFrame(program, "", &env), 0}
	p.steps[0] = &run.Step{
		Path: compiled.ID, Seq: 1, Name: compiled.Title(), Type: compiled.Kind(), Status: run.StepRunning, Attempt: 1, StartedAt: now, AttemptAt: now,
	}
	if err := d.render(ctx, p); err != nil {
		d.state.fail(p, d.state.failureOf(p.step(), err))
	} else {
		d.executeSync(ctx, p)
	}
	step := p.step()
	if err := d.keepFiles(ctx); err != nil {
		return run.StepTestResult{}, err
	}
	return run.StepTestResult{
		Status: step.Status, Input: step.Input, Output: step.Output, InputFiles: step.InputFiles, OutputFiles: step.OutputFiles, Error: step.Error, Reason: step.Reason, Logs: d.changes.logs,
		Duration: clock.Now().Sub(now),
	}, nil
}

// executeSync executes a step until it settles or waits. Its checkpoints are only
// held in memory, and its operations are transactions of their own.
func (d *driver) executeSync(ctx context.Context, p stepRef) {
	ctx, cancel := context.WithTimeout(ctx, maxTestDuration)
	defer cancel()
	for p.step().Status == run.StepRunning {
		d.apply(d.executeWithin(ctx, p, min(p.compiled().Limit, maxTestDuration), d.prepare(p)))
		for _, o := range d.changes.operations {
			answer, err := d.engine.store.Perform(ctx, o.op)
			if err != nil {
				d.state.fail(p, d.state.failureOf(o.step, err))
			}
			o.step.Answer, o.step.AnswerFiles = answer.Value, answer.Files
		}
		d.changes.operations = nil
	}
}
