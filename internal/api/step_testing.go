package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
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

// draftBody is an unsaved definition with its pins.
type draftBody struct {
	Definition *definitionPatch           `json:"definition"`
	UsePinned  bool                       `json:"use_pinned"`
	Pinned     map[string]json.RawMessage `json:"pinned"`
}

func (b draftBody) draftTest() workflow.DraftTest {
	out := workflow.DraftTest{UsePinned: b.UsePinned, Pinned: workflow.PinsPatch{Values: b.Pinned}}
	if b.Definition != nil {
		out.Patch = b.Definition.patch()
	}
	return out
}

// checkDraftScope rejects a definition that the caller could not save.
func checkDraftScope(ctx context.Context) error {
	if auth.Grants(transport.Actor(ctx).Scopes, auth.Write) {
		return nil
	}
	return fault.New(fault.InsufficientScope, "running an unsaved definition also requires the scope %s", auth.Write)
}

type testedStepBody struct {
	Status      run.StepStatus  `json:"status"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
	InputFiles  []string        `json:"input_files,omitempty"`
	OutputFiles []string        `json:"output_files,omitempty"`
	Error       *stepError      `json:"error"`
	Reason      *string         `json:"reason"`
	Logs        []testLogLine   `json:"logs"`
	DurationMS  int64           `json:"duration_ms"`
	Sources     []sourceBody    `json:"sources"`
}

// sourceBody names the source of a value that the step refers to.
type sourceBody struct {
	Name   string     `json:"name"`
	Source run.Origin `json:"source"`
}

type testLogLine struct {
	At      string `json:"at"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

func (h *previews) testStep(ctx context.Context, in *testStepRequest) (*transport.Reply, error) {
	test := run.StepTest{WorkflowID: in.ID, View: run.View{StepID: in.StepID}}
	var err error
	if test.RunID, err = parseRunID(in.Body.RunID); err != nil {
		return nil, err
	}
	if in.Body.Context != nil {
		test.Sample = in.Body.Context.sample()
	}
	if err := h.draftStep(ctx, in, &test); err != nil {
		return nil, err
	}
	result, err := h.tester.Test(ctx, transport.Actor(ctx), test)
	if err != nil {
		return nil, err
	}
	body := testedStepBody{
		Status: result.Status, Input: orObject(result.Input), Output: orObject(result.Output), InputFiles: result.InputFiles, OutputFiles: result.OutputFiles,
		Reason: orNull(result.Reason), Error: showFailure(result.Error),
		Logs: make([]testLogLine, len(result.Logs)), DurationMS: result.Duration.Milliseconds(),
		Sources: make([]sourceBody, len(result.Sources)),
	}
	for i, source := range result.Sources {
		body.Sources[i] = sourceBody{source.Name, source.From}
	}
	for i, line := range result.Logs {
		body.Logs[i] = testLogLine{clock.Format(line.At), line.Level, line.Message}
	}
	return transport.OK(body), nil
}

// draftStep sets the step of the draft, if there is one, and the pins.
func (h *previews) draftStep(ctx context.Context, in *testStepRequest, test *run.StepTest) error {
	draft := in.Body.draftTest()
	if in.Body.Definition == nil {
		pins, err := h.workflows.Pins(ctx, transport.Actor(ctx), in.ID, draft)
		test.Pins = pins
		return err
	}
	if err := checkDraftScope(ctx); err != nil {
		return err
	}
	step, err := h.workflows.DraftStep(ctx, transport.Actor(ctx), in.ID, run.LastOf(in.StepID), draft)
	test.Step, test.Pins = &step.CompiledStep, step.Pinned
	return workflow.InDefinition(err)
}
