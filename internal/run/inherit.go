package run

import (
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/workflow"
)

// Inherit picks the steps of an ended run that a retry of it need not execute
// again: those that came to a good end and come after nothing but such steps.
// The step that the run failed at is none of them: one that stopped the run has
// done what it is there for. A foreach that did not end well keeps the rounds
// that did; a repeat begins anew.
func Inherit(plan *workflow.Plan, of Detail) []Step {
	h := heir{steps: map[string]Step{}, kept: map[string]Step{}, reason: "copied from " + of.ID}
	if of.Error != nil {
		h.failedAt = of.Error.StepID
	}
	for _, step := range of.Steps {
		h.steps[step.Path] = step
	}
	h.level(plan, "")
	var out []Step
	for _, step := range of.Steps {
		if kept, ok := h.kept[step.Path]; ok {
			out = append(out, kept)
		}
	}
	return out
}

type heir struct {
	steps  map[string]Step
	kept   map[string]Step
	reason string
	// failedAt is the step that the run failed at, if it was one.
	failedAt string
}

// level goes through a list of steps and keeps those that can be.
func (h *heir) level(plan *workflow.Plan, prefix string) {
	const (
		unknown = iota
		no
		yes
	)
	known := make([]int, len(plan.Steps))
	var keeps func(i int) bool
	keeps = func(i int) bool {
		if known[i] != unknown {
			return known[i] == yes
		}
		known[i] = no
		for _, need := range plan.Steps[i].After {
			if !keeps(need) {
				return false
			}
		}
		if h.keep(&plan.Steps[i], prefix) {
			known[i] = yes
		}
		return known[i] == yes
	}
	for i := range plan.Steps {
		keeps(i)
	}
}

// keep takes a step over if it came to a good end, or the good part of a loop.
func (h *heir) keep(planned *workflow.PlannedStep, prefix string) bool {
	step, there := h.steps[prefix+planned.ID]
	if !there {
		return false
	}
	good := step.Path != h.failedAt && (step.Status == StepSucceeded || step.Status == StepSkipped ||
		step.Status == StepFailed && planned.OnError == workflow.Continue)
	switch {
	case good:
		h.take(step)
		h.takeInside(step.Path)
	case step.Type == Foreach && step.Input != nil:
		h.reopen(planned, step)
	}
	return good
}

func (h *heir) take(step Step) {
	step.Answer, step.Awaits, step.Rev = nil, "", 0
	if step.Reason == "" && step.Status.Settled() {
		step.Reason = h.reason
	}
	h.kept[step.Path] = step
}

// takeInside takes over all that a loop which is kept has inside.
func (h *heir) takeInside(path string) {
	for inner, step := range h.steps {
		if strings.HasPrefix(inner, path+"[") {
			h.take(step)
		}
	}
}

// reopen takes over the rounds of a loop as far as they came to a good end.
func (h *heir) reopen(planned *workflow.PlannedStep, step Step) {
	step.Status, step.FinishedAt, step.WakeAt, step.Error, step.Output, step.Reason = StepRunning, nil, nil, nil, nil, ""
	h.take(step)
	for n := range h.rounds(step.Path) {
		h.level(planned.Block.Body, step.Path+"["+strconv.Itoa(n)+"].")
	}
}

// rounds is the number of rounds that a loop has begun.
func (h *heir) rounds(path string) int {
	most := 0
	for inner := range h.steps {
		rest, below := strings.CutPrefix(inner, path+"[")
		number, _, found := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(number); below && found && err == nil {
			most = max(most, n+1)
		}
	}
	return most
}
