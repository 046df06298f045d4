package run

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// View is the data that expressions see which belong to no run. What is given
// counts before pins, and pins before what a run has recorded.
type View struct {
	// RunID names the run whose data is used; empty for none.
	RunID string
	// StepID is the path of the step that looks: inside a loop it sees its own
	// round. Empty: what is outside of loops.
	StepID string
	Pins   workflow.Pins
	Sample Sample
}

// Origin says where a value that an expression sees comes from.
type Origin string

// The origins.
const (
	FromGiven  Origin = "given"
	FromPin    Origin = "pinned"
	FromRun    Origin = "run"
	FromNobody Origin = "none"
)

// Source is a name that expressions use, and where its value comes from.
type Source struct {
	Name string
	From Origin
}

// fill puts what the view shows into an environment, as far as the references
// ask for it.
func (p *Previews) fill(ctx context.Context, actor auth.Actor, v View, refs expr.Refs, env *expr.Env) error {
	if v.RunID != "" {
		if err := p.recorded(ctx, actor, v, refs, env); err != nil {
			return err
		}
	}
	for id, output := range v.Pins {
		value, err := expr.FromJSON(output)
		if err != nil {
			return err
		}
		env.Steps[id] = expr.Step{Status: string(StepSucceeded), Output: value}
	}
	return v.Sample.apply(env)
}

// recorded fills in what a run has recorded.
func (p *Previews) recorded(ctx context.Context, actor auth.Actor, v View, refs expr.Refs, env *expr.Env) error {
	of, err := p.runs.runHead(ctx, actor, v.RunID)
	if err != nil {
		return err
	}
	head, err := p.runs.head(ctx, actor.Workspace.ID, of.WorkflowID)
	if err != nil {
		return notFound(v.RunID) // its workflow has just been deleted
	}
	env.Run = expr.Run{ID: of.ID, StartedAt: of.StartedAt}
	env.Workflow = expr.Workflow{ID: of.WorkflowID, Name: head.Name, Version: of.WorkflowVersion}
	if env.Trigger, err = of.Trigger.Seen(); err != nil {
		return err
	}
	at, err := roundsOf(v.StepID)
	if err != nil {
		return err
	}
	steps, err := p.stepsSeen(ctx, actor, v.RunID, at, refs)
	if err != nil {
		return err
	}
	for path, step := range steps {
		if !step.Status.Settled() {
			continue
		}
		if env.Steps[LastOf(path)], err = step.Seen(); err != nil {
			return err
		}
	}
	return at.enter(steps, env)
}

// stepsSeen reads the steps that references from inside of rounds mean, and the
// loops around them, by their paths. Only their rows are read: a run may have
// tens of thousands.
func (p *Previews) stepsSeen(ctx context.Context, actor auth.Actor, runID string, at rounds, refs expr.Refs) (map[string]Step, error) {
	seen := map[string]Step{}
	if refs.AllSteps {
		detail, err := p.runs.Get(ctx, actor, runID)
		if err != nil {
			return nil, err
		}
		for _, step := range detail.Steps {
			if parent := step.Path[:strings.LastIndexByte(step.Path, '.')+1]; slices.Contains(at.prefixes(), parent) {
				seen[step.Path] = step
			}
		}
		return seen, nil
	}
	var paths []string
	for _, round := range at {
		paths = append(paths, round.block)
	}
	for _, ref := range refs.Steps {
		for _, prefix := range at.prefixes() {
			paths = append(paths, prefix+ref.Name)
		}
	}
	slices.Sort(paths)
	steps, err := p.runs.store.StepsAt(ctx, actor.Workspace.ID, runID, slices.Compact(paths))
	for _, step := range steps {
		seen[step.Path] = step
	}
	return seen, err
}

// round is one pass of a loop: the path of the loop, and which pass.
type round struct {
	block string
	n     int
}

// rounds are those that a step is inside of, the outermost first.
type rounds []round

// roundsOf reads them from the path of a step, such as lines[3].reserve.
func roundsOf(path string) (rounds, error) {
	var out rounds
	for i := 0; i < len(path); i++ {
		if path[i] != '[' {
			continue
		}
		number, _, closed := strings.Cut(path[i+1:], "].")
		n, err := strconv.Atoi(number)
		// What is deeper than any loop would be a path of paths, and all of them large.
		if !closed || err != nil || n < 0 || strconv.Itoa(n) != number || len(out) == workflow.MaxBlockDepth {
			return nil, fault.Field("/step_id", "is not the path of a step, such as get or lines[3].reserve")
		}
		out = append(out, round{block: path[:i], n: n})
	}
	return out, nil
}

// prefixes are what the paths of steps begin with that can be seen.
func (r rounds) prefixes() []string {
	out := []string{""}
	for _, one := range r {
		out = append(out, one.block+"["+strconv.Itoa(one.n)+"].")
	}
	return out
}

// enter sets item and index to those of the innermost round. Inside a block
// that is repeated, item is that of the foreach around it.
func (r rounds) enter(steps map[string]Step, env *expr.Env) error {
	for _, one := range r {
		block, there := steps[one.block]
		if !there {
			continue
		}
		loop := &expr.Loop{Index: one.n}
		if env.Loop != nil {
			loop.Item = env.Loop.Item
		}
		if block.Type == Foreach && block.Input != nil {
			var input struct {
				Items []json.RawMessage `json:"items"`
			}
			if err := json.Unmarshal(block.Input, &input); err != nil {
				return err
			}
			if one.n >= len(input.Items) {
				continue
			}
			var err error
			if loop.Item, err = expr.FromJSON(input.Items[one.n]); err != nil {
				return err
			}
		}
		env.Loop = loop
	}
	return nil
}

// sources tells where the values come from that references mean, once the
// environment is filled.
func (v View) sources(refs expr.Refs, env *expr.Env) []Source {
	fromRun := FromNobody
	if v.RunID != "" {
		fromRun = FromRun
	}
	trigger := fromRun
	if t := v.Sample.Trigger; t.Payload != nil || t.Headers != nil || t.Query != nil || t.Type != nil || t.ID != nil {
		trigger = FromGiven
	}
	out := []Source{{"trigger", trigger}}
	for _, ref := range refs.Steps {
		name := "steps." + ref.Name
		if !slices.ContainsFunc(out, func(s Source) bool { return s.Name == name }) {
			out = append(out, Source{name, v.origin(ref.Name, env)})
		}
	}
	loop := FromNobody
	switch {
	case v.Sample.Item != nil || v.Sample.Index != nil:
		loop = FromGiven
	case env.Loop != nil:
		loop = fromRun
	}
	if refs.Item {
		out = append(out, Source{"item", loop})
	}
	if refs.Index {
		out = append(out, Source{"index", loop})
	}
	return out
}

func (v View) origin(stepID string, env *expr.Env) Origin {
	if _, given := v.Sample.Steps[stepID]; given {
		return FromGiven
	}
	if _, pinned := v.Pins[stepID]; pinned {
		return FromPin
	}
	if _, recorded := env.Steps[stepID]; recorded {
		return FromRun
	}
	return FromNobody
}
