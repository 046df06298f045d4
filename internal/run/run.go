// Package run defines runs of workflows and their steps: their data, their
// statuses, and the decisions that move a run forward. Package engine executes
// runs, and package workflow defines what they execute.
package run

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
)

// Status is the status of a run. Every accepted run ends in exactly one of the
// three final statuses, and a final status never changes.
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

// Known reports whether s is a status of a run.
func (s Status) Known() bool { return slices.Contains(Statuses(), s) }

// StepStatus is the status of a step.
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

// Known reports whether s is a status of a step.
func (s StepStatus) Known() bool { return slices.Contains(StepStatuses(), s) }

// Settled reports whether the status is final.
func (s StepStatus) Settled() bool { return s != StepRunning && s != StepWaiting }

// Failure codes of runs and steps, in addition to those of actions.
const (
	CodeInternal       = "internal_error"
	CodeCorruptState   = "corrupt_state"
	CodeOutputTooLarge = action.OutputTooLarge
	CodeStepLimit      = "step_limit_exceeded"
	CodeRepeatLimit    = "repeat_limit_exceeded"
	CodeMaskLimit      = "mask_limit_exceeded"
	CodeStateTooLarge  = "state_too_large"
	CodeRunTimeout     = "run_timeout"
	CodeStopped        = "stopped"
	CodeQuarantined    = "quarantined"
	CodeSecretMissing  = "secret_missing"
)

// Codes lists the failure codes above.
func Codes() []string {
	return []string{
		CodeInternal, CodeCorruptState, CodeOutputTooLarge, CodeStepLimit, CodeRepeatLimit, CodeMaskLimit, CodeStateTooLarge, CodeRunTimeout, CodeStopped,
		CodeQuarantined, CodeSecretMissing,
	}
}

// Failure is the reason why a run or a step failed.
type Failure struct {
	Code    string
	Message string
	StepID  string
}

// Trigger describes what started a run.
type Trigger struct {
	Type    string
	ID      string
	Payload json.RawMessage
	// Files are the JSON pointers of the references to files inside Payload.
	Files []string
	// Headers and Query are those of a webhook call; nil for other triggers.
	Headers json.RawMessage
	Query   json.RawMessage
	// Test marks a run that was started to test the trigger.
	Test bool
}

// Seen returns the trigger as expressions see it.
func (t Trigger) Seen() (expr.Trigger, error) {
	out := expr.Trigger{Type: t.Type, ID: t.ID}
	for _, part := range []struct {
		raw   json.RawMessage
		files []string
		into  *any
	}{{t.Payload, t.Files, &out.Payload}, {t.Headers, nil, &out.Headers}, {t.Query, nil, &out.Query}} {
		if part.raw == nil {
			continue
		}
		var err error
		if *part.into, err = expr.FromJSONWithFiles(part.raw, part.files); err != nil {
			return expr.Trigger{}, err
		}
	}
	return out, nil
}

// Size returns the number of bytes that a run stores for its trigger.
func (t Trigger) Size() int { return len(t.Payload) + len(t.Headers) + len(t.Query) }

// Manual is the trigger type of runs that are started by an API request.
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
	// RetryOf is the id of the run that this one retries; empty for none.
	RetryOf string
	// Parent is the step that started the run; nil for a top-level run.
	Parent *Parent
	// Depth is the number of ancestors: runs in the chain that started this one.
	Depth int
	// ConcurrencyKey groups runs of a workflow that share a concurrency limit;
	// empty if no limit applies.
	ConcurrencyKey string
	// Draft marks a run that executes an unsaved definition, based on the version.
	Draft bool
	// StartedBy is the key or user that started the run; nil if a trigger or a step
	// started it.
	StartedBy *Starter
}

// Starter is the API key or user that started a run.
type Starter struct {
	Type string // an actor type of the audit log
	ID   string
	Name string // at the time of the start
}

// starter returns the actor as a Starter, or nil for the service itself.
func starter(actor auth.Actor) *Starter {
	if actor.ID == "" {
		return nil
	}
	return &Starter{Type: actor.Type, ID: actor.ID, Name: actor.Label}
}

