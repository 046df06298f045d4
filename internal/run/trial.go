package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Trials executes single steps while a workflow is being built. The step has its
// effect; of the run that it seems to be part of nothing is stored.
type Trials struct {
	previews *Previews
	plans    Plans
	executor Executor
}

// Executor executes a step by itself.
type Executor interface {
	Try(ctx context.Context, x Experiment) (Tried, error)
}

// Experiment is a step with what it can see.
type Experiment struct {
	WorkspaceID string
	Plan        auth.Plan
	Step        workflow.PlannedStep
	Env         *expr.Env
}

// Tried is what came of it.
type Tried struct {
	Status   StepStatus
	Input    json.RawMessage
	Output   json.RawMessage
	Error    *Failure
	Reason   string
	Logs     []LogLine
	Duration time.Duration
}

// NewTrials makes trials with the data of previews.
func NewTrials(previews *Previews, plans Plans, executor Executor) *Trials {
	return &Trials{previews: previews, plans: plans, executor: executor}
}

// Trial asks to try out a step of the current version of a workflow, with the
// data of a run, with examples, or both.
type Trial struct {
	WorkflowID string
	StepID     string
	RunID      string
	Sample     Sample
}

// Try executes the step once. A step that fails or would wait is an answer like
// any other.
func (t *Trials) Try(ctx context.Context, actor auth.Actor, in Trial) (Tried, error) {
	head, err := t.previews.runs.head(ctx, actor.Workspace.ID, in.WorkflowID)
	if err != nil {
		return Tried{}, err
	}
	plan, err := t.plans.Get(ctx, in.WorkflowID, head.Version)
	if err != nil {
		return Tried{}, err
	}
	var step *workflow.PlannedStep
	if plan != nil {
		step = plan.Find(in.StepID)
	}
	switch {
	case step == nil:
		return Tried{}, fault.New(fault.StepNotFound, "workflow %q has no step %q", in.WorkflowID, in.StepID)
	case step.Block != nil:
		return Tried{}, fault.New(fault.InvalidRequest, "step %q is a loop: try out the steps inside it", in.StepID)
	}
	now := clock.Now()
	env := &expr.Env{
		Steps: map[string]expr.Step{}, Now: now, Trigger: expr.Trigger{Type: Manual, Payload: map[string]any{}},
		Run:      expr.Run{ID: uid.At(uid.Run, now), StartedAt: now},
		Workflow: expr.Workflow{ID: in.WorkflowID, Name: head.Name, Version: head.Version},
	}
	if in.RunID != "" {
		if err := t.previews.recorded(ctx, actor, in.RunID, env); err != nil {
			return Tried{}, err
		}
	}
	if env.Vars, err = t.previews.vars.Variables(ctx, actor.Workspace.ID); err != nil {
		return Tried{}, err
	}
	if err := in.Sample.apply(env); err != nil {
		return Tried{}, err
	}
	return t.executor.Try(ctx, Experiment{WorkspaceID: actor.Workspace.ID, Plan: head.Plan, Step: *step, Env: env})
}
