package api

import (
	"context"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/template"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

type searches struct {
	workflows *workflow.Service
	runs      *run.Service
}

func searchTypes() []string { return []string{"workflow", "run", "template"} }

type searchRequest struct {
	Q     string `query:"q"`
	Types string `query:"types"`
	Limit *int   `query:"limit"`
}

type searchBody struct {
	Workflows []workflowItem `json:"workflows"`
	Runs      []listedRun    `json:"runs"`
	Templates []templateItem `json:"templates"`
}

func (h *searches) search(ctx context.Context, in *searchRequest) (*transport.Reply, error) {
	if in.Q == "" {
		return nil, transport.Parameter("q", "is required: the words to search for, or the beginning of an id")
	}
	query, err := words("q", in.Q)
	if err != nil {
		return nil, err
	}
	types, err := in.types()
	if err != nil {
		return nil, err
	}
	limit, err := transport.LimitOf(in.Limit)
	if err != nil {
		return nil, err
	}
	body := searchBody{Workflows: []workflowItem{}, Runs: []listedRun{}, Templates: []templateItem{}}
	if slices.Contains(types, "workflow") {
		found, err := h.workflows.Search(ctx, transport.Actor(ctx), query, limit)
		if err != nil {
			return nil, err
		}
		body.Workflows = showAll(found, showWorkflowItem)
	}
	if id, ok := query.IDPrefix(uid.Run); ok && slices.Contains(types, "run") {
		found, err := h.runs.ListAll(ctx, transport.Actor(ctx), run.Filter{Text: id}, paging.Request{Limit: limit})
		if err != nil {
			return nil, err
		}
		body.Runs = showAll(found.Items, showListedRun)
	}
	if slices.Contains(types, "template") {
		found, err := template.Search(query, limit)
		if err != nil {
			return nil, err
		}
		body.Templates = showAll(found, showTemplate)
	}
	return transport.OK(body), nil
}

// types returns the types to search. All, unless the request names some.
func (in *searchRequest) types() ([]string, error) {
	if in.Types == "" {
		return searchTypes(), nil
	}
	types := strings.Split(in.Types, ",")
	for _, one := range types {
		if !slices.Contains(searchTypes(), one) {
			return nil, transport.Parameter("types", "must be a comma-separated list of %s; %q is none of them", strings.Join(searchTypes(), ", "), transport.Clean(one))
		}
	}
	return types, nil
}

func words(name, text string) (search.Query, error) {
	query, err := search.Parse(text)
	if err != nil {
		return query, transport.Parameter(name, "%s", err)
	}
	return query, nil
}
