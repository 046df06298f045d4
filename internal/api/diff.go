package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

type diffBody struct {
	WorkflowID string        `json:"workflow_id"`
	From       int           `json:"from"`
	To         int           `json:"to"`
	Identical  bool          `json:"identical"`
	Steps      []stepDiff    `json:"steps"`
	Triggers   []triggerDiff `json:"triggers"`
	Settings   []fieldDiff   `json:"settings"`
}

type stepDiff struct {
	Change    workflow.Edit  `json:"change"`
	StepID    string         `json:"step_id"`
	FromBlock *string        `json:"from_block"`
	ToBlock   *string        `json:"to_block"`
	From      *workflow.Step `json:"from"`
	To        *workflow.Step `json:"to"`
	Fields    []fieldDiff    `json:"fields"`
}

type triggerDiff struct {
	Change    workflow.Edit     `json:"change"`
	TriggerID string            `json:"trigger_id"`
	From      *workflow.Trigger `json:"from"`
	To        *workflow.Trigger `json:"to"`
	Fields    []fieldDiff       `json:"fields"`
}

// fieldDiff omits the side that does not have the member.
type fieldDiff struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from,omitempty"`
	To    json.RawMessage `json:"to,omitempty"`
}

type diffVersionsRequest struct {
	versionRequest
	To *int `query:"to"`
}

func (h *workflows) diffVersions(ctx context.Context, in *diffVersionsRequest) (*transport.Reply, error) {
	to := 0
	switch {
	case in.N < 1:
		return nil, transport.Parameter("n", "must be a positive whole number")
	case in.To != nil && *in.To < 1:
		return nil, transport.Parameter("to", "must be a positive whole number")
	case in.To != nil:
		to = *in.To
	}
	c, err := h.workflows.Diff(ctx, transport.Actor(ctx), in.ID, in.N, to)
	return transport.Respond(showDiff, c, err)
}

func showDiff(c workflow.Comparison) diffBody {
	body := diffBody{
		WorkflowID: c.WorkflowID, From: c.From, To: c.To, Identical: c.Identical(),
		Steps: make([]stepDiff, len(c.Steps)), Triggers: make([]triggerDiff, len(c.Triggers)), Settings: showFields(c.Settings),
	}
	for i, d := range c.Steps {
		body.Steps[i] = stepDiff{d.Edit, d.ID, orNull(d.FromBlock), orNull(d.ToBlock), d.From, d.To, showFields(d.Fields)}
	}
	for i, d := range c.Triggers {
		body.Triggers[i] = triggerDiff{d.Edit, d.ID, d.From, d.To, showFields(d.Fields)}
	}
	return body
}

func showFields(fields []workflow.FieldDiff) []fieldDiff {
	out := make([]fieldDiff, len(fields))
	for i, f := range fields {
		out[i] = fieldDiff{f.Pointer, f.From, f.To}
	}
	return out
}
