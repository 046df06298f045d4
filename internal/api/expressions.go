package api

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

// previews serves what people try before they save it: expressions, steps and schedules.
type previews struct {
	previews  *run.Previews
	tester    *run.StepTester
	workflows *workflow.Service
}

type evaluateRequest struct {
	Body struct {
		termBody
		Expressions *[]termBody `json:"expressions"`
		RunID       *string     `json:"run_id"`
		StepID      string      `json:"step_id"`
		// WorkflowID names the workflow whose pins apply.
		WorkflowID *string     `json:"workflow_id"`
		Context    *sampleBody `json:"context"`
	} `body:"required"`
}

// termBody is either an expression or a template.
type termBody struct {
	Expression *string         `json:"expression"`
	Template   json.RawMessage `json:"template"`
}

func (b termBody) term(at string) (run.Term, error) {
	switch {
	case b.Expression == nil && b.Template == nil:
		return run.Term{}, fault.Field(at+"/expression", "is required unless a template is given")
	case b.Expression != nil && b.Template != nil:
		return run.Term{}, fault.Field(at+"/template", "must not be given together with an expression")
	case b.Expression != nil:
		return run.Term{Expression: *b.Expression}, nil
	}
	return run.Term{Template: b.Template}, nil
}

type sampleBody struct {
	Trigger  sampleTrigger              `json:"trigger"`
	Steps    map[string]sampleStep      `json:"steps"`
	Item     json.RawMessage            `json:"item"`
	Index    *int                       `json:"index"`
	Previous json.RawMessage            `json:"previous"`
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
		Trigger: run.SampleTrigger(b.Trigger), Steps: steps, Item: b.Item, Index: b.Index, Previous: b.Previous, Vars: b.Vars,
		Run: run.SampleRun(b.Run), Workflow: run.SampleWorkflow(b.Workflow),
	}
}

type evaluationBody struct {
	Valid bool   `json:"valid"`
	Value any    `json:"value"`
	Type  string `json:"type"`
}

type failedEvaluationBody struct {
	Valid bool            `json:"valid"`
	Error expressionError `json:"error"`
}

func showEvaluation(e run.Evaluation) any {
	if failure := e.Error; failure != nil {
		return failedEvaluationBody{Error: expressionError{
			Code: failure.Code, Message: failure.Message, Line: failure.Line, Column: failure.Column, Pointer: failure.Pointer,
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

const maxExpressions = 50

func (h *previews) evaluate(ctx context.Context, in *evaluateRequest) (*transport.Reply, error) {
	body := in.Body
	preview := run.Preview{View: run.View{StepID: body.StepID}}
	var err error
	if preview.Terms, err = parseTerms(body.termBody, body.Expressions); err != nil {
		return nil, err
	}
	if preview.RunID, err = parseRunID(body.RunID); err != nil {
		return nil, err
	}
	if body.StepID != "" && preview.RunID == "" {
		return nil, fault.Field("/step_id", "needs a run_id: the expression sees the data that this step of the run sees")
	}
	if body.WorkflowID != nil {
		w, err := h.workflows.Get(ctx, transport.Actor(ctx), *body.WorkflowID)
		if err != nil {
			return nil, err
		}
		preview.Pins = w.Pinned
	}
	if body.Context != nil {
		preview.Sample = body.Context.sample()
	}
	got, err := h.previews.Evaluate(ctx, transport.Actor(ctx), preview)
	if err != nil {
		return nil, err
	}
	if body.Expressions == nil {
		return transport.OK(showEvaluation(got[0])), nil
	}
	results := make([]any, len(got))
	for i, one := range got {
		results[i] = showEvaluation(one)
	}
	return transport.OK(evaluationsBody{results}), nil
}

type evaluationsBody struct {
	Results []any `json:"results"`
}

// parseTerms returns the single expression, or the list.
func parseTerms(one termBody, list *[]termBody) ([]run.Term, error) {
	if list == nil {
		single, err := one.term("")
		return []run.Term{single}, err
	}
	switch n := len(*list); {
	case one.Expression != nil || one.Template != nil:
		return nil, fault.Field("/expressions", "must not be given together with an expression or a template")
	case n < 1 || n > maxExpressions:
		return nil, fault.Field("/expressions", "must have between 1 and %d entries", maxExpressions)
	}
	out := make([]run.Term, len(*list))
	for i, entry := range *list {
		var err error
		if out[i], err = entry.term("/expressions/" + strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseRunID returns an optional run id. It must not be empty.
func parseRunID(given *string) (string, error) {
	if given == nil {
		return "", nil
	}
	if *given == "" {
		return "", fault.Field("/run_id", "must be the id of a run, or be left out")
	}
	return *given, nil
}

// jsonType returns the JSON name of a value's type, except that an array is a list.
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
