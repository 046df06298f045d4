package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/transport"
)

type listOptionsRequest struct {
	ID   string `path:"id"`
	Body struct {
		Operation string          `json:"operation"`
		Trigger   string          `json:"trigger"`
		Input     *string         `json:"input"`
		With      json.RawMessage `json:"with"`
		Search    string          `json:"search"`
	} `body:"required"`
}

// optionsBody has either options or fields; the other is null.
type optionsBody struct {
	Options []listedOption `json:"options"`
	Fields  []listedField  `json:"fields"`
	More    bool           `json:"more"`
}

type listedOption struct {
	Value any    `json:"value"`
	Label string `json:"label"`
}

type listedField struct {
	Name     string         `json:"name"`
	Title    string         `json:"title"`
	Type     string         `json:"type"`
	Required bool           `json:"required"`
	Options  []listedOption `json:"options"`
}

func showListedOption(o operation.Option) listedOption { return listedOption(o) }

func showListedField(m operation.Member) listedField {
	out := listedField{Name: m.Name, Title: m.Title, Type: m.Type, Required: m.Required}
	if m.Options != nil {
		out.Options = showAll(m.Options, showListedOption)
	}
	return out
}

// listOptions lists the values of an input of a step, or the members of an object, as the
// account of the connection has them.
func (h *connections) listOptions(ctx context.Context, in *listOptionsRequest) (*transport.Reply, error) {
	c, err := h.connections.Usable(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Body.Operation == "" && in.Body.Trigger == "":
		return nil, fault.Field("/operation", "is required: the action of the step; or trigger, the type of a trigger")
	case in.Body.Operation != "" && in.Body.Trigger != "":
		return nil, fault.Field("/trigger", "must be left out: there is an operation")
	case in.Body.Input == nil:
		return nil, fault.Field("/input", "is required: the input of the step or the trigger to list values for")
	}
	query := operation.ListQuery{
		Workspace: c.WorkspaceID, Connection: c.Name, Integration: c.Integration,
		Operation: in.Body.Operation, Trigger: in.Body.Trigger, Input: *in.Body.Input, Search: in.Body.Search,
	}
	if in.Body.With != nil {
		with, err := expr.FromJSON(in.Body.With)
		var isObject bool
		if query.With, isObject = with.(map[string]any); err != nil || !isObject {
			return nil, fault.Field("/with", "must be an object: the input of the step so far")
		}
	}
	list, err := h.lists.Read(ctx, query)
	if err != nil {
		return nil, err
	}
	if list.IsObject {
		return transport.OK(optionsBody{Fields: showAll(list.Members, showListedField), More: list.More}), nil
	}
	return transport.OK(optionsBody{Options: showAll(list.Options, showListedOption), More: list.More}), nil
}
