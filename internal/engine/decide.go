package engine

import (
	"fmt"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// verdict is what the rules say about a step that has not started.
type verdict int

const (
	notYet verdict = iota
	start
	skip
)

// judge applies the join rule of a step to how the steps it needs ended. It is
// pure: the same statuses give the same verdict, also after a restart.
func judge(plan *workflow.Plan, i int, status func(int) run.StepStatus) (verdict, string) {
	step := plan.Steps[i]
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
		case s == run.StepFailed && plan.Steps[need].OnError == workflow.Continue:
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
		return skip, fmt.Sprintf("step %q, which it needs, failed", plan.Steps[failed].ID)
	case step.Join == workflow.All && succeeded < all:
		return skip, "not all of the steps it needs succeeded"
	case ran == 0:
		return skip, "none of the steps it needs ran"
	}
	return start, ""
}

// ending tells how a frame ends whose steps are all settled: failed by the
// first step, in order of start, whose failure was not to be passed over.
func ending(f *frame) (run.Status, *run.Failure) {
	var first *run.Step
	for i, s := range f.steps {
		if s.Status != run.StepFailed || f.plan.Steps[i].OnError == workflow.Continue {
			continue
		}
		if first == nil || s.Seq < first.Seq {
			first = s
		}
	}
	if first == nil {
		return run.Succeeded, nil
	}
	// The failure of a round is that of its block too: it is named once.
	message, stepID := first.Error.Message, first.Error.StepID
	if stepID == first.Path {
		message = fmt.Sprintf("Step %q failed: %s", first.Name, message)
	}
	return run.Failed, &run.Failure{Code: first.Error.Code, Message: message, StepID: stepID}
}
