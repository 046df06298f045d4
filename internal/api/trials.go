package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
)

type testStepRequest struct {
	ID     string `path:"id"`
	StepID string `path:"step_id"`
	Body   struct {
		RunID   *string     `json:"run_id"`
		Context *sampleBody `json:"context"`
	} `body:"optional"`
}

type triedBody struct {
	Status     run.StepStatus  `json:"status"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	Error      *stepError      `json:"error"`
	Reason     *string         `json:"reason"`
	Logs       []triedLine     `json:"logs"`
	DurationMS int64           `json:"duration_ms"`
}

type triedLine struct {
	At      string `json:"at"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

func (s *Server) testStep(ctx context.Context, in *testStepRequest) (*reply, error) {
	trial := run.Trial{WorkflowID: in.ID, StepID: in.StepID}
	if in.Body.RunID != nil {
		if *in.Body.RunID == "" {
			return nil, fault.Field("/run_id", "must be the id of a run, or be left out")
		}
		trial.RunID = *in.Body.RunID
	}
	if in.Body.Context != nil {
		trial.Sample = in.Body.Context.sample()
	}
	tried, err := s.Trials.Try(ctx, actorOf(ctx), trial)
	if err != nil {
		return nil, err
	}
	body := triedBody{
		Status: tried.Status, Input: orObject(tried.Input), Output: orObject(tried.Output), Reason: orNull(tried.Reason), Error: showFailure(tried.Error),
		Logs: make([]triedLine, len(tried.Logs)), DurationMS: tried.Duration.Milliseconds(),
	}
	for i, line := range tried.Logs {
		body.Logs[i] = triedLine{clock.Format(line.At), line.Level, line.Message}
	}
	return ok(body), nil
}
