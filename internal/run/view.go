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

// View selects the data that expressions outside of a run see. Given samples take
// precedence over pins, and pins over the data of a run.
type View struct {
	// RunID is the run whose data is used; empty for none.
	RunID string
	// StepID is the path of the step that contains the expressions. Inside a loop it
	// selects the round; empty selects the top level.
	StepID string
	Pins   workflow.Pins
	Sample Sample
}

// Origin is where a value that an expression sees comes from.
type Origin string

// The origins.
const (
	FromGiven Origin = "given"
	FromPin   Origin = "pinned"
	FromRun   Origin = "run"
	FromNone  Origin = "none"
)

// Source is a name that expressions use, and where its value comes from.
type Source struct {
	Name string
	From Origin
}

// fill adds the data of the view that the references need to an environment.
func (p *Previews) fill(ctx context.Context, actor auth.Actor, v View, refs expr.Refs, env *expr.Env) error {
	if v.RunID != "" {
		if err := p.recorded(ctx, actor, v, refs, env); err != nil {
			return err
		}
	}
	for id, pin := range v.Pins {
		if workflow.IsTriggerPin(id) {
			continue
		}
		value, err := pin.Value()
		if err != nil {
			return err
		}
		env.Steps[id] = expr.Step{Status: string(StepSucceeded), Output: value}
	}
	return v.Sample.apply(env)
}

// recorded adds the data of a run.
func (p *Previews) recorded(ctx context.Context, actor auth.Actor, v View, refs expr.Refs, env *expr.Env) error {
	of, err := p.runs.runSummary(ctx, actor, v.RunID)
	if err != nil {
		return err
	}
	ref, err := p.runs.workflowRef(ctx, actor.Workspace.ID, of.WorkflowID)
	if err != nil {
		return notFound(v.RunID) // its workflow has just been deleted
	}
	env.Run = expr.Run{ID: of.ID, StartedAt: of.StartedAt}
	env.Workflow = expr.Workflow{ID: of.WorkflowID, Name: ref.Name, Version: of.WorkflowVersion}
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

// stepsSeen reads the steps that the references name as seen from a round, and the
// loops around it, by path. It reads no other rows: a run may have tens of
// thousands.
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

// rounds are the rounds that contain a step, outermost first.
type rounds []round

// roundsOf parses the rounds in the path of a step, such as lines[3].reserve.
func roundsOf(path string) (rounds, error) {
	var out rounds
	for i := 0; i < len(path); i++ {
		if path[i] != '[' {
			continue
		}
		number, _, closed := strings.Cut(path[i+1:], "].")
		n, err := strconv.Atoi(number)
		// The depth is limited because every level adds a prefix as long as the path.
		if !closed || err != nil || n < 0 || strconv.Itoa(n) != number || len(out) == workflow.MaxBlockDepth {
			return nil, fault.Field("/step_id", "is not the path of a step, such as get or lines[3].reserve")
		}
		out = append(out, round{block: path[:i], n: n})
	}
	return out, nil
}

// prefixes returns the path prefixes of the steps that can be seen.
func (r rounds) prefixes() []string {
	out := []string{""}
	for _, one := range r {
		out = append(out, one.block+"["+strconv.Itoa(one.n)+"].")
	}
	return out
}

// enter sets item, index and previous to those of the innermost round. Inside a repeat,
// item is that of the enclosing foreach, and inside a foreach, previous is that of the
// enclosing repeat. Previous is known once the repeat has ended.
func (r rounds) enter(steps map[string]Step, env *expr.Env) error {
	for _, one := range r {
		block, there := steps[one.block]
		if !there {
			continue
		}
		loop := &expr.Loop{Index: one.n}
		if env.Loop != nil {
			loop.Item, loop.Previous = env.Loop.Item, env.Loop.Previous
		}
		if block.Type == Repeat {
			var err error
			if loop.Previous, err = block.outputOfRound(one.n - 1); err != nil {
				return err
			}
		}
		if block.Type == Foreach && block.Input != nil {
			list, err := itemsOf(block.Input)
			if err != nil {
				return err
			}
			if one.n >= len(list.First) {
				continue
			}
			if loop.Item, err = expr.FromJSONWithFiles(list.First[one.n], filesWithin(block.InputFiles, itemPointer(one.n))); err != nil {
				return err
			}
		}
		env.Loop = loop
	}
	return nil
}

// outputOfRound returns the output of a round of a loop that has succeeded, otherwise
// nil.
func (s Step) outputOfRound(n int) (any, error) {
	var output struct {
		Items []json.RawMessage `json:"items"`
	}
	if s.Output == nil {
		return nil, nil
	}
	if err := json.Unmarshal(s.Output, &output); err != nil || n < 0 || n >= len(output.Items) {
		return nil, err
	}
	return expr.FromJSONWithFiles(output.Items[n], filesWithin(s.OutputFiles, itemPointer(n)))
}

// itemPointer returns the JSON pointer of an item in the input or output of a loop.
func itemPointer(n int) string { return "/items/" + strconv.Itoa(n) }

// sources returns where the values of the references come from, given the filled
// environment.
func (v View) sources(refs expr.Refs, env *expr.Env) []Source {
	fromRun := FromNone
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
	loop := FromNone
	switch {
	case v.Sample.Item != nil || v.Sample.Index != nil || v.Sample.Previous != nil:
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
	if refs.Previous {
		out = append(out, Source{"previous", loop})
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
	return FromNone
}
