package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
)

type evaluateRequest struct {
	Body struct {
		Expression *string         `json:"expression"`
		Template   json.RawMessage `json:"template"`
		RunID      *string         `json:"run_id"`
		Context    *sampleBody     `json:"context"`
	} `body:"required"`
}

type sampleBody struct {
	Trigger  sampleTrigger              `json:"trigger"`
	Steps    map[string]sampleStep      `json:"steps"`
	Item     json.RawMessage            `json:"item"`
	Index    *int                       `json:"index"`
	Vars     map[string]json.RawMessage `json:"vars"`
	Run      sampleRun                  `json:"run"`
	Workflow sampleWorkflow             `json:"workflow"`
}

type sampleTrigger struct {
	Type    *string         `json:"type"`
	ID      *string         `json:"id"`
	Payload json.RawMessage `json:"payload"`
	Headers json.RawMessage `json:"headers"`
	Query   json.RawMessage `json:"query"`
}

type sampleStep struct {
	Output json.RawMessage `json:"output"`
	Status string          `json:"status"`
	Error  json.RawMessage `json:"error"`
}

type sampleRun struct {
	ID        *string    `json:"id"`
	StartedAt *time.Time `json:"started_at"`
}

type sampleWorkflow struct {
	ID      *string `json:"id"`
	Name    *string `json:"name"`
	Version *int    `json:"version"`
}

func (b sampleBody) sample() run.Sample {
	steps := make(map[string]run.SampleStep, len(b.Steps))
	for id, step := range b.Steps {
		steps[id] = run.SampleStep(step)
	}
	return run.Sample{
		Trigger: run.SampleTrigger(b.Trigger), Steps: steps, Item: b.Item, Index: b.Index, Vars: b.Vars,
		Run: run.SampleRun(b.Run), Workflow: run.SampleWorkflow(b.Workflow),
	}
}

// evaluationBody is the answer for an expression that has a value.
type evaluationBody struct {
	Valid bool   `json:"valid"`
	Value any    `json:"value"`
	Type  string `json:"type"`
}

// failedEvaluationBody is the answer for one that has none.
type failedEvaluationBody struct {
	Valid bool            `json:"valid"`
	Error expressionError `json:"error"`
}

func showEvaluation(e run.Evaluation) any {
	if wrong := e.Error; wrong != nil {
		return failedEvaluationBody{Error: expressionError{
			Code: wrong.Code, Message: wrong.Message, Line: wrong.Line, Column: wrong.Column, Pointer: wrong.Pointer,
		}}
	}
	return evaluationBody{Valid: true, Value: e.Value, Type: jsonType(e.Value)}
}

type expressionError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Pointer string `json:"pointer"`
}

func (s *Server) evaluateExpression(ctx context.Context, in *evaluateRequest) (*reply, error) {
	body := in.Body
	switch {
	case body.Expression == nil && body.Template == nil:
		return nil, fault.Field("/expression", "is required, unless there is a template")
	case body.Expression != nil && body.Template != nil:
		return nil, fault.Field("/template", "must not be given together with an expression")
	}
	preview := run.Preview{Template: body.Template}
	if body.Expression != nil {
		preview.Expression = *body.Expression
	}
	if body.RunID != nil {
		if *body.RunID == "" {
			return nil, fault.Field("/run_id", "must be the id of a run, or be left out")
		}
		preview.RunID = *body.RunID
	}
	if body.Context != nil {
		preview.Sample = body.Context.sample()
	}
	got, err := s.Previews.Evaluate(ctx, actorOf(ctx), preview)
	if err != nil {
		return nil, err
	}
	return ok(showEvaluation(got)), nil
}

// jsonType names the type of a value in the words of JSON, but for a list.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "number"
}
