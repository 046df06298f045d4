package api

import (
	"encoding/json"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// runFields are the fields that every view of a run has.
type runFields struct {
	ID              string       `json:"id"`
	WorkflowID      string       `json:"workflow_id"`
	WorkflowVersion int          `json:"workflow_version"`
	Status          run.Status   `json:"status"`
	StartedAt       string       `json:"started_at"`
	FinishedAt      *string      `json:"finished_at"`
	DurationMS      int64        `json:"duration_ms"`
	Error           *runError    `json:"error"`
	WaitingFor      *waitingBody `json:"waiting_for"`
	RetryOf         *string      `json:"retry_of"`
	Parent          *parentBody  `json:"parent"`
	Draft           bool         `json:"draft"`
	StartedBy       *starter     `json:"started_by"`
}

type runBody struct {
	runFields
	Trigger triggerBody `json:"trigger"`
	Steps   []stepBody  `json:"steps"`
}

type triggerBody struct {
	Type    string          `json:"type"`
	ID      *string         `json:"id"`
	Payload json.RawMessage `json:"payload"`
	// PayloadFiles are the JSON pointers of the references to files inside Payload.
	PayloadFiles []string        `json:"payload_files,omitempty"`
	Headers      json.RawMessage `json:"headers"`
	Query        json.RawMessage `json:"query"`
	Test         bool            `json:"test"`
}

// starter is the user, key or trigger that started a run.
type starter struct {
	Type string  `json:"type"`
	ID   string  `json:"id"`
	Name *string `json:"name"`
}

func showStarter(by *run.Starter) *starter {
	if by == nil {
		return nil
	}
	return &starter{Type: by.Type, ID: by.ID, Name: orNull(by.Name)}
}

// parentBody is the step of another run that started a run.
type parentBody struct {
	RunID  string `json:"run_id"`
	StepID string `json:"step_id"`
}

type runError struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	StepID  *string `json:"step_id"`
}

type waitingBody struct {
	Kind       run.WaitKind `json:"kind"`
	Reason     string       `json:"reason"`
	StepID     *string      `json:"step_id"`
	Connection *string      `json:"connection"`
	Until      *string      `json:"until"`
}

func showWaiting(w *run.Waiting) *waitingBody {
	if w == nil {
		return nil
	}
	return &waitingBody{w.Kind, w.Reason, orNull(w.StepID), orNull(w.Connection), clock.FormatPtr(w.Until)}
}

// stepFields are the fields that every view of a step has.
type stepFields struct {
	StepID     string         `json:"step_id"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Status     run.StepStatus `json:"status"`
	Attempt    int            `json:"attempt"`
	StartedAt  string         `json:"started_at"`
	FinishedAt *string        `json:"finished_at"`
	DurationMS int64          `json:"duration_ms"`
	Error      *stepError     `json:"error"`
	Reason     *string        `json:"reason"`
	Pinned     bool           `json:"pinned"`
}

// stepSummary is a step without its input and output.
type stepSummary struct {
	stepFields
	Attempts []attemptBody `json:"attempts"`
}

type stepBody struct {
	stepSummary
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
	InputFiles  []string        `json:"input_files,omitempty"`
	OutputFiles []string        `json:"output_files,omitempty"`
}

type stepError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type attemptBody struct {
	Attempt    int            `json:"attempt"`
	Status     run.StepStatus `json:"status"`
	StartedAt  string         `json:"started_at"`
	FinishedAt *string        `json:"finished_at"`
	DurationMS int64          `json:"duration_ms"`
	Error      *stepError     `json:"error"`
}

func showRunFields(d run.Detail) runFields {
	fields := runFields{
		ID: d.ID, WorkflowID: d.WorkflowID, WorkflowVersion: d.WorkflowVersion, Status: d.Status,
		StartedAt: clock.Format(d.StartedAt), FinishedAt: clock.FormatPtr(d.FinishedAt), DurationMS: duration(d.StartedAt, d.FinishedAt),
		RetryOf: orNull(d.RetryOf), Draft: d.Draft, StartedBy: showStarter(d.StartedBy), WaitingFor: showWaiting(d.WaitingFor()),
	}
	if d.Parent != nil {
		fields.Parent = &parentBody{d.Parent.RunID, d.Parent.StepID}
	}
	if d.Error != nil {
		fields.Error = &runError{d.Error.Code, d.Error.Message, orNull(d.Error.StepID)}
	}
	return fields
}

func showRun(d run.Detail) runBody {
	body := runBody{
		runFields: showRunFields(d), Steps: make([]stepBody, len(d.Steps)),
		Trigger: showRunTrigger(d.Trigger),
	}
	earlier := map[string][]run.Attempt{}
	for _, attempt := range d.Attempts {
		earlier[attempt.Path] = append(earlier[attempt.Path], attempt)
	}
	for i, step := range d.Steps {
		body.Steps[i] = showStep(step, earlier[step.Path])
	}
	return body
}

func showRunTrigger(t run.Trigger) triggerBody {
	return triggerBody{Type: t.Type, ID: orNull(t.ID), Payload: t.Payload, PayloadFiles: t.Files, Headers: t.Headers, Query: t.Query, Test: t.Test}
}

func showStep(s run.Step, earlier []run.Attempt) stepBody {
	return stepBody{stepSummary: showStepSummary(s, earlier), Input: orObject(s.Input), Output: orObject(s.Output), InputFiles: s.InputFiles, OutputFiles: s.OutputFiles}
}

func showStepFields(s run.Step) stepFields {
	return stepFields{
		StepID: s.Path, Name: s.Name, Type: s.Type, Status: s.Status, Attempt: s.Attempt,
		StartedAt: clock.Format(s.StartedAt), FinishedAt: clock.FormatPtr(s.FinishedAt), DurationMS: duration(s.StartedAt, s.FinishedAt),
		Error: showFailure(s.Error), Reason: orNull(s.ReasonText()), Pinned: s.Pinned(),
	}
}

func showStepSummary(s run.Step, earlier []run.Attempt) stepSummary {
	summary := stepSummary{stepFields: showStepFields(s), Attempts: []attemptBody{}}
	for _, a := range earlier {
		summary.Attempts = append(summary.Attempts, attemptBody{
			Attempt: a.Number, Status: run.StepFailed, StartedAt: clock.Format(a.StartedAt), FinishedAt: clock.FormatPtr(&a.FinishedAt),
			DurationMS: duration(a.StartedAt, &a.FinishedAt), Error: showFailure(&a.Error),
		})
	}
	// While a step waits for its next attempt, earlier includes the last one.
	if s.Attempt > len(earlier) {
		summary.Attempts = append(summary.Attempts, attemptBody{
			Attempt: s.Attempt, Status: s.Status, StartedAt: clock.Format(s.AttemptAt), FinishedAt: summary.FinishedAt,
			DurationMS: duration(s.AttemptAt, s.FinishedAt), Error: summary.Error,
		})
	}
	return summary
}

func showFailure(f *run.Failure) *stepError {
	if f == nil {
		return nil
	}
	return &stepError{f.Code, f.Message}
}
