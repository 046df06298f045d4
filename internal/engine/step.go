package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// result is the result of executing a step.
type result struct {
	at     stepRef
	result action.Result
	err    error
	log    *stepLog
	// secrets masks the values of the step's connection that must not be stored.
	secrets *mask.Masker
	files   *callFiles
	encoded []byte        // the output as JSON
	took    time.Duration // by the action
}

// advance starts, skips and finishes steps as far as possible without effects
// outside the run. Steps with effects become pending: they start once everything
// they depend on is committed.
func (d *driver) advance(ctx context.Context, f *frame) {
	for again := true; again && ctx.Err() == nil && !d.changes.full(); {
		again = false
		for i := 0; i < len(f.program.Steps) && d.state.earlyEnd == nil && !d.changes.operationsFull(); i++ {
			p := stepRef{f, i}
			switch d.move(ctx, p) {
			case stepSettled:
				again = true
			case needsExecution:
				d.executions.add(p)
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
	switch {
	case d.executions.has(step) || step.Status.Settled() || d.changes.blocks(step):
		return noChange
	case step.Status == run.StepWaiting && step.Answer == nil && (step.WakeAt == nil || step.WakeAt.After(clock.Steady())):
		return noChange
	case p.compiled().Block != nil:
		return d.moveBlock(ctx, p)
	case step.Status == run.StepWaiting && step.Error != nil:
		d.state.startNextAttempt(step)
	case step.Status == run.StepWaiting && awaitsConnection(step):
		d.state.resume(step)
	}
	return d.execute(ctx, p)
}

// startStep starts or skips a step that is ready.
func (d *driver) startStep(ctx context.Context, p stepRef) stepChange {
	compiled := p.compiled()
	verdict, reason := skip, "it is disabled"
	if !compiled.Disabled {
		verdict, reason = p.readiness(p.i)
	}
	if verdict == notYet {
		return noChange
	}
	if limit := d.state.limits.StepsPerRun; d.state.seq >= limit {
		d.state.failEarly(run.Failure{Code: run.CodeStepLimit, Message: fmt.Sprintf("The run has executed %d steps, the most the %s plan allows.", limit, d.state.snap.Plan)})
		return noChange
	}
	d.state.begin(p)
	if verdict == skip {
		d.state.skip(p, reason)
		return stepSettled
	}
	if compiled.When != nil {
		p.env.Seed = d.state.seedOf(p.step().Path, "if")
		holds, err := compiled.When.EvalBool(p.env, expr.Budget{})
		if err != nil {
			return d.failBeforeCall(p, err)
		}
		if !holds {
			d.state.skip(p, "its condition is false")
			return stepSettled
		}
	}
	if pin, pinned := d.state.root.program.Pins[compiled.ID]; pinned {
		d.state.usePinnedOutput(p, pin)
		return stepSettled
	}
	if compiled.Block != nil {
		return d.moveBlock(ctx, p)
	}
	return d.execute(ctx, p)
}

// moveBlock advances the rounds of a block, starts new ones, and settles the block
// when the last one has ended.
func (d *driver) moveBlock(ctx context.Context, p stepRef) stepChange {
	if p.block() == nil {
		if err := d.state.openBlock(p); err != nil {
			d.state.fail(p, d.state.failureOf(p.step(), err))
			return stepSettled
		}
	}
	b := p.block()
	for ctx.Err() == nil && !d.changes.full() {
		progress := b.start()
		if !d.readItems(ctx, b) {
			return noChange
		}
		for _, round := range inOrder(b.open()) {
			d.advance(ctx, round)
			if round.settled() {
				b.end(round)
				progress = true
			}
		}
		switch {
		case b.ended():
			if !d.spillOutputs(ctx, b) {
				return noChange
			}
			b.settle()
			discard(d.engine.files, d.state.unused())
			return stepSettled
		case !progress || p.step().Status == run.StepWaiting:
			return noChange
		}
	}
	return noChange
}

// failBeforeCall makes a step fail whose action was not called.
func (d *driver) failBeforeCall(p stepRef, err error) stepChange {
	d.state.fail(p, d.state.failureOf(p.step(), err))
	d.countOutcome(p.step())
	return stepSettled
}

// execute executes an action synchronously if it is pure or returns an operation. One
// with effects is left to executeAsync.
func (d *driver) execute(ctx context.Context, p stepRef) stepChange {
	if err := d.render(ctx, p); err != nil {
		return d.failBeforeCall(p, err)
	}
	if !p.compiled().Pure && !p.compiled().Action.Spec.Writes {
		return needsExecution
	}
	begun := clock.Monotonic()
	r := d.prepare(p).do(ctx)
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
	if p.compiled().Switch != nil {
		return d.renderSwitch(p)
	}
	p.env.Now, p.env.Seed = step.StartedAt, d.state.seedOf(step.Path, "with")
	if len(p.compiled().Secrets)+len(p.compiled().Links) > 0 {
		input, err := d.renderWithSecrets(ctx, p)
		if err != nil {
			return err
		}
		return checkInput(p.compiled(), input)
	}
	if step.Input != nil && !d.secrets.inputMasked(step) && !d.inputHasFiles(step) {
		return nil
	}
	value, err := p.compiled().Input.Eval(p.env, expr.Budget{})
	if err != nil {
		return err
	}
	input, err := strictjson.Encode(value)
	if err != nil {
		return err
	}
	if step.Input == nil {
		d.state.setInput(step, d.secrets.maskOf(step).JSON(input))
		step.InputFiles = d.state.filesIn(value)
	}
	object, _ := value.(map[string]any)
	if !bytes.Equal(step.Input, input) || d.state.files && bytes.Contains(input, fileMember) {
		d.secrets.inputs[step] = object
	}
	return checkInput(p.compiled(), object)
}

// renderWithSecrets evaluates an input that contains secrets or links, and stores it
// masked.
func (d *driver) renderWithSecrets(ctx context.Context, p stepRef) (map[string]any, error) {
	if err := d.secrets.check(p); err != nil {
		return nil, err
	}
	links, err := d.makeLinks(ctx, p)
	if err != nil {
		return nil, err
	}
	input, masked, err := d.secrets.render(p, links)
	if err == nil && masked != nil {
		d.state.setInput(p.step(), masked)
		p.step().InputFiles = d.state.filesIn(input)
	}
	return input, err
}

// makeLinks creates the links that the input of a step refers to.
func (d *driver) makeLinks(ctx context.Context, p stepRef) (map[string]expr.Link, error) {
	names := p.compiled().Links
	if len(names) == 0 {
		return nil, nil
	}
	links := make(map[string]expr.Link, len(names))
	for _, id := range names {
		link, err := d.engine.links.Link(ctx, d.state.snap.WorkspaceID, d.state.snap.ID, p.pathOf(id))
		if err != nil {
			return nil, err
		}
		links[id] = link
	}
	return links, nil
}

// checkInput validates an input against the schema of its action, now that all
// values are known.
func checkInput(step *workflow.CompiledStep, input map[string]any) error {
	if problems := step.CheckInput(input); len(problems) > 0 {
		return &action.Failure{Code: action.InvalidInput, Message: fmt.Sprintf("with%s: %s", problems[0].Pointer, problems[0].Message)}
	}
	return nil
}

// apply applies the result of a step to the state.
func (d *driver) apply(r result) {
	step := r.at.step()
	d.executions.end(step)
	d.secrets.hide(r.secrets)
	d.changes.add(step)
	d.state.offer(r.files.end())
	d.state.files = d.state.files || r.result.Files
	awaited, stateFiles := step.Awaits != "" && step.Awaits != action.AwaitsTime && step.Answer == nil, step.StateFiles
	if r.err == nil && r.result.Checkpoint != nil {
		r.err = d.state.checkpoint(r.at, *r.result.Checkpoint)
	}
	if r.err == nil && r.result.Operation != nil {
		r.err = d.state.operate(r.at, *r.result.Operation)
	}
	broken, _ := errors.AsType[*connection.BrokenError](r.err)
	unstored, _ := errors.AsType[*connection.StoreError](r.err)
	switch {
	case broken != nil:
		d.state.waitForConnection(r.at, broken)
	case unstored != nil:
		d.retryConnection(r.at, unstored)
	case r.err != nil:
		d.state.handleFailure(r.at, r.err)
	case r.result.Wait != nil:
		d.state.wait(step, *r.result.Wait)
	case r.result.Checkpoint != nil || r.result.Operation != nil: // it continues after the next commit
	default:
		d.state.succeed(r.at, r.result.Output, r.encoded)
		if r.result.Stop != nil {
			d.state.stopRun(step, *r.result.Stop)
		}
	}
	d.state.release(stateFiles, step)
	discard(d.engine.files, d.state.unused())
	d.changes.addLogs(r.log.take(d.secrets.maskOf(step))) // with what the step itself masks
	if awaited && step.Status.Settled() {
		d.changes.unanswered = append(d.changes.unanswered, step.Path)
	}
	d.countExecution(step, r.took)
}
