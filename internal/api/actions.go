package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

type actions struct {
	actions   *action.Catalog
	workflows *workflow.Service
	cursors   *paging.Codec
}

type actionBody struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Summary      string          `json:"summary"`
	Keywords     []string        `json:"keywords"`
	Pure         bool            `json:"pure"`
	Connects     bool            `json:"accepts_connection"`
	Integration  *string         `json:"integration"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Limits       []string        `json:"limits"`
	Codes        []action.Code   `json:"codes"`
	Examples     []actionExample `json:"examples"`
}

type actionExample struct {
	Title  string          `json:"title"`
	With   json.RawMessage `json:"with"`
	Answer json.RawMessage `json:"answer"`
	Output json.RawMessage `json:"output"`
}

func showAction(spec action.Spec) actionBody {
	body := actionBody{
		Name: spec.Name, Title: spec.Title, Summary: spec.Summary, Keywords: orEmpty(spec.Keywords), Pure: spec.Pure, Connects: spec.Connects, Integration: orNull(spec.Integration),
		InputSchema: jsonOrNull(spec.Input), OutputSchema: jsonOrNull(spec.Output),
		Limits: orEmpty(spec.Limits), Codes: orEmpty(spec.Codes), Examples: make([]actionExample, len(spec.Examples)),
	}
	for i, example := range spec.Examples {
		body.Examples[i] = actionExample{example.Title, jsonOrNull(example.With), jsonOrNull(example.Answer), jsonOrNull(example.Output)}
	}
	return body
}

func jsonOrNull(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(text)
}

type listActionsRequest struct{ transport.Page }

func (h *actions) list(ctx context.Context, in *listActionsRequest) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"actions"},
		func(p paging.Request) (paging.Page[action.Spec], error) {
			var specs []action.Spec
			for _, name := range h.actions.Names() {
				if entry, _ := h.actions.Find(name); name > p.After && len(specs) <= p.Limit {
					specs = append(specs, entry.Spec)
				}
			}
			return paging.Cut(specs, p.Limit, func(spec action.Spec) string { return spec.Name }), nil
		}, showAction)
}

type actionRequest struct {
	Name string `path:"name"`
}

func (h *actions) get(ctx context.Context, in *actionRequest) (*transport.Reply, error) {
	spec, err := h.workflows.Action(ctx, transport.Actor(ctx), in.Name)
	return transport.Respond(showAction, spec, err)
}
