package engine

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// readyState is what the join rule decides about a step that has not started.
type readyState int

const (
	notYet readyState = iota
	start
	skip
)

// readiness applies the join rule of a step to the statuses of the steps it needs. It
// is pure, so it returns the same result after a restart.
func readiness(program *workflow.Program, i int, status func(int) run.StepStatus) (readyState, string) {
	step := program.Steps[i]
	settled, ran, succeeded := 0, 0, 0
	failed := -1
	for _, need := range step.After {
		s := status(need)
		if s != "" && s.Settled() {
			settled++
		}
		switch {
		case s == run.StepSucceeded:
			succeeded++
			ran++
		case s == run.StepFailed && program.Steps[need].OnError == workflow.Continue:
			ran++
		case s == run.StepFailed || s == run.StepCancelled:
			failed = need
		}
	}
	all := len(step.After)
	if step.Join == workflow.First && succeeded > 0 {
		return start, ""
	}
	if settled < all {
		return notYet, ""
	}
	switch {
	case all == 0 || step.Join == workflow.Always:
		return start, ""
	case step.Join == workflow.First:
		return skip, "none of the steps it needs succeeded"
	case failed >= 0:
		return skip, fmt.Sprintf("step %q, which it needs, failed", program.Steps[failed].ID)
	case step.Join == workflow.All && succeeded < all:
		return skip, "not all of the steps it needs succeeded"
	case ran == 0:
		return skip, "none of the steps it needs ran"
	}
	return start, ""
}

// frameResult returns how a frame ends whose steps have all settled. It fails if a
// step failed whose failure is not tolerated; the first such step, in the order in
// which they started, determines the failure.
func frameResult(f *frame) (run.Status, *run.Failure) {
	var first *run.Step
	for i, s := range f.steps {
		if s.Status != run.StepFailed || f.program.Steps[i].OnError == workflow.Continue {
			continue
		}
		if first == nil || s.Seq < first.Seq {
			first = s
		}
	}
	if first == nil {
		return run.Succeeded, nil
	}
	// A failure inside a round is also the failure of its block. Name the step once.
	message, stepID := first.Error.Message, first.Error.StepID
	if stepID == first.Path {
		message = fmt.Sprintf("Step %q failed: %s", first.Name, message)
	}
	return run.Failed, &run.Failure{Code: first.Error.Code, Message: message, StepID: stepID}
}
