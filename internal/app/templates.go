package app

import (
	"context"
	"fmt"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/gallery"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Template is a template in the output of commands.
type Template struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Category    string `json:"category"`
	Description string `json:"description"`
}

// Templates lists the workflow templates.
func Templates() ([]Template, error) {
	all, err := gallery.All()
	out := make([]Template, len(all))
	for i, t := range all {
		out[i] = Template{t.Name, t.Title, t.Category, t.Description}
	}
	return out, err
}

// NewWorkflow creates a draft, from a template if one is named, and returns its
// id. The name defaults to the title of the template.
func (a *Admin) NewWorkflow(ctx context.Context, workspaceID, template, name string) (string, error) {
	actor, err := a.actor(ctx, workspaceID)
	if err != nil {
		return "", cliError(err)
	}
	wanted := workflow.Import{DefaultName: name}
	if template != "" {
		found, err := gallery.Find(template)
		if err != nil {
			return "", err
		}
		if found == nil {
			return "", fmt.Errorf("there is no template %q: run `stepmill templates` for a list", template)
		}
		if name == "" {
			wanted.DefaultName = found.Title
		}
		text, err := workflow.ReadText(found.Source)
		if err != nil {
			return "", cliError(err)
		}
		wanted.Patch = workflow.Patch{Description: &found.Description, SetDescription: true, Source: &workflow.SourcePatch{Text: text}}
	}
	workflows, err := a.workflows()
	if err != nil {
		return "", err
	}
	made, err := workflows.Import(ctx, actor, wanted)
	return made.ID, cliError(err)
}

// workflows returns a workflow service whose actions cannot be executed.
func (a *Admin) workflows() (*workflow.Service, error) {
	actions, err := catalog.New(catalog.Deps{})
	if err != nil {
		return nil, err
	}
	types, err := triggers.New(nil)
	if err != nil {
		return nil, err
	}
	secrets := secret.NewService(a.core.store, a.core.vault)
	workflows := workflow.NewService(a.core.store, actions, types.Format(), nameSource{secrets, a.core.store}, trigger.NewArming(types, a.core.vault))
	a.core.checkNodes(workflows)
	return workflows, nil
}
