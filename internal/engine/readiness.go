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

// needState is what has become of a need.
type needState int

const (
	needOpen      needState = iota
	needSucceeded           // the step succeeded, or the path was taken
	needRan                 // the step failed, and the run continues all the same
	needPassed              // the step was skipped, or another path was taken
	needFailed
	needLeftOut // the step is disabled, and has been skipped
)

func (f *frame) stateOf(need workflow.Need) needState {
	status, compiled := f.status(need.Step), &f.program.Steps[need.Step]
	switch {
	case status == "" || !status.Settled():
		return needOpen
	case compiled.Disabled && need.Path == "":
		return needLeftOut
	case status == run.StepSkipped:
		return needPassed
	case status == run.StepCancelled:
		return needFailed
	case need.Path == workflow.ErrorPath:
		if status == run.StepFailed {
			return needSucceeded
		}
		return needPassed
	case status == run.StepSucceeded:
		if need.Path == "" || f.took(need) {
			return needSucceeded
		}
		return needPassed
	case !compiled.Tolerated():
		return needFailed
	case need.Path == "" && compiled.OnError == workflow.Continue:
		return needRan
	}
	return needPassed // the error path has been taken instead
}

// took reports whether a switch that has succeeded took a path. A pinned output decides like
// a real one.
func (f *frame) took(need workflow.Need) bool {
	output, _ := f.env.Steps[f.program.Steps[need.Step].ID].Output.(map[string]any)
	return workflow.Took(output, need.Path)
}

// readiness applies the join rule of a step to what it needs. It depends only on settled
// steps, so it returns the same result after a restart.
func (f *frame) readiness(i int) (readyState, string) {
	step := f.program.Steps[i]
	var count [needLeftOut + 1]int
	var failure, only workflow.Need
	for _, need := range step.After {
		is := f.stateOf(need)
		count[is]++
		switch is {
		case needFailed:
			failure = need
		case needPassed:
			only = need
		}
	}
	needed := len(step.After) - count[needLeftOut]
	switch {
	case step.Join == workflow.First && count[needSucceeded] > 0:
		return start, ""
	case count[needOpen] > 0:
		return notYet, ""
	case needed == 0 || step.Join == workflow.Always:
		return start, ""
	case step.Join == workflow.First:
		return skip, "none of the steps it needs succeeded"
	case count[needFailed] > 0:
		return skip, fmt.Sprintf("step %q, which it needs, failed", f.program.Steps[failure.Step].ID)
	case step.Join == workflow.All && count[needSucceeded] < needed:
		return skip, "not all of the steps it needs succeeded"
	case count[needSucceeded]+count[needRan] > 0:
		return start, ""
	case needed == 1:
		return skip, f.whyPassed(only)
	}
	return skip, "none of the steps it needs ran"
}

// whyPassed returns why a step is skipped that has only this need.
func (f *frame) whyPassed(need workflow.Need) string {
	switch id, status := f.program.Steps[need.Step].ID, f.status(need.Step); {
	case status == run.StepSkipped:
		return "none of the steps it needs ran"
	case need.Path == workflow.ErrorPath:
		return fmt.Sprintf("step %q, whose failure it handles, did not fail", id)
	case status == run.StepFailed:
		return fmt.Sprintf("step %q, which it needs, failed", id)
	default:
		return fmt.Sprintf("step %q did not take the path %q", id, need.Path)
	}
}

// frameResult returns how a frame ends whose steps have all settled. It fails if a
// step failed whose failure is not tolerated; the first such step, in the order in
// which they started, determines the failure.
func frameResult(f *frame) (run.Status, *run.Failure) {
	var first *run.Step
	for i, s := range f.steps {
		if s.Status != run.StepFailed || f.program.Steps[i].Tolerated() {
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
