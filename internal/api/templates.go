package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/template"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

type templates struct {
	workflows *workflow.Service
	cursors   *paging.Codec
}

type templateItem struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Category    string   `json:"category"`
	FirstRun    bool     `json:"first_run"`
	Triggers    []string `json:"triggers"`
	Uses        []string `json:"uses"`

	Inputs []templateInput `json:"inputs"`
}

type templateInput struct {
	Name        string            `json:"name"`
	Type        template.Type     `json:"type"`
	Title       string            `json:"title"`
	Help        *string           `json:"help"`
	Required    bool              `json:"required"`
	Default     json.RawMessage   `json:"default"`
	Example     *string           `json:"example"`
	Pattern     *string           `json:"pattern"`
	Options     []template.Option `json:"options"`
	Integration *string           `json:"integration"`
	Services    []string          `json:"services"`
	Lists       *templateListing  `json:"lists"`
}

// templateListing says how to list the values of an input with
// POST /v1/connections/{id}/options.
type templateListing struct {
	Operation  *string           `json:"operation"`
	Trigger    *string           `json:"trigger"`
	Input      string            `json:"input"`
	Connection string            `json:"connection"`
	With       map[string]string `json:"with"`
}

func showTemplateInput(in template.Input) templateInput {
	out := templateInput{
		Name: in.Name, Type: in.Type, Title: in.Title, Help: orNull(in.Help), Required: in.Required(), Default: in.Default,
		Example: orNull(in.Example), Pattern: orNull(in.Pattern), Options: in.Options, Integration: orNull(in.Integration),
		Services: in.Services,
	}
	if l := in.Lists; l != nil {
		out.Lists = &templateListing{orNull(l.Operation), orNull(l.Trigger), l.Input, l.Connection, l.With}
	}
	return out
}

type templateBody struct {
	templateItem
	Payload json.RawMessage `json:"payload"`
	Source  string          `json:"source"`
}

func showTemplate(t template.Template) templateItem {
	return templateItem{
		t.Name, t.Title, t.Description, t.Category, t.FirstRun, orEmpty(t.Triggers), orEmpty(t.Uses),
		showAll(t.Inputs, showTemplateInput),
	}
}

type listTemplatesRequest struct{ transport.Page }

func (h *templates) list(ctx context.Context, in *listTemplatesRequest) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"templates"},
		func(p paging.Request) (paging.Page[template.Template], error) {
			all, err := template.All()
			for i, one := range all {
				if one.Name == p.After {
					all = all[i+1:]
					break
				}
			}
			return paging.Cut(all, p.Limit, func(t template.Template) string { return t.Name }), err
		}, showTemplate)
}

type templateRequest struct {
	Name string `path:"name"`
}

func (h *templates) get(_ context.Context, in *templateRequest) (*transport.Reply, error) {
	t, err := findTemplate(in.Name)
	if err != nil {
		return nil, err
	}
	return transport.OK(templateBody{showTemplate(t), orObject(t.Payload), t.Source}), nil
}

func findTemplate(name string) (template.Template, error) {
	found, err := template.Find(name)
	return fault.Found(found, err, func(name string) error {
		return fault.New(fault.TemplateNotFound, "there is no template %q", name)
	}, name)
}

type useTemplateRequest struct {
	Template string `path:"name"`
	Body     struct {
		Name   string                     `json:"name"`
		Inputs map[string]json.RawMessage `json:"inputs"`
	} `body:"optional"`
}

// prepareUse prepares a draft from a template, with values for its inputs.
func (h *templates) prepareUse(ctx context.Context, in *useTemplateRequest) (workflow.Prepared, error) {
	t, err := findTemplate(in.Template)
	if err != nil {
		return workflow.Prepared{}, err
	}
	filled, err := t.Fill(in.Body.Name, in.Body.Inputs)
	if err != nil {
		return workflow.Prepared{}, err
	}
	prepared, err := h.workflows.PrepareImport(ctx, transport.Actor(ctx), filled.Workflow)
	if err != nil {
		err = filled.Locate(err)
	}
	return prepared, err
}
