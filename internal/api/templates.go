package api

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/gallery"
	"github.com/stepmill/stepmill/internal/paging"
)

type templateItem struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Category    string   `json:"category"`
	FirstRun    bool     `json:"first_run"`
	Triggers    []string `json:"triggers"`
	Uses        []string `json:"uses"`
}

type templateBody struct {
	templateItem
	Payload json.RawMessage `json:"payload"`
	Source  string          `json:"source"`
}

func showTemplate(t gallery.Template) templateItem {
	return templateItem{t.Name, t.Title, t.Description, t.Category, t.FirstRun, orEmpty(t.Triggers), orEmpty(t.Uses)}
}

type listTemplatesRequest struct{ page }

func (s *Server) listTemplates(ctx context.Context, in *listTemplatesRequest) (*reply, error) {
	return paginate(ctx, s, in.page, []string{"templates"},
		func(p paging.Request) (paging.Page[gallery.Template], error) {
			all, err := gallery.All()
			for i, template := range all {
				if template.Name == p.After {
					all = all[i+1:]
					break
				}
			}
			return paging.Cut(all, p.Limit, func(t gallery.Template) string { return t.Name }), err
		}, showTemplate)
}

type templateRequest struct {
	Name string `path:"name"`
}

func (s *Server) getTemplate(_ context.Context, in *templateRequest) (*reply, error) {
	found, err := gallery.Find(in.Name)
	t, err := fault.Found(found, err, func(name string) error {
		return fault.New(fault.TemplateNotFound, "there is no template %q", name)
	}, in.Name)
	if err != nil {
		return nil, err
	}
	return ok(templateBody{showTemplate(t), orObject(t.Payload), t.Source}), nil
}
