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
	// Sources tell where the data came from.
	Sources []Source
}

// NewTrials makes trials with the data of previews.
func NewTrials(previews *Previews, plans Plans, executor Executor) *Trials {
	return &Trials{previews: previews, plans: plans, executor: executor}
}

// Trial asks to try out a step of the current version of a workflow, or of a
// draft, with the data of a view.
type Trial struct {
	WorkflowID string
	View
	// Step is that of a draft; nil for the one that is saved.
	Step *workflow.PlannedStep
}

// Try executes the step once. A step that fails or would wait is an answer like
// any other.
func (t *Trials) Try(ctx context.Context, actor auth.Actor, in Trial) (Tried, error) {
	head, err := t.previews.runs.head(ctx, actor.Workspace.ID, in.WorkflowID)
	if err != nil {
		return Tried{}, err
	}
	step := in.Step
	if step == nil {
		if step, err = t.saved(ctx, in, head.Version); err != nil {
			return Tried{}, err
		}
	}
	if step.Block != nil {
		return Tried{}, fault.New(fault.InvalidRequest, "step %q is a loop: try out the steps inside it", in.StepID)
	}
	now := clock.Now()
	env := &expr.Env{
		Steps: map[string]expr.Step{}, Now: now, Trigger: expr.Trigger{Type: Manual, Payload: map[string]any{}},
		Run:      expr.Run{ID: uid.At(uid.Run, now), StartedAt: now},
		Workflow: expr.Workflow{ID: in.WorkflowID, Name: head.Name, Version: head.Version},
	}
	if env.Vars, err = t.previews.vars.Variables(ctx, actor.Workspace.ID); err != nil {
		return Tried{}, err
	}
	refs := step.Input.Refs()
	if err := t.previews.fill(ctx, actor, in.View, refs, env); err != nil {
		return Tried{}, err
	}
	tried, err := t.executor.Try(ctx, Experiment{WorkspaceID: actor.Workspace.ID, Plan: head.Plan, Step: *step, Env: env})
	tried.Sources = in.sources(refs, env)
	return tried, err
}

// saved finds a step of the current version. Its path says in which round of a
// loop it looks at data; the step itself is the last of the path.
func (t *Trials) saved(ctx context.Context, in Trial, version int) (*workflow.PlannedStep, error) {
	plan, err := t.plans.Get(ctx, in.WorkflowID, version)
	if err != nil {
		return nil, err
	}
	if plan != nil {
		if step := plan.Find(LastOf(in.StepID)); step != nil {
			return step, nil
		}
	}
	return nil, fault.New(fault.StepNotFound, "workflow %q has no step %q", in.WorkflowID, in.StepID)
}

// LastOf is the id of the step that a path leads to.
func LastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