// Parent is the step of another run that started a run.
type Parent struct {
	RunID  string
	StepID string
	// Waits reports whether the step waits until the run ends.
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
	Seq        int    // position in the order in which steps started
	Name       string
	Type       string
	Status     StepStatus
	Attempt    int
	Input      json.RawMessage
	Output     json.RawMessage // always an object; after a failure, the output attached to it
	Error      *Failure
	Reason     string // why it was skipped or is waiting
	StartedAt  time.Time
	AttemptAt  time.Time // start of the current attempt
	FinishedAt *time.Time
	WakeAt     *time.Time // set while the step waits, as a steady time
	// Deadline is the end of the wait if the step wakes up earlier to check and then
	// waits again, as a steady time. If the step awaits a time of day, it is that time.
	Deadline *time.Time
	// Awaits is what can end the wait before its time.
	Awaits action.Awaits
	// Answer is the answer to the step; nil until it arrives.
	Answer json.RawMessage
	// State is the state in the last checkpoint of the step; nil if there is none. Of a
	// step that has succeeded and whose output is masked because of the mask of a step,
	// it is the real output; of an open foreach, the real items. It is stored sealed.
	State []byte
	// Chunks are what checkpoints have added to State. They are stored apart, each once.
	Chunks [][]byte
	// CheckpointAttempt is the attempt that returned the last checkpoint; 0 if there
	// is none.
	CheckpointAttempt int
	// StateFiles are the ids of the files that the last checkpoint refers to. They are
	// stored with State.
	StateFiles []string
	// InputFiles, OutputFiles and AnswerFiles are the JSON pointers of the references
	// to files: inside Input, inside Output, which State has at
	// the same places, and inside Answer.
	InputFiles  []string
	OutputFiles []string
	AnswerFiles []string
	// Rev is the last commit of the run that wrote the step.
	Rev int
}

// Failures returns how many attempts have failed since the last checkpoint if the
// current one fails too.
func (s Step) Failures() int { return s.Attempt - max(0, s.CheckpointAttempt-1) }

// WaitsUntil returns the time of day at which the wait of the step ends at the latest,
// unless the clock is set.
func (s Step) WaitsUntil() *time.Time {
	if s.Awaits == action.AwaitsTime {
		return s.Deadline
	}
	return clock.WallPtr(s.Until())
}

// Until returns the latest steady time at which the wait of the step ends.
func (s Step) Until() *time.Time {
	if s.Deadline != nil {
		return s.Deadline
	}
	return s.WakeAt
}

// Seen returns a settled step as expressions see it.
func (s Step) Seen() (expr.Step, error) {
	out := expr.Step{Status: string(s.Status)}
	if s.Error != nil {
		out.Error = map[string]any{"code": s.Error.Code, "message": s.Error.Message}
	}
	var err error
	if s.Output != nil && (s.Status == StepSucceeded || s.Status == StepFailed) {
		out.Output, err = expr.FromJSONWithFiles(s.Output, s.OutputFiles)
	}
	return out, err
}

// ReasonPinned is stored as the reason of a step that used its pinned output. It
// is a code; [Step.ReasonText] returns the text to show.
const ReasonPinned = "pinned_output"

// legacyReasonPinned is the text that earlier builds stored instead.
const legacyReasonPinned = "answered with its pinned output"

// Pin settles a step with its pinned output.
func (s *Step) Pin(output json.RawMessage) {
	s.Status, s.Output, s.Reason = StepSucceeded, output, ReasonPinned
}

// Pinned reports whether the step used its pinned output instead of being
// executed.
func (s Step) Pinned() bool {
	return s.Status == StepSucceeded && (s.Reason == ReasonPinned || s.Reason == legacyReasonPinned)
}

// ReasonText returns the reason as users read it.
func (s Step) ReasonText() string {
	if s.Pinned() {
		return "used its pinned output instead of being executed"
	}
	return s.Reason
}

// LogLine is a line in the log of a step.
type LogLine struct {
	Path    string
	Attempt int
	At      time.Time
	Level   string
	Message string
}

// Types of steps that contain steps. They run for as long as those do.
const (
	Foreach = "foreach"
	Repeat  = "repeat"
)

func (s Step) block() bool { return s.Type == Foreach || s.Type == Repeat }

// Attempt is an earlier attempt of a step that failed and was retried.
type Attempt struct {
	Path       string
	Number     int
	StartedAt  time.Time
	FinishedAt time.Time
	Error      Failure
}

// Detail is a run with its steps, in the order in which they started.
type Detail struct {
	Run
	Steps    []Step
	Attempts []Attempt // earlier ones, oldest first
	// HeldBack reports whether the run waits for a slot under the concurrency limit
	// of its workflow.
	HeldBack bool
	// Queued reports whether the run waits to be executed.
	Queued bool
	// Crashes counts the processes that died while executing the same steps.
	Crashes int
}
