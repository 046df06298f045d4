package run

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/workflow"
)

// ReuseSteps picks the steps of an ended run that a retry need not execute again:
// steps that succeeded, were skipped or failed with a tolerated failure, and that
// depend only on such steps. The step that the run failed at is never reused, so a
// step that stopped the run stops the retry too. A foreach that failed reuses its
// successful rounds; a repeat starts over.
//
// The program is the one that the retry executes. If the run executed another one,
// reusable is the result of [workflow.ReusableSteps] for the two; nil means that the
// run executed the same program.
func ReuseSteps(program *workflow.Program, of Detail, reusable map[string]workflow.Reuse) []Step {
	r := stepReuse{
		steps: map[string]Step{}, reused: map[string]Step{}, titles: map[string]string{},
		reason: "copied from " + of.ID, reusable: reusable, masks: len(program.Masks) > 0,
	}
	if of.Error != nil {
		r.failedAt = of.Error.StepID
	}
	for _, step := range of.Steps {
		r.steps[step.Path] = step
	}
	r.collectTitles(program)
	r.reuseLevel(program, "")
	var out []Step
	for _, step := range of.Steps {
		if step, ok := r.reused[step.Path]; ok {
			out = append(out, step)
		}
	}
	return out
}

type stepReuse struct {
	steps  map[string]Step
	reused map[string]Step
	titles map[string]string // by step id
	reason string
	// failedAt is the step that the run failed at; empty for none.
	failedAt string
	reusable map[string]workflow.Reuse
	// masks reports whether steps of the program have a mask.
	masks bool
}

func (r *stepReuse) collectTitles(program *workflow.Program) {
	for i := range program.Steps {
		r.titles[program.Steps[i].ID] = program.Steps[i].Title()
		if block := program.Steps[i].Block; block != nil {
			r.collectTitles(block.Body)
		}
	}
}

// reuseOf returns how much of a step's result can be reused.
func (r *stepReuse) reuseOf(id string) workflow.Reuse {
	if r.reusable == nil {
		return workflow.ReuseAll
	}
	return r.reusable[id]
}

// reuseLevel reuses the steps of one list of steps where possible.
func (r *stepReuse) reuseLevel(program *workflow.Program, prefix string) {
	const (
		unknown = iota
		no
		yes
	)
	known := make([]int, len(program.Steps))
	var canReuse func(i int) bool
	canReuse = func(i int) bool {
		if known[i] != unknown {
			return known[i] == yes
		}
		known[i] = no
		for _, need := range program.Steps[i].After {
			if !canReuse(need.Step) {
				return false
			}
		}
		if r.reuseStep(&program.Steps[i], prefix) {
			known[i] = yes
		}
		return known[i] == yes
	}
	for i := range program.Steps {
		canReuse(i)
	}
}

// reuseStep reuses a step, or the successful rounds of a foreach that failed. It
// reports whether the whole step is reused.
func (r *stepReuse) reuseStep(compiled *workflow.CompiledStep, prefix string) bool {
	step, there := r.steps[prefix+compiled.ID]
	if !there || r.reuseOf(compiled.ID) == workflow.ReuseNothing {
		return false
	}
	good := step.Path != r.failedAt && r.holds(compiled, step)
	switch {
	case good:
		r.add(step)
		r.addInside(step.Path)
	case step.Type == Foreach && step.Input != nil && !r.itemsMasked(step):
		r.reopen(compiled, step)
	}
	return good
}

// itemsMasked reports whether the items of a foreach were stored masked, so that its
// rounds cannot continue.
func (r *stepReuse) itemsMasked(step Step) bool {
	return r.masks && bytes.Contains(step.Input, []byte(mask.Replacement))
}

// holds reports whether the result of a step is still valid in the program of the
// retry.
func (r *stepReuse) holds(compiled *workflow.CompiledStep, step Step) bool {
	reuse := r.reuseOf(compiled.ID)
	if reuse < workflow.ReuseSuccess || compiled.Block != nil && reuse < workflow.ReuseAll && r.failedInside(step.Path) {
		return false
	}
	return step.Status == StepSucceeded || step.Status == StepSkipped ||
		step.Status == StepFailed && compiled.Tolerated() && reuse == workflow.ReuseAll
}

// failedInside reports whether a loop contains a failed step whose failure is no
// longer valid.
func (r *stepReuse) failedInside(path string) bool {
	for inner, step := range r.steps {
		if strings.HasPrefix(inner, path+"[") && step.Status == StepFailed && r.reuseOf(LastOf(inner)) < workflow.ReuseAll {
			return true
		}
	}
	return false
}

func (r *stepReuse) add(step Step) {
	step.Answer, step.AnswerFiles, step.Awaits, step.Rev = nil, nil, "", 0
	step.Name = r.titles[LastOf(step.Path)]
	if step.Reason == "" && step.Status.Settled() {
		step.Reason = r.reason
	}
	r.reused[step.Path] = step
}

// addInside reuses all steps inside a loop.
func (r *stepReuse) addInside(path string) {
	for inner, step := range r.steps {
		if strings.HasPrefix(inner, path+"[") {
			r.add(step)
		}
	}
}

// reopen reuses a loop as running, with the steps of its rounds where possible.
func (r *stepReuse) reopen(compiled *workflow.CompiledStep, step Step) {
	step.Status, step.FinishedAt, step.WakeAt, step.Error, step.Output, step.OutputFiles, step.Reason = StepRunning, nil, nil, nil, nil, nil, ""
	r.add(step)
	for n := range r.rounds(step.Path) {
		r.reuseLevel(compiled.Block.Body, step.Path+"["+strconv.Itoa(n)+"].")
	}
}

// rounds returns the number of rounds that a loop has started.
func (r *stepReuse) rounds(path string) int {
	most := 0
	for inner := range r.steps {
		rest, below := strings.CutPrefix(inner, path+"[")
		number, _, found := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(number); below && found && err == nil {
			most = max(most, n+1)
		}
	}
	return most
}
