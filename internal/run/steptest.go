package run

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// StepTester executes single steps while a workflow is being built. Effects of the
// step are real, but no run is stored.
type StepTester struct {
	previews *Previews
	programs Programs
	executor Executor
}

// Executor executes a single step.
type Executor interface {
	TestStep(ctx context.Context, x StepExecution) (StepTestResult, error)
}

// StepExecution is a step and the data that its expressions see.
type StepExecution struct {
	WorkspaceID string
	Plan        auth.Plan
	Step        workflow.CompiledStep
	Env         *expr.Env
}

// StepTestResult is the result of a step test.
type StepTestResult struct {
	Status StepStatus
	Input  json.RawMessage
	Output json.RawMessage
	// InputFiles and OutputFiles are the JSON pointers of the references to files.
	InputFiles, OutputFiles []string

	Error    *Failure
	Reason   string
	Logs     []LogLine
	Duration time.Duration
	// Sources lists where the data came from.
	Sources []Source
}

// NewStepTester returns a StepTester that uses the data of previews.
func NewStepTester(previews *Previews, programs Programs, executor Executor) *StepTester {
	return &StepTester{previews: previews, programs: programs, executor: executor}
}

// StepTest is a request to test a step of the current version of a workflow, or of
// a draft, with the data of a view.
type StepTest struct {
	WorkflowID string
	View
	// Step is a step of a draft; nil for the saved one.
	Step *workflow.CompiledStep
}

// Test executes the step once. A failure or a wait of the step is a result, not an
// error.
func (t *StepTester) Test(ctx context.Context, actor auth.Actor, in StepTest) (StepTestResult, error) {
	ref, err := t.previews.runs.workflowRef(ctx, actor.Workspace.ID, in.WorkflowID)
	if err != nil {
		return StepTestResult{}, err
	}
	step := in.Step
	if step == nil {
		if step, err = t.saved(ctx, in, ref.Version); err != nil {
			return StepTestResult{}, err
		}
	}
	if step.Block != nil {
		return StepTestResult{}, fault.New(fault.InvalidRequest, "step %q is a loop: test the steps inside it instead", in.StepID)
	}
	now := clock.Now()
	env := &expr.Env{
		Steps: map[string]expr.Step{}, Now: now, Trigger: expr.Trigger{Type: Manual, Payload: map[string]any{}},
		Run:      expr.Run{ID: uid.At(uid.Run, now), StartedAt: now},
		Workflow: expr.Workflow{ID: in.WorkflowID, Name: ref.Name, Version: ref.Version},
	}
	if env.Vars, err = t.previews.vars.Vars(ctx, actor.Workspace.ID); err != nil {
		return StepTestResult{}, err
	}
	refs := step.Input.Refs()
	if err := t.previews.fill(ctx, actor, in.View, refs, env); err != nil {
		return StepTestResult{}, err
	}
	result, err := t.executor.TestStep(ctx, StepExecution{WorkspaceID: actor.Workspace.ID, Plan: ref.Plan, Step: *step, Env: env})
	result.Sources = in.sources(refs, env)
	return result, err
}

// saved finds a step of the current version. The last element of the path is the
// id of the step; the others select the round of a loop whose data it sees.
func (t *StepTester) saved(ctx context.Context, in StepTest, version int) (*workflow.CompiledStep, error) {
	program, err := t.programs.Get(ctx, in.WorkflowID, version)
	if err != nil {
		return nil, err
	}
	if program != nil {
		if step := program.Find(LastOf(in.StepID)); step != nil {
			return step, nil
		}
	}
	return nil, fault.New(fault.StepNotFound, "workflow %q has no step %q", in.WorkflowID, in.StepID)
}

// LastOf returns the last element of a path, the id of its step.
func LastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
