package app

import (
	"context"
	"fmt"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/gallery"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Template is a template as commands show it.
type Template struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Category    string `json:"category"`
	Description string `json:"description"`
}

// Templates lists the workflows to begin with.
func Templates() ([]Template, error) {
	all, err := gallery.All()
	out := make([]Template, len(all))
	for i, t := range all {
		out[i] = Template{t.Name, t.Title, t.Category, t.Description}
	}
	return out, err
}

// NewWorkflow makes a draft, from a template if one is named, and returns its
// id. Without a name it has the title of the template.
func (a *Admin) NewWorkflow(ctx context.Context, workspaceID, template, name string) (string, error) {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return "", plain(err)
	}
	wanted := workflow.New{Name: name}
	var text *workflow.Text
	if template != "" {
		found, err := gallery.Find(template)
		if err != nil {
			return "", err
		}
		if found == nil {
			return "", fmt.Errorf("there is no template %q: see stepmill templates", template)
		}
		if wanted.Description = &found.Description; name == "" {
			wanted.Name = found.Title
		}
		if text, err = workflow.ReadText(found.Source); err != nil {
			return "", plain(err)
		}
	}
	flows, err := a.workflows()
	if err != nil {
		return "", err
	}
	made, err := flows.Create(ctx, actor, wanted)
	if err == nil && text != nil {
		made, err = flows.Update(ctx, actor, made.ID, workflow.Patch{Source: &workflow.SourcePatch{Text: text}}, workflow.Match{})
	}
	return made.ID, plain(err)
}

// workflows has the use cases of workflows without the means to execute them.
func (a *Admin) workflows() (*workflow.Service, error) {
	actions, err := catalog.New(catalog.Means{})
	if err != nil {
		return nil, err
	}
	secrets := secret.NewService(a.core.store, a.core.vault)
	return workflow.NewService(a.core.store, actions.Saved(), names{secrets}, trigger.NewArming(a.core.vault)), nil
}
