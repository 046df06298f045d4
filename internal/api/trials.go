package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

type testStepRequest struct {
	ID     string `path:"id"`
	StepID string `path:"step_id"`
	Body   struct {
		draftBody
		RunID   *string     `json:"run_id"`
		Context *sampleBody `json:"context"`
	} `body:"optional"`
}

// draftBody is a definition that is not saved, and what is pinned in it.
type draftBody struct {
	Definition *definitionPatch           `json:"definition"`
	UsePinned  bool                       `json:"use_pinned"`
	Pinned     map[string]json.RawMessage `json:"pinned"`
}

func (b draftBody) trying() workflow.Trying {
	out := workflow.Trying{UsePinned: b.UsePinned, Pinned: workflow.PinsPatch{Values: b.Pinned}}
	if b.Definition != nil {
		out.Patch = b.Definition.patch()
	}
	return out
}

// mayDraft refuses to run a definition that the caller could not save.
func mayDraft(ctx context.Context) error {
	if auth.Grants(actorOf(ctx).Scopes, auth.Write) {
		return nil
	}
	return fault.New(fault.InsufficientScope, "a definition that is not saved needs a key with scope %s too", auth.Write)
}

type triedBody struct {
	Status     run.StepStatus  `json:"status"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	Error      *stepError      `json:"error"`
	Reason     *string         `json:"reason"`
	Logs       []triedLine     `json:"logs"`
	DurationMS int64           `json:"duration_ms"`
	Sources    []sourceBody    `json:"sources"`
}

// sourceBody says where a value that the step refers to came from.
type sourceBody struct {
	Name   string     `json:"name"`
	Source run.Origin `json:"source"`
}

type triedLine struct {
	At      string `json:"at"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

func (s *Server) testStep(ctx context.Context, in *testStepRequest) (*reply, error) {
	trial := run.Trial{WorkflowID: in.ID, View: run.View{StepID: in.StepID}}
	var err error
	if trial.RunID, err = runIDOf(in.Body.RunID); err != nil {
		return nil, err
	}
	if in.Body.Context != nil {
		trial.Sample = in.Body.Context.sample()
	}
	if err := s.draftStep(ctx, in, &trial); err != nil {
		return nil, err
	}
	tried, err := s.Trials.Try(ctx, actorOf(ctx), trial)
	if err != nil {
		return nil, err
	}
	body := triedBody{
		Status: tried.Status, Input: orObject(tried.Input), Output: orObject(tried.Output), Reason: orNull(tried.Reason), Error: showFailure(tried.Error),
		Logs: make([]triedLine, len(tried.Logs)), DurationMS: tried.Duration.Milliseconds(),
		Sources: make([]sourceBody, len(tried.Sources)),
	}
	for i, source := range tried.Sources {
		body.Sources[i] = sourceBody{source.Name, source.From}
	}
	for i, line := range tried.Logs {
		body.Logs[i] = triedLine{clock.Format(line.At), line.Level, line.Message}
	}
	return ok(body), nil
}

// draftStep finds the step of a draft, if there is one, and the pins.
func (s *Server) draftStep(ctx context.Context, in *testStepRequest, trial *run.Trial) error {
	trying := in.Body.trying()
	if in.Body.Definition == nil {
		pins, err := s.Workflows.Pins(ctx, actorOf(ctx), in.ID, trying)
		trial.Pins = pins
		return err
	}
	if err := mayDraft(ctx); err != nil {
		return err
	}
	step, err := s.Workflows.DraftStep(ctx, actorOf(ctx), in.ID, run.LastOf(in.StepID), trying)
	trial.Step, trial.Pins = &step.PlannedStep, step.Pinned
	return workflow.InDefinition(err)
}
