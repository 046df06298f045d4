// Package run owns executions of workflows: what a run and its steps are, the
// states they go through, and the decision that moves a run forward. It does
// not own the execution itself (engine) nor the definition (workflow).
package run

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
)

// Status is where a run stands. Every accepted run ends in exactly one of the
// three final ones, and a final one never changes.
type Status string

// The statuses of a run.
const (
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Statuses lists the statuses of a run.
func Statuses() []Status { return []Status{Running, Succeeded, Failed, Cancelled} }

// Known tells whether s is a status.
func (s Status) Known() bool { return slices.Contains(Statuses(), s) }

// StepStatus is where a step stands.
type StepStatus string

// The statuses of a step.
const (
	StepRunning   StepStatus = "running"
	StepWaiting   StepStatus = "waiting"
	StepSucceeded StepStatus = "succeeded"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped"
	StepCancelled StepStatus = "cancelled"
)

// StepStatuses lists the statuses of a step.
func StepStatuses() []StepStatus {
	return []StepStatus{StepRunning, StepWaiting, StepSucceeded, StepFailed, StepSkipped, StepCancelled}
}

// Known tells whether s is a status.
func (s StepStatus) Known() bool { return slices.Contains(StepStatuses(), s) }

// Settled tells whether the step will not change any more.
func (s StepStatus) Settled() bool { return s != StepRunning && s != StepWaiting }

// Codes of failures inside runs, beside those that an action brings.
const (
	CodeInternal       = "internal_error"
	CodeCorruptState   = "corrupt_state"
	CodeOutputTooLarge = "output_too_large"
	CodeStepLimit      = "step_limit_exceeded"
	CodeRepeatLimit    = "repeat_limit_exceeded"
	CodeStateTooLarge  = "state_too_large"
	CodeRunTimeout     = "run_timeout"
	CodeStopped        = "stopped"
	CodeQuarantined    = "quarantined"
	CodeSecretMissing  = "secret_missing"
)

// Codes lists them.
func Codes() []string {
	return []string{
		CodeInternal, CodeCorruptState, CodeOutputTooLarge, CodeStepLimit, CodeRepeatLimit, CodeStateTooLarge, CodeRunTimeout, CodeStopped,
		CodeQuarantined, CodeSecretMissing,
	}
}

// Failure says why a run or a step failed.
type Failure struct {
	Code    string
	Message string
	StepID  string
}

// Trigger is what started a run.
type Trigger struct {
	Type    string
	ID      string
	Payload json.RawMessage
	// Headers and Query came with the call of a webhook; nil for other triggers.
	Headers json.RawMessage
	Query   json.RawMessage
	// Test says that somebody tried the trigger out.
	Test bool
}

// Seen is the trigger as expressions see it.
func (t Trigger) Seen() (expr.Trigger, error) {
	out := expr.Trigger{Type: t.Type, ID: t.ID}
	for _, part := range []struct {
		raw  json.RawMessage
		into *any
	}{{t.Payload, &out.Payload}, {t.Headers, &out.Headers}, {t.Query, &out.Query}} {
		if part.raw == nil {
			continue
		}
		var err error
		if *part.into, err = expr.FromJSON(part.raw); err != nil {
			return expr.Trigger{}, err
		}
	}
	return out, nil
}

// Size is what the run keeps of it, in bytes.
func (t Trigger) Size() int { return len(t.Payload) + len(t.Headers) + len(t.Query) }

// Manual is the type of a trigger that is a request to the API.
const Manual = "manual"

// Run is one execution of a version of a workflow.
type Run struct {
	ID              string
	WorkspaceID     string
	WorkflowID      string
	WorkflowVersion int
	Status          Status
	Trigger         Trigger
	Error           *Failure
	StartedAt       time.Time
	FinishedAt      *time.Time
	// RetryOf is the run whose finished steps this one took over.
	RetryOf string
	// Parent is the step that started the run, nil for a run of its own.
	Parent *Parent
	// Depth is how many runs stand above it.
	Depth int
	// ShareKey names the places that the run shares with others of its workflow;
	// empty: it shares none.
	ShareKey string
	// Draft says that it executes a definition that was not saved, on top of the
	// version.
	Draft bool
}

// Parent is a step of another run that started a run.
type Parent struct {
	RunID  string
	StepID string
	// Waits says that the step waits for the end of the run.
	Waits bool
}

// Item is a run in a list.
type Item struct {
	ID         string
	WorkflowID string
	Status     Status
	StartedAt  time.Time
	FinishedAt *time.Time
}

// Step is one step of a run, from the moment it starts or is skipped.
type Step struct {
	Path       string // the API's step_id
	Seq        int    // the order in which steps started
	Name       string
	Type       string
	Status     StepStatus
	Attempt    int
	Input      json.RawMessage
	Output     json.RawMessage // always an object
	Error      *Failure
	Reason     string // why it was skipped or waits
	StartedAt  time.Time
	AttemptAt  time.Time // when the current attempt began
	FinishedAt *time.Time
	WakeAt     *time.Time // set while it waits
	// Deadline is when the wait ends, if it wakes before only to wait again.
	Deadline *time.Time
	// Awaits is what ends the wait beside its time.
	Awaits action.Awaits
	// Answer is what came for it, nil while nothing has.
	Answer json.RawMessage
	// Rev is the commit of the run that wrote the step last.
	Rev int
}

// Until is when the wait of a step ends at the latest.
func (s Step) Until() *time.Time {
	if s.Deadline != nil {
		return s.Deadline
	}
	return s.WakeAt
}

// Seen is a settled step as expressions see it.
func (s Step) Seen() (expr.Step, error) {
	out := expr.Step{Status: string(s.Status)}
	if s.Error != nil {
		out.Error = map[string]any{"code": s.Error.Code, "message": s.Error.Message}
	}
	var err error
	if s.Status == StepSucceeded && s.Output != nil {
		out.Output, err = expr.FromJSON(s.Output)
	}
	return out, err
}

// pinnedReason is what a step says that was answered with its pin.
const pinnedReason = "answered with its pinned output"

// Pin gives a step that has just begun its pin for an output.
func (s *Step) Pin(output json.RawMessage) {
	s.Status, s.Output, s.Reason = StepSucceeded, output, pinnedReason
}

// Pinned tells whether the step was answered with its pin instead of being
// executed.
func (s Step) Pinned() bool { return s.Reason == pinnedReason }

// LogLine is what a step wrote to its log.
type LogLine struct {
	Path    string
	Attempt int
	At      time.Time
	Level   string
	Message string
}

// Types of steps that hold steps: they are under way for as long as those are.
const (
	Foreach = "foreach"
	Repeat  = "repeat"
)

func (s Step) block() bool { return s.Type == Foreach || s.Type == Repeat }

// Attempt is an earlier attempt of a step, one that failed and was repeated.
type Attempt struct {
	Path       string
	Number     int
	StartedAt  time.Time
	FinishedAt time.Time
	Error      Failure
}

// Detail is a run with its steps in the order they started.
type Detail struct {
	Run
	Steps    []Step
	Attempts []Attempt // earlier ones, oldest first
	// HeldBack says that the run waits for one of the places that it shares.
	HeldBack bool
	// Queued says that it waits to be executed.
	Queued bool
	// Crashes is how often a process died while it executed the same steps.
	Crashes int
}
