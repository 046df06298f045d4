package engine

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// runState is a run in memory: its steps and how it ends early. It knows how a step
// changes its status, and adds each changed step to the pending commit.
type runState struct {
	changes *pendingCommit
	secrets *secrets
	log     *slog.Logger

	snap     run.Snapshot
	limits   auth.Limits
	root     *frame
	seq      int       // of the last started step
	size     int       // bytes that the run stores
	seed     []byte    // of random values; nil if the program uses none
	earlyEnd *earlyEnd // set if the run ends before all its steps have settled

	// interrupted has the steps that a process was executing when it ended, until their
	// next checkpoint.
	interrupted map[*run.Step]bool

	files   bool                 // values of the run may contain files
	created map[string]file.File // that the last call has created, by id
	held    map[string]bool      // ids of files that the run is known to hold
}

// earlyEnd is how a run ends before all its steps have settled.
type earlyEnd struct {
	status  run.Status
	failure *run.Failure
}

// failEarly makes the run fail after the current round of changes.
func (s *runState) failEarly(failure run.Failure) {
	if s.earlyEnd == nil {
		s.earlyEnd = &earlyEnd{run.Failed, &failure}
	}
}

// seedOf returns the seed for an expression of a step: the same whenever it is
// evaluated, and another one for every other expression, step and run. It is secret,
// so that nobody who knows the id of a run can predict the values.
func (s *runState) seedOf(path, field string) []byte {
	if s.seed == nil {
		return nil
	}
	return expr.DeriveSeed(s.seed, path, field)
}

// addSize adds to the size of the run's stored state and enforces its limit.
func (s *runState) addSize(bytes int) {
	s.size += bytes
	if limit := s.limits.StateBytes; s.size > limit {
		s.failEarly(run.Failure{Code: run.CodeStateTooLarge, Message: fmt.Sprintf("The inputs and outputs of the run have more than %d bytes, the most the %s plan allows.", limit, s.snap.Plan)})
	}
}

// restore rebuilds the state in memory from the stored rows.
func (s *runState) restore(program *workflow.Program, vars map[string]any) error {
	trigger, err := s.snap.Trigger.Seen()
	if err != nil {
		return &corruptError{err}
	}
	s.root = newFrame(program, "", &expr.Env{
		Trigger:  trigger,
		Steps:    map[string]expr.Step{},
		Run:      expr.Run{ID: s.snap.ID, StartedAt: s.snap.StartedAt},
		Workflow: expr.Workflow{ID: s.snap.WorkflowID, Name: s.snap.WorkflowName, Version: s.snap.WorkflowVersion},
		Secrets:  s.secrets.values,
		Vars:     vars,
	})
	s.limits, s.size, s.changes.logBytes = s.snap.Plan.Limits(), s.snap.Trigger.Size(), s.snap.LogBytes
	s.files = program.Files || len(s.snap.Trigger.Files) > 0
	if err := s.restoreFound(program); err != nil {
		return &corruptError{err}
	}
	for _, step := range s.snap.Steps {
		s.seq, s.changes.rev = max(s.seq, step.Seq), max(s.changes.rev, step.Rev)
		s.size += len(step.Input) + len(step.Output) + stateSize(&step)
		s.files = s.files || step.HasFiles()
		p, counts, err := s.find(step.Path)
		if err != nil {
			return &corruptError{err}
		}
		if !counts {
			continue
		}
		if !step.Status.Settled() && !(validOrAbsent(step.Input) && validOrAbsent(step.Answer)) {
			return &corruptError{fmt.Errorf("the input or the answer of step %q is not JSON", step.Path)}
		}
		p.steps[p.i] = &step
		if step.Status == run.StepRunning {
			s.interrupted[&step] = true
		}
		if err := p.publish(); err != nil {
			return &corruptError{err}
		}
		if p.of != nil && p.settled() {
			p.of.block().endRestored(p.frame)
		}
	}
	return nil
}

func validOrAbsent(value json.RawMessage) bool { return value == nil || json.Valid(value) }

// nextWake returns the earliest time at which a waiting step wakes up that is not
// executing, or an hour from now if there is none.
func (s *runState) nextWake(x *executions) time.Time {
	var next *time.Time
	for p := range s.root.unsettled() {
		step := p.step()
		if step.Status == run.StepWaiting && !x.has(step) && step.WakeAt != nil && (next == nil || step.WakeAt.Before(*next)) {
			next = step.WakeAt
		}
	}
	if next == nil {
		return clock.Steady().Add(time.Hour)
	}
	return *next
}

// waitingStep returns the path of the step that the run waits for, or "".
func (s *runState) waitingStep() string {
	step := run.WaitingStep(func(yield func(*run.Step) bool) {
		s.root.visit(func(p stepRef) bool { return yield(p.step()) })
	})
	if step == nil {
		return ""
	}
	return step.Path
}

// setAnswers sets the answers to open steps, by path.
func (s *runState) setAnswers(answers map[string]run.StepAnswer) {
	for p := range s.root.unsettled() {
		if answer, ok := answers[p.step().Path]; ok {
			p.step().Answer, p.step().AnswerFiles = answer.Value, answer.Files
			s.files = s.files || len(answer.Files) > 0
		}
	}
}
